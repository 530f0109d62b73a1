//! A packed column of one segment (row group).

use super::packed::{Lanes, Packed};
use super::raw::{BLOCK_ROWS, RawColumn};
use super::strings::Strings;
use super::zone::Zone;
use crate::{Kind, Value};

/// One column of at most [`SEGMENT_ROWS`](super::raw::SEGMENT_ROWS) rows. Immutable.
#[derive(Debug, Clone, PartialEq)]
pub struct SegmentColumn {
    pub(super) kind: Kind,
    pub(super) rows: u32,
    pub(super) valid: Vec<u64>,
    pub(super) data: Data,
    pub(super) zone: Zone,
    pub(super) blocks: Vec<Zone>,
}

/// The values of a [`SegmentColumn`].
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// No row has a value.
    Null,
    /// Booleans (0 and 1), integers, mantissas, days and nanoseconds.
    Whole(Packed),
    /// Strings by their codes in the dictionary of the table's column or, before assembly, of the
    /// part's field.
    Codes(Packed),
    /// Floats that are an integer divided by 10^`exponent`: each is exactly the result of dividing
    /// these two as floats. No NaN, no infinity, no -0. The integers have the order of the floats,
    /// and different integers are different floats.
    Scaled {
        /// At most 18.
        exponent: u8,
        /// Less than 2^51 in magnitude.
        packed: Packed,
    },
    /// Mantissas that do not all fit 64 bits, but whose differences do: each is `shift` plus its
    /// packed number.
    Shifted {
        /// The addend; the least packed number is `i64::MIN`.
        shift: i128,
        /// The packed numbers.
        packed: Packed,
    },
    /// Unpacked mantissas of up to 38 digits, padded with 0 to a multiple of 64 rows.
    Exact(Vec<i128>),
    /// Unpacked floats, padded with 0 to a multiple of 64 rows.
    Float(Vec<f64>),
    /// Plain strings, empty if there is no value.
    Text(Strings),
}

impl SegmentColumn {
    /// Packs a parser's column: chooses the encoding and computes the zone maps. Takes 1 to 2 ns
    /// per value.
    ///
    /// # Panics
    ///
    /// If `raw` has no rows or more than [`SEGMENT_ROWS`](super::raw::SEGMENT_ROWS), if `valid`
    /// does not match the number of rows, if a number has more than 38 digits, or if a string is
    /// not UTF-8.
    pub fn pack(raw: &RawColumn) -> SegmentColumn {
        super::pack::pack(raw)
    }

    /// Makes a column without any value.
    pub fn nulls(kind: Kind, rows: usize) -> SegmentColumn {
        let zone = |rows: usize| Zone { nulls: rows as u32, ..Zone::EMPTY };
        let blocks = (0..rows).step_by(BLOCK_ROWS).map(|at| zone(BLOCK_ROWS.min(rows - at)));
        SegmentColumn {
            kind,
            rows: rows as u32,
            valid: vec![0; rows.div_ceil(64)],
            data: Data::Null,
            zone: zone(rows),
            blocks: blocks.collect(),
        }
    }

    /// Returns the type of the values; in a table, the type of the table's column.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Returns one bit per row, set if there is a value; bits after the last row are 0. Empty if
    /// every row has a value.
    pub fn valid(&self) -> &[u64] {
        &self.valid
    }

    /// Whether a row has a value.
    ///
    /// # Panics
    ///
    /// May panic if the row does not exist.
    #[inline]
    pub fn is_valid(&self, row: usize) -> bool {
        self.valid.is_empty() || self.valid[row / 64] >> (row % 64) & 1 == 1
    }

    /// Returns the values.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// Returns the zone map of all rows.
    pub fn zone(&self) -> Zone {
        self.zone
    }

    /// Returns the zone map of each block of [`BLOCK_ROWS`] rows; the last block may have fewer.
    pub fn blocks(&self) -> &[Zone] {
        &self.blocks
    }

    /// Returns the value of a row; `strings` is the dictionary of the codes. For display, not for
    /// scans.
    ///
    /// # Panics
    ///
    /// If the row does not exist, or a code has no string.
    pub fn value<'t>(&'t self, row: usize, strings: Option<&'t Strings>) -> Value<&'t str> {
        assert!(row < self.rows(), "row {row} of {}", self.rows);
        if !self.is_valid(row) {
            return Value::Null;
        }
        match &self.data {
            Data::Null => Value::Null,
            Data::Whole(packed) => whole(self.kind, packed.get(row)),
            Data::Shifted { .. } | Data::Exact(_) => match (self.kind, self.number(row)) {
                (Kind::Decimal { scale }, Some(mantissa)) => Value::Decimal { mantissa, scale },
                _ => Value::Null,
            },
            Data::Scaled { .. } | Data::Float(_) => {
                self.float(row).map_or(Value::Null, Value::Float)
            }
            Data::Codes(_) | Data::Text(_) => {
                self.text(row, strings).map_or(Value::Null, Value::Text)
            }
        }
    }

    /// Returns the number of a row, in a column of integers, exact numbers (then it is the
    /// mantissa), booleans, dates or timestamps.
    ///
    /// # Panics
    ///
    /// If the row does not exist.
    pub fn number(&self, row: usize) -> Option<i128> {
        let number = match &self.data {
            Data::Whole(packed) => packed.get(row).into(),
            Data::Shifted { shift, packed } => shift + i128::from(packed.get(row)),
            Data::Exact(numbers) => numbers[row],
            _ => return None,
        };
        self.is_valid(row).then_some(number)
    }

