//! The order of eviction, and the bytes that stay.

use quarrier_sparse::{Error, Span, SparseFile};

#[test]
fn the_block_not_used_for_longest_goes_first() {
    let mut file = SparseFile::new("test");
    for offset in [0, 100, 200] {
        file.write(offset, &[1; 10]).unwrap();
    }
    file.read(0, 1).unwrap();
    assert_eq!(file.evict(20), 10);
    assert_eq!(file.blocks(), [Span::new(0, 10), Span::new(200, 10)]);
    file.read(0, 1).unwrap();
    assert_eq!(file.evict(10), 10);
    assert_eq!(file.blocks(), [Span::new(0, 10)]);
}

#[test]
fn no_more_goes_than_it_takes_even_of_one_huge_block() {
    let mut file = SparseFile::new("test");
    file.write(0, &vec![7; 1_000_000]).unwrap();
    assert_eq!(file.evict(2_000_000), 0);
    // Its start was read last, so its start stays.
    file.read(0, 1000).unwrap();
    assert_eq!(file.evict(300_000), 700_000);
    assert_eq!(file.num_bytes(), 300_000);
    assert!(file.has(0, 1000));
    assert_eq!(file.counters().evicted_bytes, 700_000);
}

#[test]
fn pinned_ranges_stay_and_are_not_erased() {
    let mut file = SparseFile::new("test");
    file.write(0, &[1; 100]).unwrap();
    file.write(200_000, &[1; 100]).unwrap();
    let pin = Span::new(40, 20);
    file.pin(pin).unwrap();
    file.pin(pin).unwrap();
    assert_eq!(file.evict(0), 180);
    assert_eq!(file.blocks(), [pin]);
    file.unpin(pin).unwrap();
    assert_eq!(file.erase(0, 41), Err(Error::Pinned { span: pin }));
    assert_eq!(file.clear(), 0);
    file.unpin(pin).unwrap();
    assert!(file.unpin(pin).is_err());
    assert_eq!(file.evict(0), 20);
}

#[test]
fn many_tiny_blocks_go_in_the_order_of_their_use() {
    let mut file = SparseFile::new("test");
    for i in 0..10_000u64 {
        file.write(i * 1000, &[1]).unwrap();
    }
    for i in 0..5_000u64 {
        file.read(i * 1000, 1).unwrap();
    }
    assert_eq!(file.evict(5_120), 4_880);
    let kept = (0..5_000u64).filter(|i| file.has(i * 1000, 1)).count();
    assert!(kept >= 4_000, "{kept} of those read are left");
}
