//! Regions: aligned buffers, the pool that lends them, and windows with their guard.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use quarrier_core::pipeline::{Access, Need, Pipeline};
use quarrier_core::region::{AlignedBuffer, BufferPool, PAGE_BYTES, give_back_relocations};
use quarrier_core::source::Source;

use crate::census::{as_data, check_whole, noise, open_temp, temp_file, without_hanging};

/// The guard's slots belong to the process: a test that takes all of them must exclude tests that
/// need some.
static SLOTS: RwLock<()> = RwLock::new(());

/// Held by tests that fail if no window is available.
pub(crate) fn slots() -> RwLockReadGuard<'static, ()> {
    SLOTS.read().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn buffers_of_any_size_are_zero_and_page_aligned() {
    for bytes in [0, 1, 4_095, 4_096, 4_097, 1 << 20] {
        let mut buffer = AlignedBuffer::new(bytes);
        assert_eq!(buffer.len(), bytes);
        assert_eq!(buffer.as_ptr().addr() % PAGE_BYTES, 0);
        assert!(buffer.iter().all(|&byte| byte == 0));
        buffer.fill(7);
        assert!(buffer.iter().all(|&byte| byte == 7));
    }
}

#[test]
fn adjacent_buffers_are_independent() {
    // Total sizes: less than half a large page, half of one, one, and several that end within one.
    let whole = 1 << 20;
    for (count, bytes) in [(0, 10), (3, 0), (3, 5_000), (1, whole), (2, whole), (5, whole + 1)] {
        let mut buffers = AlignedBuffer::side_by_side(count, bytes);
        assert_eq!(buffers.len(), count);
        for (index, buffer) in buffers.iter_mut().enumerate() {
            assert_eq!((buffer.len(), buffer.as_ptr().addr() % PAGE_BYTES), (bytes, 0));
            assert!(buffer.iter().all(|byte| *byte == 0), "{count} of {bytes}");
            buffer.fill(index as u8 + 1);
        }
        // The last remaining buffer still has its bytes.
        let last = buffers.pop();
        drop(buffers);
        assert!(last.is_none_or(|last| last.iter().all(|byte| *byte == count as u8)));
    }
}

#[test]
fn addresses_stay_when_the_lists_of_them_are_given_back() {
    // Each element is an address, so the loader relocates it.
    static NAMES: [&str; 3] = ["one", "two", "three"];
    static WORKS: [fn(usize) -> usize; 2] = [usize::swap_bytes, usize::reverse_bits];
    for _ in 0..2 {
        give_back_relocations();
        assert_eq!(NAMES.concat(), "onetwothree");
        assert_eq!(WORKS.map(|work| work(std::hint::black_box(7))), [7 << 56, 7 << 61]);
        let others = std::thread::spawn(|| format!("{NAMES:?}")).join().unwrap();
        assert_eq!(others, r#"["one", "two", "three"]"#);
    }
}

#[test]
fn a_lease_gives_its_thing_back_as_it_was_left() {
    let pool = BufferPool::new(vec![String::from("one")]);
    let mut lease = pool.lend().unwrap();
    assert_eq!(*lease, "one");
    lease.push_str(" and more");
    assert!(pool.try_lend().is_none(), "the only thing is lent");
    drop(lease);
    assert_eq!(*pool.try_lend().unwrap(), "one and more");
    assert_eq!(*pool.lend().unwrap(), "one and more");
}

#[test]
fn a_thread_waits_until_an_item_is_returned() {
    without_hanging(|| {
        let pool = BufferPool::new(vec![(), ()]);
        let (lent, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let lease = pool.lend().unwrap();
                        let now = lent.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(now, Ordering::SeqCst);
                        std::thread::yield_now();
                        lent.fetch_sub(1, Ordering::SeqCst);
                        drop(lease);
                    }
                });
            }
        });
        assert!(most.into_inner() <= 2);
    });
}

#[test]
fn closing_a_pool_wakes_all_waiting_threads() {
    without_hanging(|| {
        let pool = BufferPool::new(vec![5]);
        let lease = pool.lend().unwrap();
        std::thread::scope(|scope| {
            let waiting = [(); 4].map(|()| scope.spawn(|| pool.lend().is_none()));
            std::thread::sleep(Duration::from_millis(20));
            pool.close();
            assert!(waiting.into_iter().all(|thread| thread.join().unwrap()));
        });
        drop(lease);
        assert!(pool.lend().is_none() && pool.try_lend().is_none(), "closed for good");
    });
}

#[test]
fn a_window_shows_any_range_with_any_alignment() {
    let _slots = slots();
    let bytes = noise(20_000);
    let file = temp_file(&bytes);
    let source = open_temp(&file);
    for start in [0, 1, 4_095, 4_096, 4_097, 19_999] {
        for end in [start + 1, start + 5_000, 20_000] {
            let end = end.min(20_000);
            let region = source.window(start as u64..end as u64).unwrap().unwrap();
            assert_eq!(region.as_data(as_data()), &bytes[start..end]);
            assert!(!region.is_torn());
        }
    }
}

#[test]
fn a_window_of_nothing_is_refused() {
    let file = temp_file(b"something");
    let source = open_temp(&file);
    let refused = source.window(3..3).unwrap();
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn where_no_more_windows_can_be_guarded_the_pipeline_reads() {
    let _all = SLOTS.write().unwrap_or_else(PoisonError::into_inner);
    let bytes = noise(300_000);
    let file = temp_file(&bytes);
    let source = open_temp(&file);
    let mut windows = Vec::new();
    let refused = loop {
        match source.window(0..300_000).unwrap() {
            Ok(window) => windows.push(window),
            Err(error) => break error,
        }
        assert!(windows.len() <= 10_000, "windows are bounded");
    };
    assert_eq!(refused.kind(), ErrorKind::WouldBlock);
    let need = Need { before_bytes: 10, after_bytes: 10, skip_zeros: false };
    let pipeline = Pipeline::new(&source).access(Access::Window).workers(3).buffer_bytes(10_000);
    check_whole(&pipeline, &bytes, need);
    assert!(windows.iter().all(|window| window.as_data(as_data()) == bytes && !window.is_torn()));
    drop(windows);
    check_whole(&pipeline, &bytes, need);
    assert!(source.window(0..300_000).unwrap().is_ok(), "the slots are free again");
}
