//! The rules of a sparse file, including every case that svfsc 0.4.1 gets wrong.

use quarrier_sparse::{CostModel, Error, Merge, OnConflict, Span, SparseFile};

fn file_of(blocks: &[(u64, &[u8])]) -> SparseFile {
    let mut file = SparseFile::new("test");
    for (offset, data) in blocks {
        file.write(*offset, data).unwrap();
    }
    file
}

#[test]
fn adjacent_blocks_are_joined_in_any_order_of_writes() {
    let file = file_of(&[(0, b"A"), (3, b"D"), (2, b"C")]);
    assert_eq!(file.blocks(), [Span::new(0, 1), Span::new(2, 2)]);
    assert_eq!(file.need(2, 2).unwrap(), []);
    assert_eq!(file.read(2, 2).unwrap(), b"CD");
}

#[test]
fn a_difference_at_any_byte_is_noticed_and_changes_nothing() {
    for differing in 0..4u64 {
        let mut file = file_of(&[(10, b"abcd"), (20, b"z")]);
        let mut data = *b"abcd";
        data[differing as usize] = b'!';
        let given = [&b"0123456789"[..], &data, b"0123456789"].concat();
        let offset = 10 + differing;
        let held = b"abcd"[differing as usize];
        let conflict = Error::Conflict { offset, held, given: b'!' };
        assert_eq!(file.write(0, &given), Err(conflict));
        assert_eq!(file.blocks(), [Span::new(10, 4), Span::new(20, 1)]);
        assert_eq!(file.read(10, 4).unwrap(), b"abcd");
    }
}

#[test]
fn conflicts_are_replaced_where_that_is_configured() {
    let mut file = SparseFile::builder("test").on_conflict(OnConflict::Replace).build();
    file.write(2, b"cd").unwrap();
    file.write(6, b"gh").unwrap();
    assert_eq!(file.write(0, b"ABCDEFGH").unwrap(), 4);
    assert_eq!(file.read(0, 8).unwrap(), b"ABCDEFGH");
    assert_eq!(file.counters().wasted_bytes, 4);
}

#[test]
fn ranges_past_the_greatest_offset_are_errors() {
    let mut file = SparseFile::new("test");
    let overflow = Error::Overflow { offset: u64::MAX, length: 1 };
    assert_eq!(file.write(u64::MAX, b"x"), Err(overflow.clone()));
    assert_eq!(file.read(u64::MAX, 1), Err(overflow.clone()));
    assert_eq!(file.need(u64::MAX, 1), Err(overflow.clone()));
    assert_eq!(file.erase(u64::MAX, 1), Err(overflow.clone()));
    assert_eq!(file.pin(Span::new(u64::MAX, 1)), Err(overflow));
    assert!(!file.has(u64::MAX, 1));
    file.write(u64::MAX - 1, b"x").unwrap();
    assert_eq!(file.read(u64::MAX - 1, 1).unwrap(), b"x");
}

#[test]
fn nothing_is_needed_or_accepted_beyond_the_end() {
    let mut file = SparseFile::builder("test").length(10).build();
    assert_eq!(file.need(8, 100).unwrap(), [Span::new(8, 2)]);
    assert_eq!(file.need(50, 100).unwrap(), []);
    let beyond = Error::BeyondLength { offset: 9, length: 2, file_length: 10 };
    assert_eq!(file.write(9, b"xy"), Err(beyond.clone()));
    assert_eq!(file.read(9, 2), Err(beyond));
    assert!(file.write(9, b"x").is_ok() && !file.has(9, 2));
    assert!(file.set_length(9).is_err() && file.set_length(12).is_ok());
    assert_eq!(file.need(0, 99).unwrap(), [Span::new(0, 9), Span::new(10, 2)]);
}

#[test]
fn a_read_of_missing_bytes_names_the_first_missing_range() {
    let file = file_of(&[(0, b"ab"), (4, b"ef")]);
    let missing = Span::new(2, 2);
    assert_eq!(file.read(1, 9), Err(Error::NotHeld { offset: 1, length: 9, missing }));
    assert_eq!(file.counters().misses, 1);
    // A length that exceeds memory must not be allocated.
    assert!(file.read(0, u64::MAX).is_err());
}

#[test]
fn a_range_of_no_bytes_is_held_and_never_needed() {
    let mut file = file_of(&[(5, b"x")]);
    assert!(file.has(0, 0) && file.has(5, 0) && file.has(u64::MAX, 0));
    assert_eq!(file.read(3, 0).unwrap(), b"");
    assert_eq!(file.need(3, 0).unwrap(), []);
    assert_eq!(file.write(3, b"").unwrap(), 0);
    assert_eq!(file.erase(5, 0).unwrap(), 0);
    assert_eq!(file.num_bytes(), 1);
}

#[test]
fn erasing_the_middle_of_a_block_leaves_two() {
    let mut file = file_of(&[(0, b"abcdef")]);
    assert_eq!(file.erase(2, 2).unwrap(), 2);
    assert_eq!(file.blocks(), [Span::new(0, 2), Span::new(4, 2)]);
    assert_eq!(file.erase(1, 100).unwrap(), 3);
    assert_eq!(file.blocks(), [Span::new(0, 1)]);
}

