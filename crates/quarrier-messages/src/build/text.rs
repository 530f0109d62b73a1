//! A column of strings: as codes of a dictionary, or plain.

use super::interner::{Interner, NO_CODE, SHORT_BYTES, Waiting};
use super::numbered::Numbered;
use super::short::{WORD_BYTES, Word, Words};
use crate::Packing;
use crate::column::raw::RawData;

/// Number of strings to look up together.
const BATCH: usize = 128;
const BATCH_BYTES: usize = 64 << 10;

/// A dictionary pays off if strings repeat: after this many rows with distinct strings, it must
/// save half of the rows.
const DISTINCT_TRIED: u64 = 1 << 20;
/// If this many strings contain no repetition, they count as unique, like order numbers: random
/// strings without one would have billions of possible values.
const UNIQUE_TRIED: u64 = 1 << 17;

/// The builder of a column of strings.
#[derive(Debug)]
pub(super) struct TextBuilder {
    pub(super) rows: usize,
    /// A code per row; rows that wait for a lookup have [`NO_CODE`].
    codes: Vec<u32>,
    /// The last rows, whose strings wait for a lookup; without a dictionary, the strings of all
    /// rows.
    waiting: Waiting,
    /// The rows before those, whose strings were prefetched: they arrive in the cache while later
    /// rows are written.
    fetched: Waiting,
    words: Words,
    numbered: Numbered,
    interner: Interner,
    is_plain: bool,
    /// Number of rows with a value in earlier segments.
    seen: u64,
    /// Number of rows without a value in this segment.
    nulls: u64,
    /// Maximum bytes of a dictionary.
    dictionary_bytes_max: usize,
}

impl TextBuilder {
    pub(super) fn new(packing: Packing) -> Self {
        TextBuilder {
            rows: 0,
            codes: Vec::new(),
            waiting: Waiting::default(),
            fetched: Waiting::default(),
            words: Words::default(),
            numbered: Numbered::default(),
            interner: Interner::default(),
            is_plain: false,
            seen: 0,
            nulls: 0,
            dictionary_bytes_max: packing.dictionary_bytes,
        }
    }

    /// Appends a row; returns the segment's bytes of plain strings.
    #[inline(always)]
    pub(super) fn push(&mut self, text: &str) -> usize {
        if text.len() <= WORD_BYTES
            && !self.is_plain
            && let Some(code) = Word::of(text.as_bytes()).and_then(|word| self.words.code(word))
        {
            return self.push_code(code);
        }
        if let Some(code) = self.numbered.code(text.as_bytes()) {
            return self.push_code(code);
        }
        self.waiting.bytes.extend_from_slice(text.as_bytes());
        self.pushed()
    }

    /// Like [`push`](Self::push), for a string that is a prefix of the readable bytes `ahead`.
    #[inline(always)]
    pub(super) fn push_ahead(&mut self, text: &str, ahead: &[u8; SHORT_BYTES]) -> usize {
        if text.len() <= WORD_BYTES
            && !self.is_plain
            && let Some(first) = ahead.first_chunk()
            && let Some(code) = self.words.code(Word::new(first, text.len()))
        {
            return self.push_code(code);
        }
        if let Some(code) = self.numbered.code_ahead(ahead, text.len()) {
            return self.push_code(code);
        }
        if text.len() > SHORT_BYTES {
            self.waiting.bytes.extend_from_slice(text.as_bytes());
            return self.pushed();
        }
        let start = self.waiting.bytes.len();
        self.waiting.bytes.extend_from_slice(ahead);
        self.waiting.bytes.truncate(start + text.len());
        self.pushed()
    }

    /// Appends the string of the last row, if its code is known.
    #[inline(always)]
    pub(super) fn push_again(&mut self) -> bool {
        match self.codes.last() {
            Some(&code) if code != NO_CODE && !self.is_plain => {
                self.push_code(code);
                true
            }
            _ => false,
        }
    }

    #[inline(always)]
    fn push_code(&mut self, code: u32) -> usize {
        self.codes.push(code);
        self.rows += 1;
        0
    }

    /// Finishes a row whose string is the last one in `bytes`.
    #[inline(always)]
    fn pushed(&mut self) -> usize {
        self.waiting.ends.push(self.waiting.bytes.len() as u32);
        if self.is_plain {
            self.rows += 1;
            return self.waiting.bytes.len();
        }
        self.waiting.rows.push(self.rows as u32);
        self.codes.push(NO_CODE);
        self.rows += 1;
        if self.waiting.ends.len() >= BATCH || self.waiting.bytes.len() >= BATCH_BYTES {
            return self.flush();
        }
        0
    }

