//! For any source, patterns, units and shards, the rows of the join are those of a plain search.

use proptest::prelude::*;
use quarrier::Search;
use quarrier_search::{Options, Pattern};
use quarrier_units::{Shard, UnitSearch};

use super::lab::{Lab, OwnedRow, planning};

/// Patterns of all types, among them regexes whose matches depend on the preceding match, on context, and on
/// bytes far away.
const PATTERNS: [&str; 48] = [
    "ab",
    "a",
    "aaa",
    "b\nc",
    "w:ab",
    "w:a",
    "x:61 ?? 62",
    "x:61 [1-3] 62",
    "x:(61 62 | 63) 64",
    "x:00 00 00",
    "u:ab",
    "o:abcd",
    "6:abc",
    "r:a",
    "r:aa",
    "r:aba",
    "r:a{2,5}",
    "r:(?:ab|a)(?:c|bcd)?",
    "r:a|ab|abc",
    "r:[ab]{3}",
    "r:ab*a",
    "r:(?:aab){1,2}",
    r"r:\bab",
    r"r:a\b",
    "r:(?m)^a{1,3}",
    "r:(?m)b$",
    r"r:\Aa",
    r"r:[ab]{2}\z",
    "r:[ab]{0,3}cd",
    r"r:a{1,4}c[ab]{1,2}\n",
    r"r:\bc.d|cdc",
    "r:d[ab]*d",
    r"r:(?m)^b?c$",
    "r:c{2,}d?",
    "r:a.*",
    "r:a.*b",
    "r:a.*?b",
    "r:c[^ab]*c",
    r"r:\S+c",
    "r:(?s).+d",
    "r:(?s:a.*)d|b",
    "r:a(?:.*c)?",
    "r:d(?s:.)*?d",
    r"r:(?m)^.+$",
    r"r:a[^d]*\z",
    r"r:[abc]+",
    r"r:[abcd\n]{1,7}",
    r"r:(?s:.){1,8}",
];

fn pattern(text: &str) -> Pattern {
    let (kind, rest) = text.split_once(':').unwrap_or(("", text));
    match kind {
        "" => Pattern::literal(rest),
        "w" => Pattern::literal(rest).and_then(Pattern::word),
        "x" => Pattern::hex(rest),
        "u" => Pattern::utf16(rest),
        "o" => Pattern::xor(rest.as_bytes(), rest),
        "6" => Pattern::base64(rest.as_bytes(), rest),
        _ => Pattern::regex(rest),
    }
    .unwrap()
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        8 => Just(b'a'), 6 => Just(b'b'), 3 => Just(b'c'), 2 => Just(b'd'), 1 => Just(b'\n'),
        2 => Just(0u8), 1 => Just(b'A'),
    ];
    let some = prop::collection::vec(byte, 0..60);
    let run = (prop_oneof![Just(b'a'), Just(0u8), Just(b'\n'), Just(b'x')], 1usize..80);
    let run = run.prop_map(|(byte, length)| vec![byte; length]);
    let wide = Just(b"a\0b\0".to_vec());
    let part = prop_oneof![5 => some, 2 => run, 1 => wide];
    prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

/// The steps applied to the units.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    pub(crate) unit_bytes: u64,
    pub(crate) buffer_bytes: usize,
    pub(crate) shards: Vec<u64>,
    /// The shards to run, in this order, some of them twice.
    pub(crate) order: Vec<u64>,
    /// The objects to remove before the join, as bits.
    pub(crate) removed: u32,
}

fn work() -> impl Strategy<Value = Work> {
    let shards = 1u64..=4;
    let order = prop::collection::vec(0u64..4, 0..8);
    (1u64..90, 1usize..70, shards, order, any::<u32>(), any::<bool>()).prop_map(
        |(unit_bytes, buffer_bytes, count, order, removed, is_sparse)| Work {
            unit_bytes,
            buffer_bytes,
            shards: (0..count).collect(),
            order: order.into_iter().filter(|&index| index < count).collect(),
            removed: if is_sparse { removed & removed.rotate_left(7) } else { removed },
        },
    )
}

/// Runs shards like other processes would.
fn run_shards(lab: &Lab, search: &Search, work: &Work) {
    let count = work.shards.len() as u64;
    for &index in &work.order {
        let shard = Shard { index, count };
        let mut source = lab.units(work.unit_bytes);
        let mut units = lab.search_units(search);
        for number in (0..source.len()).filter(|&number| shard.has(number)) {
            let unit = source.unit(number);
            let has = units.has(&unit).unwrap();
            match units.store(&mut source, &unit) {
                Ok((stored, _)) => {
                    assert_eq!(has, stored == quarrier_units::Stored::Before);
                    assert!(units.has(&unit).unwrap());
                }
                // Guessed matches may be too long, which the join decides.
                Err(error) => assert!(error.to_string().contains("matches more than"), "{error}"),
            }
        }
    }
}