#[test]
fn blocks_larger_than_a_leaf_are_one_block() {
    let data: Vec<u8> = (0..1_000_000u32).map(|i| (i % 251) as u8).collect();
    let mut file = file_of(&[(7, &data)]);
    assert_eq!(file.blocks(), [Span::new(7, 1_000_000)]);
    assert_eq!((file.num_blocks(), file.num_bytes()), (1, 1_000_000));
    assert_eq!(file.read(7, 1_000_000).unwrap(), data);
    assert_eq!(file.read(65_530, 20).unwrap(), data[65_523..65_543]);
    file.erase(500_000, 1).unwrap();
    assert_eq!(file.num_blocks(), 2);
}

#[test]
fn descending_writes_join_across_leaves() {
    let mut file = SparseFile::new("test");
    for i in (0..4_000u64).rev() {
        file.write(i * 64, &[i as u8; 64]).unwrap();
    }
    assert_eq!(file.blocks(), [Span::new(0, 256_000)]);
    assert_eq!(file.read(64 * 255, 128).unwrap(), [[255u8; 64], [0; 64]].concat());
    // The number of leaves must stay near the minimum.
    assert!(file.memory_bytes() < 300_000, "{}", file.memory_bytes());
}

#[test]
fn a_block_of_one_byte_costs_at_most_eleven_bytes_of_memory() {
    for (spacing, stride) in [(2, 1), (1000, 1), (3, 7919), (1 << 20, 1)] {
        let count = 100_000u64;
        let mut file = SparseFile::new("test");
        for i in 0..count {
            file.write(i * stride % count * spacing, &[1]).unwrap();
        }
        assert_eq!(file.num_blocks() as u64, count);
        let each = file.memory_bytes() as f64 / count as f64;
        assert!(each <= 11.0, "{each} bytes at a spacing of {spacing}, stride {stride}");
    }
}

#[test]
fn many_reads_at_once_are_those_one_by_one() {
    let file = file_of(&[(0, b"abcdef"), (10, b"xyz")]);
    let spans = [Span::new(10, 2), Span::new(0, 0), Span::new(3, 3)];
    let mut buffer = [0; 5];
    file.read_many_into(spans, &mut buffer).unwrap();
    assert_eq!(&buffer, b"xydef");
    assert_eq!((file.counters().hits, file.counters().read_bytes), (3, 5));
    let missing = Span::new(6, 1);
    let error = file.read_many_into([Span::new(0, 3), Span::new(5, 2)], &mut buffer);
    assert_eq!(error, Err(Error::NotHeld { offset: 5, length: 2, missing }));
}

#[test]
fn needs_of_many_ranges_are_merged_by_cost() {
    let file = file_of(&[(10, b"x"), (20, &[1; 1000])]);
    let wanted = [Span::new(15, 10), Span::new(0, 12), Span::new(1100, 5)];
    let exact = file.need_many(&wanted, &Merge::Exact).unwrap();
    let spans =
        |list: &[(u64, u64)]| list.iter().map(|&(o, l)| Span::new(o, l)).collect::<Vec<_>>();
    assert_eq!(exact, spans(&[(0, 10), (11, 1), (15, 5), (1100, 5)]));
    let by_cost = file.need_many(&wanted, &Merge::Cost(CostModel::default())).unwrap();
    assert_eq!(by_cost, spans(&[(0, 1105)]));
    let greedy = file.need_many(&wanted, &Merge::Greedy { bytes_min: 15 }).unwrap();
    assert_eq!(greedy, spans(&[(0, 20), (1100, 15)]));
}

#[test]
fn reads_from_many_threads_agree() {
    let data: Vec<u8> = (0..300_000u32).map(|i| (i % 241) as u8).collect();
    let file = file_of(&[(0, &data)]);
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let (file, data) = (&file, &data);
            scope.spawn(move || {
                for i in (thread..data.len() - 100).step_by(997) {
                    assert_eq!(file.read(i as u64, 100).unwrap(), data[i..i + 100]);
                }
            });
        }
    });
    let reads: usize = (0..4).map(|t| (t..300_000 - 100).step_by(997).count()).sum();
    assert_eq!(file.counters().hits, reads as u64);
}

#[test]
fn of_many_ranges_none_is_written_where_one_conflicts() {
    let mut file = file_of(&[(10, b"abc")]);
    let spans = |list: &[(u64, u64)]| {
        list.iter().map(|&(o, l)| Span::new(o, l)).collect::<Vec<_>>().into_iter()
    };
    let conflict = |offset| Error::Conflict { offset, held: b'a', given: b'X' };
    let held = file.write_many(spans(&[(30, 2), (10, 1), (40, 2)]), b"jjXkk");
    assert_eq!(held, Err(conflict(10)));
    let each_other = file.write_many(spans(&[(30, 2), (20, 1), (31, 1)]), b"jak X"[..4].as_ref());
    assert_eq!(
        each_other.map_err(|error| matches!(error, Error::Conflict { offset: 31, .. })),
        Err(true)
    );
    assert_eq!(file.blocks(), [Span::new(10, 3)]);
    assert_eq!(file.write_many(spans(&[(30, 2), (11, 1), (31, 1)]), b"jkbk"), Ok(2));
}
