//! Sets of integers as bitmaps: the join keys of one side, with which a scan of the other is
//! filtered.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;

use quarrier_messages::column::Data;
use quarrier_messages::{Kind, Table};

use crate::arch;

/// Maximum number of bits of a set: 8 MiB, in which a lookup still costs less than in a join's hash
/// table.
const SPAN_MAX: u64 = 1 << 26;
/// Maximum number of bits to examine to find that a range has no key: in an ascending column, a
/// block covers at most some thousand values.
const LOOKED_AT_MAX: i64 = 1 << 16;

/// A set of integers in a range, one bit each. Sets are equal only if they are the same object.
pub struct Keys {
    /// The integer of the first bit.
    first: i64,
    /// The number of bits.
    span: u64,
    bits: Box<[u32]>,
}

impl Keys {
    /// Returns the range of integers for which [`Expr::Among`](crate::Expr::Among) needs bits: it
    /// contains all values of the column. `None` if the column has no values, is not a column of
    /// integers, or has a range of more than 2^26.
    pub fn span_of(table: &Table, column: usize) -> Option<RangeInclusive<i64>> {
        if table.schema().fields.get(column)?.kind != Kind::Integer {
            return None;
        }
        let mut span: Option<(i64, i64)> = None;
        for segment in table.columns()[column].segments() {
            let zone = segment.zone();
            let Some((least, greatest)) = zone.narrow() else { continue };
            let Data::Whole(packed) = segment.data() else { return None };
            // Rows without a value may hold a number below all others.
            let (first, last) = (least.min(packed.base()), greatest);
            span = Some(span.map_or((first, last), |span| (span.0.min(first), span.1.max(last))));
        }
        let (first, last) = span?;
        Some(first..=last).filter(Keys::have_bits)
    }

    /// Whether a range is small enough for a set: 2^26 integers at most.
    pub fn have_bits(span: &RangeInclusive<i64>) -> bool {
        length_of(span) <= SPAN_MAX
    }

    /// Makes an empty set over `span`, of 8 MiB at most.
    ///
    /// # Panics
    ///
    /// If `span` is too large, see [`have_bits`](Self::have_bits).
    pub fn none_of(span: &RangeInclusive<i64>) -> Keys {
        assert!(Keys::have_bits(span), "the range is too large for a set of bits");
        Keys::of_span(*span.start(), length_of(span))
    }

    /// Makes an empty set over `span` integers from `first` on.
    pub(crate) fn of_span(first: i64, span: u64) -> Keys {
        Keys { first, span, bits: vec![0; (span as usize).div_ceil(32)].into() }
    }

    /// Returns the number of bytes of a set over `span`.
    pub fn nbytes_of(span: &RangeInclusive<i64>) -> usize {
        4 * (length_of(span) as usize).div_ceil(32)
    }

    /// Adds `key` if it is within the range; no row has a key outside.
    #[inline]
    pub fn insert(&mut self, key: i64) {
        let place = key.wrapping_sub(self.first).cast_unsigned();
        if place < self.span {
            self.bits[(place / 32) as usize] |= 1 << (place % 32);
        }
    }

    /// Adds the keys of `other`, which must have the same range.
    ///
    /// # Panics
    ///
    /// If it has another span.
    pub fn add(&mut self, other: &Keys) {
        assert_eq!(
            (self.first, self.span),
            (other.first, other.span),
            "keys of one span are joined"
        );
        for (mine, other) in self.bits.iter_mut().zip(&other.bits) {
            *mine |= other;
        }
    }

    /// Returns the number of keys.
    pub fn len(&self) -> u64 {
        self.bits.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.bits.iter().all(|&word| word == 0)
    }

    /// Returns a bit for each of `values`, set if it is in the set; the lowest first, zeros after
    /// the last.
    pub fn which_i32(&self, values: &[i32]) -> Vec<u64> {
        self.which(values)
    }

    /// Returns a bit for each of `values`, set if it is in the set; the lowest first, zeros after
    /// the last.
    pub fn which_i64(&self, values: &[i64]) -> Vec<u64> {
        self.which(values)
    }

    // Generic only inside this crate, so that it is compiled with this crate's optimisation level,
    // which is higher than the callers'.
    fn which<T: Copy + Into<i64>>(&self, values: &[T]) -> Vec<u64> {
        let bit = |value: T| {
            let place = value.into().wrapping_sub(self.first).cast_unsigned();
            match place < self.span {
                true => u64::from(self.bits[(place / 32) as usize] >> (place % 32) & 1),
                false => 0,
            }
        };
        let word = |values: &[T]| {
            values.iter().enumerate().fold(0, |word, (place, &value)| word | bit(value) << place)
        };
        values.chunks(64).map(word).collect()
    }

    /// Whether `key` is in the set.
    pub fn contains(&self, key: i64) -> bool {
        self.from(key).is_some_and(|(bits, place)| arch::bit(bits, place as usize) == 1)
    }

