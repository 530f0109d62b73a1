//! Hostile inputs: each states which kind of program it hurts, and how.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::image::{fill_with, write};
use crate::patterns::PatternFiles;
use crate::random::{Random, vocabulary};

/// Increase it when the data change, so that old files are not used.
const VERSION: u32 = 1;
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";

/// A hostile input.
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) hurts: &'static str,
    /// The base size is shifted right by this for its size.
    shift: u32,
    make: fn(usize) -> GeneratedInput,
}

/// Data, patterns, and the number of matches if it is known without a search.
struct GeneratedInput {
    data: Vec<u8>,
    patterns: Vec<Vec<u8>>,
    expected: Option<u64>,
}

pub(crate) const DEFINITIONS: [Definition; 7] = [
    Definition {
        name: "prefixes",
        hurts: "filters on a pattern's first bytes: 1,000 patterns of 10 letters, the text is \
                their first 6 letters, each time with a letter after them",
        shift: 0,
        make: prefixes,
    },
    Definition {
        name: "zero-rich",
        hurts: "filters on the bytes that are frequent in disks: 100 patterns of 8 zeros with \
                one other byte before, between or after them, in zeros",
        shift: 0,
        make: zero_rich,
    },
    Definition {
        name: "findings",
        hurts: "the cost of reporting: 100 patterns of 8 letters, one every 64 bytes",
        shift: 0,
        make: findings,
    },
    Definition {
        name: "all-zeros",
        hurts: "the same, to the extreme: 8 zeros in zeros, a finding at every offset",
        shift: 2,
        make: all_zeros,
    },
    Definition {
        name: "repeats",
        hurts: "searches that jump or restart: aaa and aaaaab in aaaa…, with some b",
        shift: 0,
        make: repeats,
    },
    Definition {
        name: "words",
        hurts: "short patterns with common letters: 1,000 words of 5 to 8 letters, in a text \
                of 20,000 such words",
        shift: 0,
        make: |size| words(size, 20_000),
    },
    Definition {
        name: "words-only",
        hurts: "the same, and every word of the text is searched for",
        shift: 0,
        make: |size| words(size, 1_000),
    },
];

/// A hostile input, on disk.
pub(crate) struct Input {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) pattern_count: usize,
    pub(crate) patterns: PatternFiles,
    pub(crate) expected: Option<u64>,
}

impl Definition {
    /// Prepares the input; writes its file if `folder` does not have it yet.
    pub(crate) fn prepare(&self, folder: &Path, base_bytes: u64) -> Result<Input> {
        let bytes = (base_bytes >> self.shift).max(1 << 20);
        let name = format!("{}-v{VERSION}-{}MiB", self.name, bytes >> 20);
        let path = folder.join(format!("{name}.img"));
        let made = (self.make)(usize::try_from(bytes)?);
        if !fs::metadata(&path).is_ok_and(|found| found.len() == bytes) {
            eprintln!("making {}", path.display());
            write(&path, &made.data)?;
        }
        Ok(Input {
            path,
            bytes,
            pattern_count: made.patterns.len(),
            patterns: PatternFiles::write(folder, &name, &made.patterns)?,
            expected: made.expected,
        })
    }
}

fn random_words(random: &mut Random, count: usize, length_bytes: usize) -> Vec<Vec<u8>> {
    let mut words: Vec<_> = (0..count).map(|_| random.word(LETTERS, length_bytes)).collect();
    words.sort_unstable();
    words.dedup();
    words
}

fn prefixes(size: usize) -> GeneratedInput {
    let mut random = Random::new(21);
    let patterns = random_words(&mut random, 1_000, 10);
    let mut data = vec![0; size];
    fill_with(&mut data, |piece| {
        let pattern = random.pick(&patterns);
        if random.below(4_096) == 0 {
            piece.extend_from_slice(pattern);
        } else {
            piece.extend_from_slice(&pattern[..6]);
            piece.push(*random.pick(LETTERS));
        }
    });
    GeneratedInput { data, patterns, expected: None }
}

