//! Columns as parsers write them: rows of a segment, not packed yet.

use crate::Kind;

/// Rows of a segment: a multiple of [`BLOCK_ROWS`], and few enough that a segment's columns stay in
/// the cache while they are packed.
pub const SEGMENT_ROWS: usize = 65_536;

/// Rows of a block, the unit that scans skip or evaluate: 64 words of a bitmap.
pub const BLOCK_ROWS: usize = 4_096;

/// One column of one segment. Rows without a value have 0 (or an empty string) in `data`.
#[derive(Debug, Clone, PartialEq)]
pub struct RawColumn {
    /// One bit per row, bit `row % 64` of word `row / 64`, set if there is a value; empty if every
    /// row has one.
    pub valid: Vec<u64>,
    /// One value per row.
    pub data: RawData,
}

/// The values of a [`RawColumn`].
#[derive(Debug, Clone, PartialEq)]
pub enum RawData {
    /// Only NULL, this many rows.
    Null(usize),
    /// Booleans, one bit per row.
    Boolean {
        /// Bit `row % 64` of word `row / 64`.
        bits: Vec<u64>,
        /// The number of rows.
        rows: usize,
    },
    /// Integers.
    Integer(Vec<i64>),
    /// Integers divided by 10^`scale`.
    Decimal {
        /// The number of decimals, at most 38; the same for all rows.
        scale: u8,
        /// The digits.
        mantissas: Vec<i64>,
    },
    /// Integers of up to 38 digits divided by 10^`scale`.
    Wide {
        /// The number of decimals, at most 38; the same for all rows.
        scale: u8,
        /// The digits.
        mantissas: Vec<i128>,
    },
    /// Floats of 64 bits.
    Float(Vec<f64>),
    /// Days from 1970-01-01.
    Date(Vec<i32>),
    /// Nanoseconds from 1970-01-01 00:00:00 UTC.
    Timestamp(Vec<i64>),
    /// Strings by their codes in a dictionary that the writer keeps over many segments, in the
    /// order of first appearance.
    Codes(Vec<u32>),
    /// Plain strings, if there are too many distinct ones for a dictionary: row `r` is
    /// `bytes[ends[r - 1]..ends[r]]`.
    Text {
        /// The end of each row's string.
        ends: Vec<u32>,
        /// The bytes of all strings, UTF-8.
        bytes: Vec<u8>,
    },
}

impl RawData {
    /// Makes the data for integers: of a type that they represent, or else of integers.
    pub(crate) fn of_numbers(kind: Kind, numbers: Vec<i64>) -> RawData {
        match kind {
            Kind::Boolean => {
                let word =
                    |rows: &[i64]| rows.iter().rev().fold(0, |word, &bit| word << 1 | bit as u64);
                let bits = numbers.chunks(64).map(word).collect();
                RawData::Boolean { bits, rows: numbers.len() }
            }
            Kind::Decimal { scale } => RawData::Decimal { scale, mantissas: numbers },
            Kind::Date => RawData::Date(numbers.into_iter().map(|day| day as i32).collect()),
            Kind::Timestamp => RawData::Timestamp(numbers),
            Kind::Null | Kind::Integer | Kind::Float | Kind::Text => RawData::Integer(numbers),
        }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        match self {
            RawData::Null(rows) | RawData::Boolean { rows, .. } => *rows,
            RawData::Integer(values) | RawData::Timestamp(values) => values.len(),
            RawData::Decimal { mantissas, .. } => mantissas.len(),
            RawData::Wide { mantissas, .. } => mantissas.len(),
            RawData::Float(values) => values.len(),
            RawData::Date(values) => values.len(),
            RawData::Codes(codes) => codes.len(),
            RawData::Text { ends, .. } => ends.len(),
        }
    }
}