    pub(super) fn push_null(&mut self) {
        match self.is_plain {
            true => self.waiting.ends.push(self.waiting.bytes.len() as u32),
            false => self.codes.push(NO_CODE),
        }
        self.nulls += 1;
        self.rows += 1;
    }

    pub(super) fn pop(&mut self) {
        self.rows -= 1;
        if self.is_plain {
            self.waiting.ends.pop();
            let end = self.waiting.ends.last().map_or(0, |&end| end as usize);
            return self.waiting.bytes.truncate(end);
        }
        let is_known = self.codes.pop() != Some(NO_CODE);
        let did_wait = self.waiting.pop_if(self.rows) || self.fetched.pop_if(self.rows);
        self.nulls -= u64::from(!is_known && !did_wait);
    }

    /// Returns the dictionary of the codes.
    pub(super) fn dictionary(&self) -> (&[u32], &[u8]) {
        self.interner.strings()
    }

    pub(super) fn into_dictionary(self) -> (Vec<u32>, Vec<u8>) {
        self.interner.into_strings()
    }

    /// Returns the segment's data, given the rows without a value (`nulls`), and begins the next
    /// segment.
    pub(super) fn finish(&mut self, nulls: &[u32]) -> RawData {
        self.flush();
        self.set_codes();
        self.seen += (self.rows as u64).saturating_sub(self.nulls);
        (self.rows, self.nulls) = (0, 0);
        if self.is_plain {
            let ends = std::mem::take(&mut self.waiting.ends);
            return RawData::Text { ends, bytes: std::mem::take(&mut self.waiting.bytes) };
        }
        for &row in nulls {
            self.codes[row as usize] = 0;
        }
        RawData::Codes(std::mem::take(&mut self.codes))
    }

    /// Reuses the memory of a finished segment.
    pub(super) fn reuse(&mut self, data: RawData) {
        match data {
            RawData::Codes(mut codes) => {
                codes.clear();
                self.codes = codes;
            }
            RawData::Text { mut ends, mut bytes } => {
                ends.clear();
                bytes.clear();
                (self.waiting.ends, self.waiting.bytes) = (ends, bytes);
            }
            _ => {}
        }
    }

    /// Looks up the prefetched strings, and prefetches the waiting ones.
    #[inline(never)]
    fn flush(&mut self) -> usize {
        if self.is_plain {
            return self.waiting.bytes.len();
        }
        self.set_codes();
        self.interner.fetch(&mut self.waiting);
        std::mem::swap(&mut self.waiting, &mut self.fetched);
        let distinct = self.interner.len() as u64;
        let rows = (self.rows - self.fetched.rows.len()) as u64;
        let seen = (self.seen + rows).saturating_sub(self.nulls);
        if (distinct > DISTINCT_TRIED && distinct * 2 > seen)
            || (distinct > UNIQUE_TRIED && distinct == seen)
            || self.interner.bytes() > self.dictionary_bytes_max
        {
            self.set_codes();
            self.give_up_codes();
        }
        0
    }

    /// Looks up the prefetched strings, and caches the short and the numbered ones.
    fn set_codes(&mut self) {
        self.interner.codes(&self.fetched, &mut self.codes);
        let strings = self.interner.len();
        self.words.make_room(strings);
        for ((start, len), &row) in self.fetched.places().zip(&self.fetched.rows) {
            if let Some(text) = self.fetched.bytes.get(start..start + len) {
                self.numbered.learn(text, self.codes[row as usize], strings);
            }
            if len <= WORD_BYTES
                && let Some(ahead) = self.fetched.bytes.get(start..)
                && let Some(ahead) = ahead.first_chunk()
            {
                self.words.learn(Word::new(ahead, len), self.codes[row as usize]);
            }
        }
        self.fetched.clear();
    }

    /// Continues without a dictionary; the segment's codes become strings again. Earlier segments
    /// still need the dictionary.
    #[cold]
    fn give_up_codes(&mut self) {
        self.is_plain = true;
        self.numbered = Numbered::default();
        for code in std::mem::take(&mut self.codes) {
            if code != NO_CODE {
                self.waiting.bytes.extend_from_slice(self.interner.text(code));
            }
            self.waiting.ends.push(self.waiting.bytes.len() as u32);
        }
    }
}