fn check(text: &[u8], search: &Search, work: &Work) -> (Vec<OwnedRow>, bool) {
    check_in(&Lab::with(text), search, work)
}

/// Compares units, whose objects are kept where the lab keeps them, with a plain search.
pub(crate) fn check_in(lab: &Lab, search: &Search, work: &Work) -> (Vec<OwnedRow>, bool) {
    let expected = lab.plain(search);
    run_shards(lab, search, work);
    let source = lab.units(work.unit_bytes);
    let units = lab.search_units(search);
    for (number, unit) in source.units().enumerate() {
        if work.removed >> (number % 32) & 1 == 1 && units.has(&unit).unwrap() {
            lab.results().remove(units.job(), &unit).unwrap();
        }
    }
    for round in 0..2 {
        let (answer, joined) = lab.joined(search, work.unit_bytes);
        assert_eq!(answer, expected, "round {round}");
        if expected.1.is_none() {
            // Units that are searched together count as one.
            assert!(joined.run + joined.there <= source.len());
        }
    }
    (expected.0, expected.1.is_some())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..Default::default() })]

    #[test]
    fn the_rows_of_all_units_are_those_of_one_plain_search(
        text in text(),
        chosen in prop::collection::vec(0..PATTERNS.len(), 1..6),
        work in work(),
        ignore_case in any::<bool>(),
        utf16 in any::<bool>(),
        aligned in prop_oneof![4 => Just(1u64), 1 => Just(2), 1 => Just(3)],
        length_bytes_max in prop_oneof![3 => Just(8usize), 2 => Just(20), 1 => Just(1 << 16)],
    ) {
        let patterns = chosen.iter().map(|&index| pattern(PATTERNS[index])).collect();
        let options = Options {
            ignore_case,
            utf16,
            regex_length_bytes_max: length_bytes_max,
            ..Options::default()
        };
        let work = Work { unit_bytes: work.unit_bytes.max(text.len() as u64 / 24 + 1), ..work };
        let search = Search::new(patterns)
            .options(options)
            .aligned(aligned)
            .planning(planning(work.buffer_bytes));
        check(&text, &search, &work);
    }
}

#[test]
fn a_range_is_cut_like_a_source() {
    let text = b"ab cab abab xx ab";
    let lab = Lab::with(text);
    let patterns = || vec![pattern("ab"), pattern("r:[ab]+")];
    for range in [0..17, 1..16, 5..5, 3..100] {
        let search = Search::new(patterns()).range(range.clone()).planning(planning(7));
        let expected = lab.plain(&search);
        for unit_bytes in [1, 2, 5, 100] {
            let mut source = lab.units_in(&range, unit_bytes);
            let mut rows = Vec::new();
            let mut units = lab.search_units(&search);
            units
                .join(&mut source, &mut |row| {
                    rows.push(OwnedRow::of(row));
                    Ok(())
                })
                .unwrap();
            assert_eq!(rows, expected.0, "{range:?} {unit_bytes}");
        }
    }
}

#[test]
fn without_a_folder_a_source_is_searched_as_one() {
    let lab = Lab::with(b"aaaaa");
    let search = Search::new(vec![pattern("r:aa")]);
    let mut offsets = Vec::new();
    let mut units = UnitSearch::new(&search, &lab.machine, &lab.stop);
    let joined = units.join(&mut lab.units(1), &mut |row| {
        offsets.push(row.offset);
        Ok(())
    });
    assert_eq!((joined.unwrap(), offsets), (quarrier_units::Joined::default(), vec![0, 2]));
}

#[test]
fn patterns_that_look_alike_keep_their_rows_and_numbers() {
    let text = b"ab AB ab";
    let work =
        Work { unit_bytes: 3, buffer_bytes: 64, shards: vec![0], order: vec![0], removed: 0 };
    let patterns = vec![pattern("ab"), pattern("r:ab"), pattern("ab"), pattern("AB").named("ab")];
    let (rows, _) = check(text, &Search::new(patterns), &work);
    let numbers: Vec<u32> = rows.iter().map(|row| row.pattern).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 0, 1, 2]);
}
