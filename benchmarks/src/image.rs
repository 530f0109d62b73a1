//! The image of the search benchmark: a disk's mix of data with keywords planted in it.
//!
//! 35 % noise (like compressed files), 25 % text, 20 % zeros, 10 % log lines, 10 % binary records,
//! in segments of 64 KiB to 4 MiB. Every 32 KiB contain a planted keyword, and one crosses each
//! boundary of 1 MiB, where searchers divide the data; there is one at the start and one at the
//! end. A seed determines everything, so the offset of every finding is known.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::patterns::PatternFiles;
use crate::random::{Random, vocabulary};

/// Numbers of keywords to search for at once.
pub(crate) const SETS: [usize; 6] = [1, 10, 100, 1_000, 10_000, 100_000];

/// Increase it when the data change, so that old files are not used.
const VERSION: u32 = 1;
const SLOT_BYTES: usize = 32 << 10;
const BORDER_BYTES: usize = 1 << 20;
const PAGE_BYTES: usize = 4096;
const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// The image, on disk.
pub(crate) struct Image {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// The sum of all its bytes.
    pub(crate) sum: u64,
    /// Keywords by offset.
    pub(crate) plants: Vec<Plant>,
    pub(crate) keywords: Vec<Vec<u8>>,
}

/// A keyword at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Plant {
    pub(crate) offset: u64,
    pub(crate) keyword: usize,
}

impl Image {
    /// Prepares an image of `bytes` bytes, a multiple of 1 MiB; makes it if `folder` does not have
    /// it yet.
    pub(crate) fn prepare(folder: &Path, bytes: u64) -> Result<Self> {
        let keywords = keywords();
        let size = usize::try_from(bytes)?;
        let plants = plants(size, &keywords);
        let name = format!("image-v{VERSION}-{}MiB", bytes >> 20);
        let path = folder.join(format!("{name}.img"));
        let sum_path = folder.join(format!("{name}.sum"));
        let known = fs::read_to_string(&sum_path).ok().and_then(|sum| sum.trim().parse().ok());
        let complete = fs::metadata(&path).is_ok_and(|found| found.len() == bytes);
        let sum = match known.filter(|_| complete) {
            Some(sum) => sum,
            None => {
                eprintln!("making {}", path.display());
                let data = make(size, &plants, &keywords);
                write(&path, &data)?;
                let sum: u64 = data.iter().map(|&byte| u64::from(byte)).sum();
                write(&sum_path, format!("{sum}\n").as_bytes())?;
                sum
            }
        };
        Ok(Image { path, bytes, sum, plants, keywords })
    }

    /// Yields the plants of the first `patterns` keywords.
    pub(crate) fn plants_of(&self, patterns: usize) -> impl Iterator<Item = Plant> {
        self.plants.iter().copied().filter(move |plant| plant.keyword < patterns)
    }

    /// Returns the files of the first `patterns` keywords.
    pub(crate) fn pattern_files(&self, folder: &Path, patterns: usize) -> Result<PatternFiles> {
        let name = format!("keywords-v{VERSION}-{patterns}");
        PatternFiles::write(folder, &name, &self.keywords[..patterns])
    }
}