    /// Returns the number of every row, in a column of the types that [`number`](Self::number) has;
    /// arbitrary ones for rows without a value. Empty for other types.
    pub fn to_numbers(&self) -> Vec<i128> {
        match &self.data {
            Data::Whole(packed) => packed.to_vec().into_iter().map(i128::from).collect(),
            Data::Shifted { shift, packed } => {
                packed.to_vec().into_iter().map(|number| shift + i128::from(number)).collect()
            }
            Data::Exact(numbers) => numbers[..self.rows()].to_vec(),
            _ => Vec::new(),
        }
    }

    /// Whether some numbers exceed 64 bits.
    pub fn is_wide(&self) -> bool {
        matches!(self.data, Data::Shifted { .. } | Data::Exact(_))
    }

    /// Returns the float of a row, in a column of floats.
    ///
    /// # Panics
    ///
    /// If the row does not exist.
    pub fn float(&self, row: usize) -> Option<f64> {
        let float = match &self.data {
            Data::Scaled { exponent, packed } => scaled(packed.get(row), *exponent),
            Data::Float(values) => values[row],
            _ => return None,
        };
        self.is_valid(row).then_some(float)
    }

    /// Returns the code of a row's string, if the segment has codes.
    ///
    /// # Panics
    ///
    /// If the row does not exist.
    pub fn code(&self, row: usize) -> Option<u32> {
        match &self.data {
            Data::Codes(packed) if self.is_valid(row) => Some(packed.get(row) as u32),
            _ => None,
        }
    }

    /// Returns the string of a row, in a column of strings; `strings` is the dictionary of the codes.
    ///
    /// # Panics
    ///
    /// If the row does not exist, or a code has no string.
    pub fn text<'t>(&'t self, row: usize, strings: Option<&'t Strings>) -> Option<&'t str> {
        if !self.is_valid(row) {
            return None;
        }
        match &self.data {
            Data::Codes(packed) => {
                let strings = strings.expect("codes require a dictionary");
                Some(strings.get(packed.get(row) as usize))
            }
            Data::Text(strings) => Some(strings.get(row)),
            _ => None,
        }
    }

    /// Returns the float of every row, arbitrary ones for rows without a value; empty for columns
    /// of other types.
    pub fn to_floats(&self) -> Vec<f64> {
        match &self.data {
            Data::Float(values) => values[..self.rows()].to_vec(),
            Data::Scaled { exponent, packed } => {
                packed.to_vec().into_iter().map(|number| scaled(number, *exponent)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the name of the encoding for display: `16-bit`, `dictionary, 8-bit`, `runs`.
    pub fn encoding(&self) -> String {
        match &self.data {
            Data::Null => "all NULL".into(),
            Data::Whole(packed) => lanes_name(packed).into(),
            Data::Shifted { shift, packed } => {
                format!("{}, from {} on", lanes_name(packed), shift + i128::from(packed.base()))
            }
            Data::Exact(_) => "128-bit".into(),
            Data::Codes(packed) => format!("dictionary, {}", lanes_name(packed)),
            Data::Scaled { exponent, packed } => {
                format!("integers / 10^{exponent}, {}", lanes_name(packed))
            }
            Data::Float(_) => "64-bit floats".into(),
            Data::Text(_) => "plain text".into(),
        }
    }

    /// Returns the bytes of memory, excluding a dictionary.
    pub fn nbytes(&self) -> usize {
        let data = match &self.data {
            Data::Null => 0,
            Data::Whole(packed)
            | Data::Codes(packed)
            | Data::Scaled { packed, .. }
            | Data::Shifted { packed, .. } => packed.nbytes(),
            Data::Exact(numbers) => 16 * numbers.capacity(),
            Data::Float(values) => 8 * values.capacity(),
            Data::Text(strings) => strings.nbytes(),
        };
        size_of::<SegmentColumn>()
            + 8 * self.valid.capacity()
            + size_of::<Zone>() * self.blocks.capacity()
            + data
    }
}

/// Converts an integer to a value of its type.
fn whole(kind: Kind, number: i64) -> Value<&'static str> {
    match kind {
        Kind::Boolean => Value::Boolean(number != 0),
        Kind::Decimal { scale } => Value::Decimal { mantissa: number.into(), scale },
        Kind::Date => Value::Date(number as i32),
        Kind::Timestamp => Value::Timestamp(number),
        Kind::Null | Kind::Integer | Kind::Float | Kind::Text => Value::Integer(number),
    }
}

/// Returns the float that a number of [`Data::Scaled`] represents.
#[inline]
pub(crate) fn scaled(number: i64, exponent: u8) -> f64 {
    number as f64 / POWERS[exponent as usize]
}

/// 10^0 to 10^18, all of them exact.
pub(crate) const POWERS: [f64; 19] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18,
];

fn lanes_name(packed: &Packed) -> &'static str {
    match packed.lanes() {
        Lanes::Constant => "constant",
        Lanes::Bits(_) => "1-bit",
        Lanes::U8(_) => "8-bit",
        Lanes::U16(_) => "16-bit",
        Lanes::U32(_) => "32-bit",
        Lanes::U64(_) => "64-bit",
        Lanes::Runs { .. } => "runs",
    }
}
