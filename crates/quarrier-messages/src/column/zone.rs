//! Zone maps: the minimum and maximum of a segment or block, by which scans skip rows.

/// The zone map of a segment or a block. Numbers, timestamps, days, booleans and dictionary codes
/// are their own keys (for decimals, the mantissa). The key of a float is its [`float_key`], and
/// the key of a plain string its [`text_key`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone {
    /// The least value; `i128::MAX` if there is none.
    pub min: i128,
    /// The greatest value; `i128::MIN` if there is none.
    pub max: i128,
    /// The number of rows without a value.
    pub nulls: u32,
}

impl Zone {
    /// The zone map of no rows.
    pub const EMPTY: Zone = Zone { min: i128::MAX, max: i128::MIN, nulls: 0 };

    /// Whether no row has a value.
    pub fn is_without_values(&self) -> bool {
        self.min > self.max
    }

    /// Returns the zone map of the rows of both.
    #[must_use]
    pub fn joined(self, other: Zone) -> Zone {
        Zone {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            nulls: self.nulls + other.nulls,
        }
    }

    /// Returns the least and the greatest value, if there are values and both fit 64 bits; they
    /// always do in a column without wide numbers.
    pub fn narrow(self) -> Option<(i64, i64)> {
        let ends = (i64::try_from(self.min).ok()?, i64::try_from(self.max).ok()?);
        (!self.is_without_values()).then_some(ends)
    }

    /// Returns the zone map with both bounds mapped by a function that keeps their order.
    pub(crate) fn moved(self, by: impl Fn(i128) -> i128) -> Zone {
        if self.is_without_values() {
            return self;
        }
        Zone { min: by(self.min), max: by(self.max), nulls: self.nulls }
    }
}

/// Returns an integer that has the order of the floats; NaN is `i64::MAX`, after infinity, and both
/// zeros are 0.
#[inline]
pub fn float_key(value: f64) -> i64 {
    if value.is_nan() {
        return i64::MAX;
    }
    // Adding 0 turns -0 into +0.
    let bits = (value + 0.0).to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// Returns the first eight bytes of a string as a number: a greater string never has a smaller key,
/// but may have the same one.
#[inline]
pub fn text_key(text: &str) -> i64 {
    bytes_key(text.as_bytes())
}

/// Like [`text_key`], for a part of a string.
#[inline]
pub(crate) fn bytes_key(bytes: &[u8]) -> i64 {
    let mut first = [0; 8];
    let length = bytes.len().min(8);
    first[..length].copy_from_slice(&bytes[..length]);
    (u64::from_be_bytes(first) ^ (1 << 63)) as i64
}
