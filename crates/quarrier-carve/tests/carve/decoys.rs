//! Headers without files, before files and around them: the carver finds each file or lists its
//! range, and its work is bounded.

use proptest::prelude::*;
use quarrier_carve::{Carver, Extent, Status, Summary};
use quarrier_core::source::Memory;

use crate::floods::floods;
use crate::sample::{CarvedFiles, fixed_cases, mixed, noise};
use crate::{gif, gz, jpg, pdf, png};

const STRIDE_BYTES: u64 = 16 << 20;
/// Maximum cost of a stride's candidates, in bytes of fuel: 256 MiB for first looks, 512 MiB and 1
/// GiB for longer ones, and 512 MiB for the second look. In addition, the whole source may be read
/// once.
const COST_PER_STRIDE: u64 = 2304 << 20;
/// Maximum length of an image with its planted files.
const IMAGE_BYTES_MAX: usize = 40 << 20;

/// An image, with the offsets and lengths of its files.
#[derive(Default)]
struct Planted {
    image: Vec<u8>,
    files: Vec<(u64, u64)>,
}

impl Planted {
    fn add(&mut self, file: &[u8]) {
        self.files.push((self.image.len() as u64, file.len() as u64));
        self.image.extend_from_slice(file);
    }

    fn add_flood(&mut self, unit: &[u8], count: usize) {
        let bytes = (count * unit.len()).min(IMAGE_BYTES_MAX.saturating_sub(self.image.len()));
        self.image.extend(unit.iter().copied().cycle().take(bytes));
    }

    /// Returns the number of valid files, and of files in listed ranges; panics for the first file
    /// that is neither.
    fn check(self, carver: &Carver<'_>, what: &str) -> (usize, usize, Summary) {
        let strides = (self.image.len() as u64).div_ceil(STRIDE_BYTES);
        let bytes_max = strides * (COST_PER_STRIDE + self.image.len() as u64);
        let found = CarvedFiles::default();
        let summary = carver.run(&Memory::new("flood", self.image), &found);
        let summary = summary.expect("bytes in memory can be carved");
        let found = found.0.into_inner().expect("no thread panicked");
        let (mut valid, mut listed) = (0, 0);
        for (offset, length) in self.files {
            let is_valid = found.iter().any(|(one, _)| {
                let is_it = one.offset() == offset && one.length() == length;
                is_it && one.status == Status::Valid
            });
            let is_listed = summary.skimmed.iter().any(|one| one.range.contains(&offset));
            // A picture's header may claim thousands of bytes and continue in another picture.
            let is_inside = found.iter().any(|(one, _)| {
                let holds = |e: &Extent| (e.offset..e.end()).contains(&offset);
                one.status == Status::Valid && one.extents.iter().any(holds)
            });
            let is_reported = is_valid || is_listed || is_inside;
            assert!(is_reported, "{what}: byte {offset} is not reported");
            valid += usize::from(is_valid);
            listed += usize::from(is_listed && !is_valid);
        }
        let is_bounded = what == "thorough" || summary.cost_bytes <= bytes_max;
        assert!(is_bounded, "{what}: {} bytes", summary.cost_bytes);
        (valid, listed, summary)
    }
}

fn small_files() -> Vec<Vec<u8>> {
    vec![
        gz::packed("planted", &mixed(1, 30_000)),
        pdf::with_streams(&[&noise(2, 20_000)]).table(1).bytes(),
        png::picture(&noise(3, 256 * 100), 8192),
    ]
}

#[test]
fn thousands_of_headers_do_not_hide_the_files_after_them() {
    let gz = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3];
    let floods: [(&[u8], usize); 3] = [(&gz, 5000), (b"%PDF-1.4", 20_000), (b"BZh91AY&SY", 20_000)];
    for (header, count) in floods {
        let name = String::from_utf8_lossy(header);
        let mut planted = Planted::default();
        planted.add_flood(header, count);
        small_files().iter().for_each(|file| planted.add(file));
        let (valid, _, summary) = planted.check(&Carver::new(), &name);
        assert_eq!((valid, summary.skimmed.len()), (3, 0), "{name}");
    }
}

/// Gzip headers with a block that extends far into the following data: only reading reveals them.
fn long_decoys(count: usize) -> Vec<u8> {
    let mut unit = vec![0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3];
    // A stored block that ends after the header of the next unit.
    let stored = 10u16;
    unit.push(0);
    unit.extend(stored.to_le_bytes());
    unit.extend((!stored).to_le_bytes());
    unit.iter().copied().cycle().take(count * unit.len()).collect()
}

#[test]
fn unread_candidates_are_listed_and_thorough_returns_to_them() {
    let image = || {
        let mut planted = Planted { image: long_decoys(20_000), files: Vec::new() };
        planted.image.resize(planted.image.len().next_multiple_of(512), 0);
        planted.add(&gz::packed("planted", &noise(5, 1_500_000)));
        planted.image.resize(planted.image.len().next_multiple_of(4096), 0);
        planted.add(&gif::small());
        planted
    };
    let (valid, listed, summary) = image().check(&Carver::new(), "usual");
    assert!(listed > 0 || !summary.skimmed.is_empty(), "{valid} {:?}", summary.skimmed);
    let first = &summary.skimmed[0];
    assert!(first.range.end <= 1 << 20 && first.types == ["gz"] && first.places > 1000);
    let (valid, _, summary) = image().check(&Carver::new().reads_all(true), "thorough");
    assert_eq!((valid, summary.skimmed.len()), (2, 0));
}

#[test]
fn a_flood_in_one_place_takes_nothing_from_another() {
    // Pictures that claim 2 GB of compressed data: each is read to the end.
    let all = floods();
    let flood = all.iter().find(|one| one.name == "xz").expect("there is one");
    let mut planted = Planted::default();
    planted.add_flood(&flood.header, 50_000);
    for number in 0..40 {
        planted.image.resize(planted.image.len().next_multiple_of(128 << 10), 0);
        planted.add(&gz::packed("planted", &noise(number, 300_000)));
    }
    let (valid, ..) = planted.check(&Carver::new(), "xz");
    assert_eq!(valid, 40);
}

proptest! {
    #![proptest_config(fixed_cases(150))]
    #[test]
    fn a_file_among_any_headers_is_found_or_listed(
        kinds in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
        is_nested in any::<bool>(),
        count_log in 2u32..7,
        gap in prop_oneof![Just(0usize), 1usize..5000, Just(16 << 20)],
        align in prop::sample::select(vec![1usize, 512, 4096]),
        is_around in any::<bool>(),
        seed in any::<u32>(),
    ) {
        let all = floods();
        let chosen: Vec<_> = kinds.iter().map(|kind| kind.get(&all)).collect();
        let mut unit = Vec::new();
        for flood in &chosen {
            unit.extend_from_slice(&flood.header);
            // Nested: each begins directly after the header of the one before.
            if !is_nested {
                unit.extend(mixed(seed, flood.every.saturating_sub(flood.header.len())));
            }
        }
        let names: Vec<_> = chosen.iter().map(|flood| flood.name).collect();
        let mut planted = Planted::default();
        planted.add_flood(&unit, 10usize.pow(count_log));
        planted.image.resize(planted.image.len() + gap, 0);
        for file in small_files().into_iter().chain([jpg::small()]) {
            planted.image.resize(planted.image.len().next_multiple_of(align), 0);
            planted.add(&file);
            if is_around {
                planted.add_flood(&unit, 100);
            }
        }
        let what = format!("{names:?} {is_nested} 10^{count_log} {gap} {align} {is_around} {seed}");
        planted.check(&Carver::new(), &what);
    }
}
