//! A cache of the codes of recent strings of up to eight bytes.
//!
//! Many columns have a few short strings: sides, states, currencies, symbols. Such a string is a
//! word with one possible slot in the table; a hit yields its code at once, and no copy waits for
//! its lookup. A slot holds the most recent of its strings.

/// A string of up to [`WORD_BYTES`] bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, packed(4))]
pub(super) struct Word {
    /// The bytes, padded with zeros.
    bytes: u64,
    len: u32,
}

pub(super) const WORD_BYTES: usize = 8;

impl Word {
    /// Makes the word of the first `len` bytes of `ahead`, at most [`WORD_BYTES`].
    #[inline(always)]
    pub(super) fn new(ahead: &[u8; WORD_BYTES], len: usize) -> Self {
        let others = 8 * (WORD_BYTES - len) as u32;
        let mask = u64::MAX.checked_shr(others).unwrap_or(0);
        Word { bytes: u64::from_le_bytes(*ahead) & mask, len: len as u32 }
    }

    /// Makes the word of a whole string; `None` if it is longer.
    #[inline]
    pub(super) fn of(text: &[u8]) -> Option<Self> {
        let mut ahead = [0; WORD_BYTES];
        ahead.get_mut(..text.len())?.copy_from_slice(text);
        Some(Word::new(&ahead, text.len()))
    }
}

/// A recent string with its code: 16 bytes, so that four share a cache line and none straddles two.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(16))]
struct RecentString {
    word: Word,
    code: u32,
}

/// An empty slot: no string has this length.
const NONE: RecentString = RecentString { word: Word { bytes: 0, len: u32::MAX }, code: 0 };

/// Minimum number of slots; there are twice as many slots as strings.
const PLACES_MIN: usize = 16;
/// A larger table would displace bytes and columns from the cache: 16,384 slots take 256 KiB,
/// enough for a column of five thousand strings. Tried and dropped: two strings per slot (a
/// mispredicted branch), and strings of up to 16 bytes in up to 2^18 slots (for a hundred thousand
/// strings, lookups that wait for their cache misses together are faster).
const PLACES_MAX: usize = 1 << 14;

/// The cache: a direct-mapped table of words.
#[derive(Debug)]
pub(super) struct Words {
    /// The slots, a power of two.
    places: Box<[RecentString]>,
}

impl Default for Words {
    fn default() -> Self {
        Words { places: Box::new([NONE; PLACES_MIN]) }
    }
}

impl Words {
    /// Returns the code of a string, if it is cached.
    #[inline(always)]
    pub(super) fn code(&self, word: Word) -> Option<u32> {
        let known = self.places.get(self.place(word))?;
        (known.word == word).then_some(known.code)
    }

    /// Caches a string in its slot; replaces the previous one.
    #[inline]
    pub(super) fn learn(&mut self, word: Word, code: u32) {
        let at = self.place(word);
        if let Some(known) = self.places.get_mut(at) {
            *known = RecentString { word, code };
        }
    }

    /// Makes room for `strings` strings, up to the maximum number of slots.
    pub(super) fn make_room(&mut self, strings: usize) {
        let count = (2 * strings).clamp(PLACES_MIN, PLACES_MAX).next_power_of_two();
        if count > self.places.len() {
            let before = std::mem::replace(&mut self.places, vec![NONE; count].into());
            for known in before.iter().filter(|known| known.word.len != NONE.word.len) {
                self.learn(known.word, known.code);
            }
        }
    }

    /// Returns the slot of a word: the high half of a product depends on all bytes, so crafted
    /// strings can at worst evict each other.
    #[inline(always)]
    fn place(&self, word: Word) -> usize {
        let product = (word.bytes ^ u64::from(word.len) << 56).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (product >> 32) as usize & (self.places.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::{PLACES_MAX, Word, Words};
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn words_differ_by_bytes_and_length() {
        let strings: [&[u8]; 7] = [b"", b"\0", b"\0\0", b"a", b"a\0", b"abcdefgh", b"abcdefg\0"];
        for (at, a) in strings.iter().enumerate() {
            for (other, b) in strings.iter().enumerate() {
                assert_eq!(Word::of(a) == Word::of(b), at == other, "{a:?} {b:?}");
            }
        }
        assert_eq!(Word::of(b"abcdefghi"), None);
        assert_eq!(Word::new(b"abcdefgh", 3), Word::of(b"abc").unwrap());
    }

    proptest! {
        #[test]
        fn a_known_code_is_the_last_one_learned(
            strings in proptest::collection::vec("[ab]{0,8}|[a-z]{2,4}", 0..3000),
        ) {
            let (mut words, mut codes) = (Words::default(), HashMap::new());
            for text in &strings {
                let word = Word::of(text.as_bytes()).unwrap();
                match words.code(word) {
                    Some(code) => prop_assert_eq!(Some(&code), codes.get(text)),
                    None => {
                        let next = codes.len() as u32;
                        words.learn(word, *codes.entry(text).or_insert(next));
                        words.make_room(codes.len());
                    }
                }
            }
            prop_assert!(words.places.len() <= PLACES_MAX);
        }
    }
}
