//! Counts the bytes of packed columns that were read.

use quarrier_messages::column::{Data, Lanes, SegmentColumn};

use super::bind::{Test, Values};

/// The bytes that one worker has read.
#[derive(Debug)]
pub(crate) struct Touched {
    /// For each column, its validity and its values.
    columns: Vec<[Words; 2]>,
    /// By all tests; bytes that two tests read count twice.
    pub(crate) compared: u64,
    /// Each byte counts once per block.
    pub(crate) once: u64,
}

/// The words of a block that were read.
#[derive(Debug, Clone, Copy)]
struct Words {
    stamp: u64,
    words: u64,
}

/// The bytes of 64 rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WordBytes {
    valid: u64,
    values: u64,
}

impl Touched {
    pub(crate) fn new(columns: usize) -> Touched {
        let none = Words { stamp: u64::MAX, words: 0 };
        Touched { columns: vec![[none; 2]; columns], compared: 0, once: 0 }
    }

    /// Records that `words` of a column were read in the block with this stamp.
    pub(crate) fn add(&mut self, column: usize, stamp: u64, words: u64, bytes: WordBytes) {
        let [valid, values] = &mut self.columns[column];
        self.compared += u64::from(words.count_ones()) * (bytes.valid + bytes.values);
        if bytes.valid > 0 {
            self.once += valid.add(stamp, words) * bytes.valid;
        }
        self.once += values.add(stamp, words) * bytes.values;
    }
}

impl Words {
    /// Returns how many of `words` are new.
    fn add(&mut self, stamp: u64, words: u64) -> u64 {
        if self.stamp != stamp {
            *self = Words { stamp, words: 0 };
        }
        let new = words & !self.words;
        self.words |= words;
        new.count_ones().into()
    }
}

impl WordBytes {
    /// Returns the bytes of a word that a test reads.
    pub(crate) fn of_test(test: &Test<'_>) -> WordBytes {
        let valid = |bits: &[u64]| if bits.is_empty() { 0 } else { 8 };
        match test {
            Test::None | Test::Rows => WordBytes { valid: 0, values: 0 },
            Test::Null { valid: bits, .. } => WordBytes { valid: valid(bits), values: 0 },
            Test::Values { values, valid: bits, .. } => {
                let values = match values {
                    Values::Bits(..) => 8,
                    Values::U8(..) => 64,
                    Values::U16(..) => 128,
                    Values::U32(..) => 256,
                    Values::U64(..) | Values::Floats(..) => 512,
                    Values::Wide(..) => 1024,
                    Values::Runs(..) => 0,
                };
                WordBytes { valid: valid(bits), values }
            }
        }
    }

    /// Returns the bytes of a word of a column that a calculation reads.
    pub(crate) fn of_column(column: &SegmentColumn) -> WordBytes {
        let values = match column.data() {
            Data::Null | Data::Text(_) => 0,
            Data::Float(_) => 512,
            Data::Exact(_) => 1024,
            Data::Scaled { packed, .. }
            | Data::Shifted { packed, .. }
            | Data::Whole(packed)
            | Data::Codes(packed) => match packed.lanes() {
                Lanes::Constant | Lanes::Runs { .. } => 0,
                Lanes::Bits(_) => 8,
                Lanes::U8(_) => 64,
                Lanes::U16(_) => 128,
                Lanes::U32(_) => 256,
                Lanes::U64(_) => 512,
            },
        };
        WordBytes { valid: if column.valid().is_empty() { 0 } else { 8 }, values }
    }
}