    /// Whether every value of the column has a bit.
    pub(crate) fn are_of(&self, table: &Table, column: usize) -> bool {
        let of = |key: i64| key.wrapping_sub(self.first).cast_unsigned() < self.span;
        Keys::span_of(table, column).is_some_and(|span| of(*span.start()) && of(*span.end()))
    }

    /// Whether the set may have a key in this range.
    pub(crate) fn may_have(&self, least: i64, greatest: i64) -> bool {
        match greatest.checked_sub(least) {
            Some(span) if span < LOOKED_AT_MAX => self.has(least, greatest),
            _ => true,
        }
    }

    fn has(&self, least: i64, greatest: i64) -> bool {
        // The last number may be the greatest of 64 bits, which has no successor.
        let Some(last) =
            self.span.checked_sub(1).map(|rest| self.first.saturating_add_unsigned(rest))
        else {
            return false;
        };
        let (from, to) = (least.max(self.first), greatest.min(last));
        if from > to {
            return false;
        }
        let (from, to) = (from.abs_diff(self.first), to.abs_diff(self.first));
        let words = &self.bits[(from / 32) as usize..=(to / 32) as usize];
        let (before, after) = (!0 << (from % 32), !0 >> (31 - to % 32));
        match words {
            [] => false,
            [one] => one & before & after != 0,
            [first, between @ .., last] => {
                first & before != 0 || between.iter().any(|&word| word != 0) || last & after != 0
            }
        }
    }

    /// Returns the bits, and the index of `value` among them; `None` if it is less than all of
    /// them.
    pub(crate) fn from(&self, value: i64) -> Option<(&[u32], u32)> {
        let place = u32::try_from(value.checked_sub(self.first)?).ok()?;
        Some((&self.bits, place))
    }
}

fn length_of(span: &RangeInclusive<i64>) -> u64 {
    if span.is_empty() { 0 } else { span.end().abs_diff(*span.start()).saturating_add(1) }
}

/// Formats the span without the keys, of which there may be millions.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({} from {} at {:p})", self.span, self.first, self)
    }
}

impl PartialEq for Keys {
    fn eq(&self, other: &Keys) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Keys {}

impl Hash for Keys {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::from_ref(self).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::Keys;

    #[test]
    fn a_range_has_a_key_where_one_of_its_numbers_is_one() {
        let span = -40..=100;
        let mut keys = Keys::none_of(&span);
        for key in [-40, -1, 63, 64, 100, -41, 101, i64::MIN, i64::MAX] {
            keys.insert(key);
        }
        assert_eq!(keys.len(), 5);
        let ends = [i64::MIN, -42, -40, -39, -2, -1, 0, 30, 62, 63, 64, 65, 99, 100, 101, i64::MAX];
        for least in ends {
            for greatest in ends {
                let really =
                    span.clone().any(|key| least <= key && key <= greatest && keys.contains(key));
                assert_eq!(keys.has(least, greatest), really, "{least} {greatest}");
                assert!(keys.may_have(least, greatest) || !really);
            }
        }
    }

    #[test]
    fn the_greatest_number_of_64_bits_is_found() {
        let mut keys = Keys::none_of(&(i64::MAX - 2..=i64::MAX));
        keys.insert(i64::MAX);
        assert!(keys.has(i64::MAX, i64::MAX) && keys.has(i64::MIN, i64::MAX));
        assert!(!keys.has(i64::MAX - 2, i64::MAX - 1));
    }

    #[test]
    fn many_are_asked_for_as_one_is() {
        let span = i64::from(i32::MAX) - 90..=i64::from(i32::MAX) + 40;
        let mut keys = Keys::none_of(&span);
        span.clone().filter(|key| key % 3 == 0).for_each(|key| keys.insert(key));
        let ends = [i32::MIN, -1, 0];
        let few: Vec<i32> = ends.into_iter().chain(i32::MAX - 100..=i32::MAX).collect();
        for len in [0, 1, 63, 64, 65, few.len()] {
            let few = &few[few.len() - len..];
            let wide: Vec<i64> = few.iter().map(|&value| i64::from(value) + 41).collect();
            let wide = [&[i64::MIN, i64::MAX][..], &wide].concat()[..len].to_vec();
            for (which, values) in [
                (keys.which_i32(few), few.iter().map(|&value| value.into()).collect()),
                (keys.which_i64(&wide), wide.clone()),
            ] {
                assert_eq!(which.len(), len.div_ceil(64));
                for place in 0..64 * which.len() {
                    let is_one = values.get(place).is_some_and(|&value| keys.contains(value));
                    assert_eq!(which[place / 64] >> (place % 64) & 1 == 1, is_one, "{place}");
                }
            }
        }
    }

    #[test]
    fn of_no_numbers_there_are_no_keys() {
        #[expect(clippy::reversed_empty_ranges)]
        let mut keys = Keys::none_of(&(5..=4));
        keys.insert(5);
        assert!(keys.is_empty() && !keys.contains(5) && !keys.may_have(0, 9));
    }
}
