//! Texts to search: small alphabets, patterns at borders, truncated patterns.

use arbitrary::{Result, Unstructured};
use quarrier_search::Pattern;

/// Bytes that are easily confused: by case, by bit 7, by half, by being zero.
const ALPHABETS: [&[u8]; 10] = [
    b"a",
    b"ab",
    b"aAbB",
    b"\0",
    b"\0a",
    b"\0\xFF",
    b"aA\x01\xC1\xE1\x21",
    b"Kk@`[{",
    b"aq\x11\x61\x1a\x16",
    b"abcdefgh \n",
];

/// Draws the bytes for patterns and text.
pub(crate) fn alphabet(u: &mut Unstructured<'_>) -> Result<&'static [u8]> {
    u.choose(&ALPHABETS).copied()
}

/// Draws `count` bytes of `alphabet`.
pub(crate) fn letters(u: &mut Unstructured<'_>, alphabet: &[u8], count: usize) -> Result<Vec<u8>> {
    (0..count).map(|_| u.choose(alphabet).copied()).collect()
}

/// Maximum length of a text, if chunks are large and patterns few: hundreds of inputs should run
/// per second.
const TEXT_BYTES_MAX: usize = 36 * 1024;
const CHUNKS_MAX: usize = 100;
const COMPARISONS_MAX: usize = 200 * 1024;

/// Sizes at which implementations change their algorithm, besides the ends of chunks.
const BORDERS: [usize; 3] = [64, 4096, 16 * 1024];

/// Draws a text that contains plants, the results of `plant`: whole, truncated, and across borders.
/// Its length allows for the number of needles to search for.
pub(crate) fn draw<'a>(
    u: &mut Unstructured<'a>,
    alphabet: &[u8],
    chunk_bytes: usize,
    needles: usize,
    mut plant: impl FnMut(&mut Unstructured<'a>) -> Result<Vec<u8>>,
) -> Result<Vec<u8>> {
    let most = TEXT_BYTES_MAX.min(chunk_bytes * CHUNKS_MAX).min(COMPARISONS_MAX / needles);
    let mut text = if u.is_empty() { plant(u)? } else { Vec::new() };
    while !u.is_empty() && text.len() < most {
        match u.int_in_range(0..=15)? {
            0..=3 => {
                let count = u.int_in_range(1..=24)?;
                text.extend(letters(u, alphabet, count)?);
            }
            4..=8 => text.extend(plant(u)?),
            9..=10 => {
                let whole = plant(u)?;
                let cut = u.int_in_range(0..=whole.len())?;
                text.extend(if u.arbitrary()? { &whole[..cut] } else { &whole[cut..] });
            }
            11 => {
                let (byte, count) = (*u.choose(alphabet)?, u.int_in_range(1..=150)?);
                text.resize(text.len() + count, byte);
            }
            12..=13 => {
                // Up to a little before a border, where the next plant follows.
                let border = match u.int_in_range(0..=5)? {
                    index @ 0..=2 => BORDERS[index],
                    _ => chunk_bytes,
                };
                let before = u.int_in_range(0..=12)?;
                let end = (text.len() + before).next_multiple_of(border) - before;
                let byte = *u.choose(alphabet)?;
                text.resize(end.max(text.len()), byte);
                text.extend(plant(u)?);
            }
            14 => text.push(u.arbitrary()?),
            _ => {
                let pages = u.int_in_range(1..=3)?;
                text.resize(text.len() + pages * 4096, 0);
            }
        }
    }
    text.truncate(most);
    Ok(text)
}

/// Formats a text for display: counts runs, and leaves out the rest of a long one.
pub(crate) fn shown(text: &[u8]) -> String {
    const PARTS_MAX: usize = 60;
    const RUN_BYTES_MIN: usize = 12;
    let mut parts = vec![format!("text of {} bytes:", text.len())];
    let mut plain = String::new();
    for run in text.chunk_by(|a, b| a == b) {
        if run.len() < RUN_BYTES_MIN {
            plain += &run.escape_ascii().to_string();
            continue;
        }
        parts.extend((!plain.is_empty()).then(|| format!("b\"{plain}\"")));
        plain.clear();
        parts.push(format!("b\"{}\" x {}", run[..1].escape_ascii(), run.len()));
    }
    parts.extend((!plain.is_empty()).then(|| format!("b\"{plain}\"")));
    if parts.len() > PARTS_MAX {
        parts.truncate(PARTS_MAX);
        parts.push("…".to_string());
    }
    parts.join(" ")
}

/// Formats patterns for display, and counts equal ones.
pub(crate) fn shown_patterns(patterns: &[Pattern]) -> String {
    let line = |run: &[Pattern]| match run {
        [only] => format!("{only:?}"),
        all => format!("{} x {:?}", all.len(), all[0]),
    };
    patterns.chunk_by(|a, b| a == b).map(line).collect::<Vec<_>>().join("\n")
}
