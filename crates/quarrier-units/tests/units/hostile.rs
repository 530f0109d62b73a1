//! Hostile objects: they give an error, or rows that may be of the unit; no panic, and no allocation for
//! lengths that a file merely claims. `MUTANTS=100000` tries more.

use quarrier::Search;
use quarrier_core::source::Memory;
use quarrier_search::Pattern;
use quarrier_units::{Error, Identity, Labels, Object};

use super::lab::Lab;

/// Pseudorandom numbers, the same every time (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as usize % bound.max(1)
    }
}

/// Lengths, offsets and counts, as flatbuffers and the footer's JSON write them.
const WORDS: [&[u8]; 11] = [
    &[0; 4],
    &[0xFF; 8],
    &[0xFF, 0xFF, 0xFF, 0x7F],
    &[0, 0, 0, 0x80],
    &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F],
    &[0, 0, 0, 0, 0, 1, 0, 0],
    b"18446744073709551615",
    b"-1",
    b"null",
    b"[[[[",
    b"\"",
];

fn mutated(whole: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        match random.below(5) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.below(256) as u8,
            2 => bytes.truncate(at.max(1)),
            3 => {
                let word = WORDS[random.below(WORDS.len())];
                let end = (at + word.len()).min(bytes.len());
                bytes[at..end].copy_from_slice(&word[..end - at]);
            }
            _ => {
                let from = random.below(bytes.len());
                let length = random.below(64).min(bytes.len() - from.max(at).min(bytes.len()));
                bytes.copy_within(from..from + length, at);
            }
        }
    }
    bytes
}

#[test]
fn hostile_objects_are_refused_or_read_within_their_unit() {
    // The test catches panics of the library, which would otherwise be printed.
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !quarrier_messages::is_panic_caught() {
            default_hook(panic);
        }
    }));
    let lab = Lab::with(b"ab abc ab ab\0 abcabc");
    let patterns = vec![
        Pattern::literal("ab").unwrap(),
        Pattern::regex("ab").unwrap(),
        Pattern::regex("[a-c]+").unwrap().named("run"),
    ];
    let search = Search::new(patterns);
    let (mut source, mut units) = (lab.units(u64::MAX), lab.search_units(&search));
    let unit = source.unit(0);
    units.store(&mut source, &unit).unwrap();
    let whole = std::fs::read(lab.results().path(units.job(), &unit)).unwrap();
    let range = unit.range.clone();
    let identity = Identity { job: units.job().to_string(), unit, patterns: 3 };
    let labels = Labels::of(search.patterns());
    let mutants = std::env::var("MUTANTS").ok().and_then(|n| n.parse().ok()).unwrap_or(3000);
    let (mut random, mut read) = (Random(7), 0);
    for _ in 0..mutants {
        let bytes = mutated(&whole, &mut random);
        let object = Object::open_unsummed(Box::new(Memory::new("object", bytes)), &identity);
        let mut last = 0;
        let rows = object.and_then(|object| {
            object.rows(&labels, 0, &mut |row| {
                assert!(range.contains(&row.offset) && row.offset >= last && row.pattern < 3);
                assert_eq!(row.found.len(), row.length as usize);
                last = row.offset;
                Ok(())
            })
        });
        match rows {
            Ok(()) => read += 1,
            Err(Error::Damaged { name, .. }) => assert_eq!(name, "object"),
            Err(error) => panic!("{error}"),
        }
    }
    assert!(read > 0 && read < mutants, "{read} of {mutants}");
}
