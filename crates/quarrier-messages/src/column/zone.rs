//! Zone maps: the least and greatest value of a segment or block, by which scans skip it.

/// The zone map of a segment or a block. Numbers, timestamps, days, booleans and dictionary codes stand for
/// themselves (decimals by their mantissa), floats for their [`float_key`], plain strings for their [`text_key`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone {
    /// The least value; `i128::MAX` if there is none.
    pub min: i128,
    /// The greatest value; `i128::MIN` if there is none.
    pub max: i128,
    /// Rows without a value.
    pub nulls: u32,
}

impl Zone {
    /// The zone map of no row.
    pub const EMPTY: Zone = Zone { min: i128::MAX, max: i128::MIN, nulls: 0 };

    /// Whether no row has a value.
    pub fn is_without_values(&self) -> bool {
        self.min > self.max
    }

    /// The zone map of the rows of both.
    #[must_use]
    pub fn joined(self, other: Zone) -> Zone {
        Zone {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            nulls: self.nulls + other.nulls,
        }
    }

    /// The least and the greatest, where there are values and 64 bits hold them: so do they where
    /// the column has no wide numbers.
    pub fn narrow(self) -> Option<(i64, i64)> {
        let ends = (i64::try_from(self.min).ok()?, i64::try_from(self.max).ok()?);
        (!self.is_without_values()).then_some(ends)
    }

    /// The zone with both bounds moved by a function that keeps their order.
    pub(crate) fn moved(self, by: impl Fn(i128) -> i128) -> Zone {
        if self.is_without_values() {
            return self;
        }
        Zone { min: by(self.min), max: by(self.max), nulls: self.nulls }
    }
}

/// An integer that compares as the float does; any NaN is `i64::MAX`, after infinity, and both zeros
/// are 0.
#[inline]
pub fn float_key(value: f64) -> i64 {
    if value.is_nan() {
        return i64::MAX;
    }
    // Adding 0 turns -0 into +0.
    let bits = (value + 0.0).to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// The first eight bytes of a string as a number: it never falls from one text to a greater one,
/// and may be the same for both.
#[inline]
pub fn text_key(text: &str) -> i64 {
    bytes_key(text.as_bytes())
}

/// As [`text_key`], for a part of a string.
#[inline]
pub(crate) fn bytes_key(bytes: &[u8]) -> i64 {
    let mut first = [0; 8];
    let length = bytes.len().min(8);
    first[..length].copy_from_slice(&bytes[..length]);
    (u64::from_be_bytes(first) ^ (1 << 63)) as i64
}