fn zero_rich(size: usize) -> GeneratedInput {
    const STEP_BYTES: usize = 512 << 10;
    let others: Vec<u8> = (0..25).map(|i| 1 + 10 * i).collect();
    let with = |other: u8, before: usize| {
        let mut pattern = vec![0; 9];
        pattern[before] = other;
        pattern
    };
    let patterns: Vec<_> = [8, 0, 4, 6]
        .iter()
        .flat_map(|&before| others.iter().map(move |&o| with(o, before)))
        .collect();
    let mut data = vec![0; size];
    let places = (STEP_BYTES..size - 64).step_by(STEP_BYTES);
    let count = places.len();
    for (number, place) in places.enumerate() {
        // At piece boundaries and some bytes after them.
        data[place + number % 17] = others[number % others.len()];
    }
    GeneratedInput { data, patterns, expected: Some(4 * count as u64) }
}

fn findings(size: usize) -> GeneratedInput {
    let mut random = Random::new(23);
    let patterns = random_words(&mut random, 100, 8);
    let mut data = vec![0; size];
    fill_with(&mut data, |piece| {
        let pattern: &Vec<u8> = random.pick(&patterns);
        piece.extend_from_slice(pattern);
        let gap_bytes = 48 + random.below(17);
        piece.extend(random.word(LETTERS, gap_bytes));
    });
    GeneratedInput { data, patterns, expected: None }
}

fn all_zeros(size: usize) -> GeneratedInput {
    GeneratedInput {
        data: vec![0; size],
        patterns: vec![vec![0; 8]],
        expected: Some(size as u64 - 7),
    }
}

fn repeats(size: usize) -> GeneratedInput {
    let mut random = Random::new(25);
    let mut data = vec![b'a'; size];
    let (mut start, mut expected) = (0, 0);
    loop {
        let run_bytes = 1 + random.below(1 << 20);
        let is_last = start + run_bytes >= size;
        let run_bytes = run_bytes.min(size - start);
        expected += run_bytes.saturating_sub(2) + usize::from(run_bytes >= 5 && !is_last);
        if is_last {
            break;
        }
        data[start + run_bytes] = b'b';
        start += run_bytes + 1;
        if start == size {
            break;
        }
    }
    let patterns = vec![b"aaa".to_vec(), b"aaaaab".to_vec()];
    GeneratedInput { data, patterns, expected: Some(expected as u64) }
}

fn words(size: usize, vocabulary_words: usize) -> GeneratedInput {
    let mut random = Random::new(26);
    let mut all: Vec<_> = vocabulary(&mut random, 60_000);
    all.retain(|word| (5..=8).contains(&word.len()));
    all.truncate(vocabulary_words);
    let patterns = all[..1_000].iter().map(|word| word.clone().into_bytes()).collect();
    let mut data = vec![0; size];
    fill_with(&mut data, |piece| {
        piece.extend_from_slice(random.pick(&all).as_bytes());
        piece.push(if random.below(12) == 0 { b'\n' } else { b' ' });
    });
    GeneratedInput { data, patterns, expected: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts matches of every pattern at every position.
    fn count(made: &GeneratedInput) -> u64 {
        let at = |start: usize| {
            made.patterns.iter().filter(|pattern| made.data[start..].starts_with(pattern)).count()
        };
        (0..made.data.len()).map(|start| at(start) as u64).sum()
    }

    #[test]
    fn expected_counts_are_right() {
        for definition in DEFINITIONS {
            let made = (definition.make)(2 << 20);
            assert_eq!(made.data.len(), 2 << 20, "{}", definition.name);
            if let Some(expected) = made.expected {
                assert_eq!(count(&made), expected, "{}", definition.name);
                assert!(expected > 0, "{}", definition.name);
            }
        }
    }

    #[test]
    fn the_patterns_are_all_different() {
        for definition in DEFINITIONS {
            let mut patterns = (definition.make)(1 << 20).patterns;
            let before = patterns.len();
            patterns.sort_unstable();
            patterns.dedup();
            assert_eq!(patterns.len(), before, "{}", definition.name);
        }
    }
}
