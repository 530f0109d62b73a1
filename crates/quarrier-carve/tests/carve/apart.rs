//! Strides that are judged apart give the files of a run that judges them itself.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Mutex;

use proptest::prelude::*;
use quarrier_carve::{Carved, Carver, JudgedStrides, Summary};
use quarrier_core::source::Memory;

use crate::sample::{CarvedFiles, fixed_cases, noise};
use crate::{gif, jpg};

/// JSON of strides by their starts, as another process sends it.
struct Sent(Mutex<HashMap<u64, String>>);

impl JudgedStrides for Sent {
    fn stride(&self, start: u64) -> Option<String> {
        self.0.lock().unwrap().remove(&start)
    }
}

type Found = (Vec<(Carved, Vec<u8>)>, Summary);

fn run(carver: &Carver<'_>, source: &Memory<Vec<u8>>) -> Found {
    let found = CarvedFiles::default();
    let summary = carver.run(source, &found).expect("bytes in memory can be carved");
    let mut files = found.0.into_inner().unwrap();
    files.sort_by_key(|(one, _)| (one.offset(), one.length(), one.kind.clone()));
    (files, summary)
}

/// What a summary says of the source, not of the time that it took.
fn of_source(summary: &Summary) -> String {
    let Summary { bytes, hole_bytes, candidates, files, mended, skimmed, cost_bytes, .. } = summary;
    let Summary { unreadable, stopped, position, block_bytes, .. } = summary;
    format!(
        "{bytes} {hole_bytes} {candidates} {files:?} {mended} {skimmed:?} {cost_bytes} {unreadable:?} {stopped} \
         {position} {block_bytes}"
    )
}

/// An image of two strides and a bit, with files in them and across their borders.
fn image(seed: u32, places: &[(usize, usize)]) -> Memory<Vec<u8>> {
    let mut image = vec![0x55; (33 << 20) + 77];
    let header = b"\xFD7zXZ\0\0\x04\xE6\xD6\xB4\x46head".to_vec();
    let files = [gif::small(), jpg::small(), header, noise(seed, 70_000)];
    let borders = [(0, (16 << 20) - 20), (1, (32 << 20) - 100)];
    for (kind, place) in places.iter().copied().chain(borders) {
        let mut file = files[kind % files.len()].clone();
        if place % 5 == 0 {
            file.truncate(file.len() * 2 / 3);
        }
        let at = place % (image.len() - file.len());
        image[at..at + file.len()].copy_from_slice(&file);
    }
    Memory::new("image", image)
}

proptest! {
    #![proptest_config(fixed_cases(6))]

    #[test]
    fn files_and_summary_are_those_of_one_run(
        seed in any::<u32>(),
        places in prop::collection::vec((0..4_usize, any::<usize>()), 0..200),
        workers in prop::collection::vec(1..4_usize, 2),
        unit_bytes in prop_oneof![Just(1), Just(17 << 20), Just(u64::MAX)],
        memory_bytes in prop_oneof![Just(64_u64 << 10), Just(1 << 30)],
        embedded in any::<bool>(),
        left_out in 0..4_usize,
        from in prop_oneof![Just(0_u64), 1..20_000_000_u64],
    ) {
        let source = image(seed, &places);
        let range = from..30_000_000 + from / 2;
        let carver = |workers: usize| {
            let carver = Carver::new().workers(workers).memory_bytes_max(memory_bytes);
            carver.embedded(embedded).ranges(vec![range.clone()])
        };
        let (files, summary) = run(&carver(workers[0]), &source);
        let apart = carver(workers[1]);
        let strides = apart.strides(&source, unit_bytes);
        prop_assert_eq!(strides.first().map(|first| first.start), Some(from));
        let mut lines = HashMap::new();
        for (index, range) in strides.iter().enumerate() {
            let mut last = range.start;
            let mut take = |range: &Range<u64>, line: &str| {
                assert_eq!(range.start, last, "strides follow one another");
                last = range.end;
                if index != left_out {
                    lines.insert(range.start, line.to_string());
                }
                Ok(())
            };
            let judged = apart.judge(&source, range, &mut take).unwrap();
            prop_assert!(judged.is_complete && judged.is_readable);
            prop_assert_eq!(last, range.end);
        }
        let sent = Sent(Mutex::new(lines));
        let (found, account) = run(&carver(workers[0]).judged(&sent), &source);
        prop_assert_eq!(found, files);
        prop_assert_eq!(of_source(&account), of_source(&summary));
        prop_assert!(sent.0.into_inner().unwrap().is_empty());
    }
}

#[test]
fn damaged_strides_are_judged_again_or_harmless() {
    let places: Vec<(usize, usize)> = (0..40).map(|at| (at, at * 99_991)).collect();
    let source = image(3, &places);
    let carver = || Carver::new().workers(1).ranges(std::iter::once(0..16 << 20).collect());
    let (files, summary) = run(&carver(), &source);
    let mut first = None;
    let strides = carver().strides(&source, 1);
    let judged = carver().judge(&source, &strides[0], &mut |_, line| {
        first = Some(line.to_string());
        Ok(())
    });
    assert!(judged.unwrap().is_complete && strides.len() == 1);
    let line = first.unwrap();
    let with = |line: String| {
        let sent = Sent(Mutex::new(HashMap::from([(0, line)])));
        run(&carver().judged(&sent), &source)
    };
    for line in ["", "[]", "[0,16777216,[]]", &line[..line.len() - 1], &line[..line.len() / 2]] {
        let (found, account) = with(line.to_string());
        assert_eq!((found, of_source(&account)), (files.clone(), of_source(&summary)), "{line}");
    }
    // A digit more or less gives other offsets and lengths, also beyond the end of the source.
    let digits = line.char_indices().filter(|(_, one)| one.is_ascii_digit());
    for (at, _) in digits.step_by(97) {
        for digit in ["99999999999", "1", ""] {
            let _ = with([&line[..at], digit, &line[at + 1..]].concat());
        }
    }
}