/// Writes a file so that it is complete if it exists.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let fresh = path.with_extension("new");
    let write = || {
        File::create(&fresh)?.write_all(bytes)?;
        fs::rename(&fresh, path)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// Makes distinct keywords of 8 to 16 letters and digits. Each has a digit and a capital, so that
/// neither text nor log lines contain one by chance.
fn keywords() -> Vec<Vec<u8>> {
    let mut random = Random::new(9);
    let (mut seen, mut words) = (HashSet::new(), Vec::new());
    while words.len() < SETS[SETS.len() - 1] {
        let length_bytes = 8 + random.below(9);
        let word = random.word(ALPHABET, length_bytes);
        let is_odd = word.iter().any(u8::is_ascii_digit) && word.iter().any(u8::is_ascii_uppercase);
        if is_odd && seen.insert(word.clone()) {
            words.push(word);
        }
    }
    words
}

/// Chooses the positions of keywords. Each set (the first 1, 10, 100 …) gets its share of the
/// slots.
fn plants(size: usize, keywords: &[Vec<u8>]) -> Vec<Plant> {
    let mut random = Random::new(11);
    let mut plants = Vec::new();
    let mut plant = |random: &mut Random, place: &mut dyn FnMut(&mut Random, usize) -> usize| {
        let set = *random.pick(&SETS);
        let keyword = random.below(set);
        let offset = place(random, keywords[keyword].len()) as u64;
        plants.push(Plant { offset, keyword });
    };
    for slot in (0..size).step_by(SLOT_BYTES) {
        // Leaves 64 bytes at either end of a slot to the keywords at boundaries.
        plant(&mut random, &mut |random, _| slot + 64 + random.below(SLOT_BYTES - 160));
    }
    for border in (BORDER_BYTES..size).step_by(BORDER_BYTES) {
        plant(&mut random, &mut |random, length| border - 1 - random.below(length - 1));
    }
    plant(&mut random, &mut |_, _| 0);
    plant(&mut random, &mut |_, length| size - length);
    plants.sort_unstable();
    plants
}

fn make(size: usize, plants: &[Plant], keywords: &[Vec<u8>]) -> Vec<u8> {
    let mut random = Random::new(5);
    let words = Words::new();
    let mut image = vec![0; size];
    let mut rest = image.as_mut_slice();
    while !rest.is_empty() {
        let bytes = (PAGE_BYTES * (16 + random.below(1008))).min(rest.len());
        let (segment, after) = rest.split_at_mut(bytes);
        match random.below(100) {
            0..35 => random.fill(segment),
            35..60 => text(&mut random, &words, segment),
            60..80 => {} // zeros
            80..90 => log(&mut random, &words, segment),
            _ => records(&mut random, segment),
        }
        rest = after;
    }
    for plant in plants {
        let (start, keyword) = (plant.offset as usize, &keywords[plant.keyword]);
        image[start..start + keyword.len()].copy_from_slice(keyword);
    }
    image
}

/// The words of a language: few are frequent, many are rare.
struct Words {
    words: Vec<String>,
    ranks: Vec<u16>,
}

impl Words {
    fn new() -> Self {
        let words = vocabulary(&mut Random::new(77), 20_000);
        let weight = |rank: usize| 1.0 / (rank as f64 + 3.0);
        let total: f64 = (0..words.len()).map(weight).sum();
        let mut ranks = Vec::new();
        for rank in 0..words.len() {
            let share = weight(rank) / total * 65_536.0;
            ranks.extend(std::iter::repeat_n(rank as u16, share.ceil() as usize));
        }
        Words { words, ranks }
    }

    fn pick(&self, random: &mut Random) -> &str {
        &self.words[usize::from(*random.pick(&self.ranks))]
    }
}

fn text(random: &mut Random, words: &Words, segment: &mut [u8]) {
    fill_with(segment, |line| {
        let end = if random.below(12) == 0 { ".\n" } else { " " };
        line.extend_from_slice(words.pick(random).as_bytes());
        line.extend_from_slice(end.as_bytes());
    });
}

fn log(random: &mut Random, words: &Words, segment: &mut [u8]) {
    const STATUS: [u16; 6] = [200, 200, 200, 304, 404, 500];
    let mut seconds = 1_700_000_000 + random.below(1 << 24);
    fill_with(segment, |line| {
        seconds += random.below(5);
        let address: [usize; 4] = std::array::from_fn(|_| 1 + random.below(254));
        let [a, b, c, d] = address;
        let (bytes, status) = (20 + random.below(90_000), random.pick(&STATUS));
        let (word, page) = (words.pick(random), bytes % 977);
        let text = format!("{seconds} {a}.{b}.{c}.{d} GET /{word}/{page}.html {status} {bytes}\n");
        line.extend_from_slice(text.as_bytes());
    });
}

/// Writes records of a counter, a float, a small number, a zero and a larger number.
fn records(random: &mut Random, segment: &mut [u8]) {
    let mut counter = random.below(1 << 20) as u32;
    fill_with(segment, |line| {
        counter += 1;
        let float = random.below(1 << 24) as f32 / (1 << 22) as f32 - 2.0;
        line.extend_from_slice(&counter.to_le_bytes());
        line.extend_from_slice(&float.to_le_bytes());
        line.extend_from_slice(&(random.below(300) as u32).to_le_bytes());
        line.extend_from_slice(&(random.below(1 << 20) as u32).to_le_bytes());
    });
}

/// Fills a segment with one piece after another, and cuts the last one.
pub(crate) fn fill_with(mut segment: &mut [u8], mut next: impl FnMut(&mut Vec<u8>)) {
    let mut piece = Vec::new();
    while !segment.is_empty() {
        piece.clear();
        next(&mut piece);
        let bytes = piece.len().min(segment.len());
        segment[..bytes].copy_from_slice(&piece[..bytes]);
        segment = &mut segment[bytes..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plants_do_not_overlap_and_every_set_has_some() {
        let keywords = keywords();
        let size = 4 << 20;
        let plants = plants(size, &keywords);
        let end = |plant: &Plant| plant.offset as usize + keywords[plant.keyword].len();
        assert!(plants.windows(2).all(|pair| end(&pair[0]) <= pair[1].offset as usize));
        assert_eq!(plants[0].offset, 0);
        assert_eq!(plants.last().map(end), Some(size));
        let across = |border: usize| {
            plants.iter().any(|plant| (plant.offset as usize) < border && end(plant) > border)
        };
        assert!((1..4).all(|mebibyte| across(mebibyte << 20)));
        for set in SETS {
            assert!(plants.iter().any(|plant| plant.keyword < set));
        }
    }
}
