//! A column of text: as codes of a dictionary, or as it comes.

use super::interner::{Interner, NO_CODE, NULL, SHORT_BYTES, Texts};
use crate::column::raw::RawData;

/// Texts that wait to be looked up together.
const BATCH: usize = 128;
const BATCH_BYTES: usize = 64 << 10;

/// A dictionary pays where texts come again: one of so many texts must save half of the rows.
const DISTINCT_TRIED: u64 = 1 << 20;
const DICTIONARY_BYTES_MAX: usize = 64 << 20;

/// See the module. `ends` and `bytes` hold the last rows: those that have no code yet, or all of them
/// where the column has no dictionary.
#[derive(Debug, Default)]
pub(super) struct TextBuilder {
    pub(super) rows: usize,
    codes: Vec<u32>,
    ends: Vec<u32>,
    bytes: Vec<u8>,
    interner: Interner,
    is_plain: bool,
    /// Rows with a value over all segments.
    seen: u64,
}

impl TextBuilder {
    /// Appends a row; returns how many bytes of plain text the segment has.
    #[inline(always)]
    pub(super) fn push(&mut self, text: &str) -> usize {
        self.bytes.extend_from_slice(text.as_bytes());
        self.pushed()
    }

    /// The same for a text of which more than is its own is known to be readable.
    #[inline(always)]
    pub(super) fn push_ahead(&mut self, text: &str, ahead: &[u8; SHORT_BYTES]) -> usize {
        if text.len() > SHORT_BYTES {
            return self.push(text);
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(ahead);
        self.bytes.truncate(start + text.len());
        self.pushed()
    }

    #[inline(always)]
    fn pushed(&mut self) -> usize {
        self.ends.push(self.bytes.len() as u32);
        self.rows += 1;
        if self.ends.len() >= BATCH || self.bytes.len() >= BATCH_BYTES {
            return self.flush();
        }
        0
    }

    pub(super) fn push_null(&mut self) {
        let flag = if self.is_plain { 0 } else { NULL };
        self.ends.push(self.bytes.len() as u32 | flag);
        self.rows += 1;
        if self.ends.len() >= BATCH {
            self.flush();
        }
    }

    /// Takes the last row back.
    pub(super) fn pop(&mut self) {
        self.rows -= 1;
        if self.ends.pop().is_none() {
            self.codes.pop();
        }
        let end = self.ends.last().map_or(0, |end| end & !NULL);
        self.bytes.truncate(end as usize);
    }

    /// The texts that codes stand for.
    pub(super) fn dictionary(&self) -> (&[u32], &[u8]) {
        self.interner.texts()
    }

    pub(super) fn into_dictionary(self) -> (Vec<u32>, Vec<u8>) {
        self.interner.into_texts()
    }

    /// The segment's data, of which `nulls` are the rows without a value, and the next segment
    /// begins.
    pub(super) fn finish(&mut self, nulls: &[u32]) -> RawData {
        self.flush();
        self.rows = 0;
        if self.is_plain {
            let ends = std::mem::take(&mut self.ends);
            return RawData::Text { ends, bytes: std::mem::take(&mut self.bytes) };
        }
        for &row in nulls {
            self.codes[row as usize] = 0;
        }
        RawData::Codes(std::mem::take(&mut self.codes))
    }

    /// Memory of a segment that was handed on.
    pub(super) fn reuse(&mut self, data: RawData) {
        match data {
            RawData::Codes(mut codes) => {
                codes.clear();
                self.codes = codes;
            }
            RawData::Text { mut ends, mut bytes } => {
                ends.clear();
                bytes.clear();
                (self.ends, self.bytes) = (ends, bytes);
            }
            _ => {}
        }
    }

    #[inline(never)]
    fn flush(&mut self) -> usize {
        if self.is_plain {
            return self.bytes.len();
        }
        self.seen += self.ends.iter().filter(|&end| end & NULL == 0).count() as u64;
        self.bytes.extend_from_slice(&[0; SHORT_BYTES]);
        let texts = Texts { ends: &self.ends, bytes: &self.bytes };
        self.interner.codes(texts, &mut self.codes);
        self.ends.clear();
        self.bytes.clear();
        let distinct = self.interner.len() as u64;
        if (distinct > DISTINCT_TRIED && distinct * 2 > self.seen)
            || self.interner.bytes() > DICTIONARY_BYTES_MAX
        {
            self.give_up_codes();
        }
        0
    }

    /// Goes on without a dictionary; the segment's codes become texts again. Segments that were
    /// handed on still need the dictionary.
    #[cold]
    fn give_up_codes(&mut self) {
        self.is_plain = true;
        for code in std::mem::take(&mut self.codes) {
            if code != NO_CODE {
                self.bytes.extend_from_slice(self.interner.text(code));
            }
            self.ends.push(self.bytes.len() as u32);
        }
    }
}
