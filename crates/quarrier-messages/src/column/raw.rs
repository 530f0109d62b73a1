//! Columns as parsers write them: a segment of rows, not packed yet.

use crate::Kind;

/// Rows of a segment: a multiple of [`BLOCK_ROWS`], few enough that a segment's columns stay in
/// the cache while they are packed.
pub const SEGMENT_ROWS: usize = 65_536;

/// Rows of a block, the unit that scans skip or evaluate: 64 words of a bitmap.
pub const BLOCK_ROWS: usize = 4_096;

/// One column of one segment. Rows without a value hold 0 (or empty text) in `data`.
#[derive(Debug, Clone, PartialEq)]
pub struct RawColumn {
    /// One bit a row, bit `row % 64` of word `row / 64`, set where there is a value; empty where
    /// every row has one.
    pub valid: Vec<u64>,
    /// One value a row.
    pub data: RawData,
}

/// The values of a [`RawColumn`].
#[derive(Debug, Clone, PartialEq)]
pub enum RawData {
    /// Only NULL, this many rows.
    Null(usize),
    /// One bit a row.
    Boolean {
        /// Bit `row % 64` of word `row / 64`.
        bits: Vec<u64>,
        /// Rows.
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
    /// The same, of up to 38 digits.
    Wide {
        /// The number of decimals, at most 38; the same for all rows.
        scale: u8,
        /// The digits.
        mantissas: Vec<i128>,
    },
    /// Numbers of IEEE 754.
    Float(Vec<f64>),
    /// Days from 1970-01-01.
    Date(Vec<i32>),
    /// Nanoseconds from 1970-01-01 00:00:00 UTC.
    Timestamp(Vec<i64>),
    /// Text by its number in a dictionary that its writer keeps over many segments, in the order
    /// of first sight.
    Codes(Vec<u32>),
    /// Text, where there are too many different ones for a dictionary: row `r` is
    /// `bytes[ends[r - 1]..ends[r]]`.
    Text {
        /// Where each row's text ends.
        ends: Vec<u32>,
        /// All of it, UTF-8.
        bytes: Vec<u8>,
    },
}

impl RawData {
    /// Integers as values of a type that is made of them; of any other type, as whole
    /// numbers.
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

    /// How many rows there are.
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
