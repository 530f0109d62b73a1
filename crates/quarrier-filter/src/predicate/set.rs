//! Sets of a column's values, which express every comparison of one column with constants.

/// Values of a column, represented by their keys, and optionally NULL. Keys are the numbers in zone
/// maps: integers, mantissas, days, nanoseconds and codes themselves, floats by
/// [`float_key`](quarrier_messages::column::float_key).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Set {
    /// First and last key of each range, in ascending order, with gaps in between.
    ranges: Vec<(i128, i128)>,
    /// Whether it includes rows without a value.
    pub(crate) nulls: bool,
}

impl Set {
    /// Returns the empty set.
    pub(crate) fn none() -> Set {
        Set { ranges: Vec::new(), nulls: false }
    }

    /// Returns the set of all values, without NULL.
    pub(crate) fn values() -> Set {
        Set { ranges: vec![(i128::MIN, i128::MAX)], nulls: false }
    }

    /// Returns `first..=last`; the empty set if that is empty.
    pub(crate) fn range<K: Into<i128>>(first: K, last: K) -> Set {
        let (first, last) = (first.into(), last.into());
        Set { ranges: if first <= last { vec![(first, last)] } else { Vec::new() }, nulls: false }
    }

    /// Returns the union of ranges in any order.
    pub(crate) fn union_of<K: Into<i128>>(ranges: Vec<(K, K)>, nulls: bool) -> Set {
        let ranges = ranges.into_iter().map(|(first, last)| (first.into(), last.into()));
        let mut ranges: Vec<(i128, i128)> = ranges.collect();
        ranges.retain(|(first, last)| first <= last);
        ranges.sort_unstable();
        let mut joined: Vec<(i128, i128)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match joined.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last);
                }
                _ => joined.push((first, last)),
            }
        }
        Set { ranges: joined, nulls }
    }

    /// Returns first and last key of each range, in ascending order.
    pub(crate) fn ranges(&self) -> &[(i128, i128)] {
        &self.ranges
    }

    /// Whether the set is empty, NULL included.
    pub(crate) fn is_none(&self) -> bool {
        self.ranges.is_empty() && !self.nulls
    }

    /// Whether the set includes every row.
    pub(crate) fn is_all(&self) -> bool {
        self.nulls && self.ranges == [(i128::MIN, i128::MAX)]
    }

    /// Returns the complement.
    pub(crate) fn complement(&self) -> Set {
        Set { ranges: gaps(&self.ranges, i128::MIN, i128::MAX), nulls: !self.nulls }
    }

    /// Returns the intersection of both sets.
    pub(crate) fn intersection(&self, other: &Set) -> Set {
        let (mut a, mut b) = (self.ranges.iter().peekable(), other.ranges.iter().peekable());
        let mut ranges = Vec::new();
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            let (first, last) = (x.0.max(y.0), x.1.min(y.1));
            if first <= last {
                ranges.push((first, last));
            }
            if x.1 < y.1 {
                a.next();
            } else {
                b.next();
            }
        }
        Set { ranges, nulls: self.nulls && other.nulls }
    }

    /// Returns the ranges clipped to `least..=greatest`.
    pub(crate) fn within(&self, least: i128, greatest: i128) -> Vec<(i128, i128)> {
        let from = self.ranges.partition_point(|range| range.1 < least);
        let to = self.ranges.partition_point(|range| range.0 <= greatest);
        let cut = |range: &(i128, i128)| (range.0.max(least), range.1.min(greatest));
        self.ranges.get(from..to).unwrap_or_default().iter().map(cut).collect()
    }

    /// As [`within`](Self::within), with keys of 64 bits.
    pub(crate) fn narrow_within(&self, least: i64, greatest: i64) -> Vec<(i64, i64)> {
        let within = self.within(least.into(), greatest.into());
        within.into_iter().map(|(first, last)| (first as i64, last as i64)).collect()
    }

    /// Whether the set contains a key.
    #[cfg(test)]
    pub(crate) fn contains(&self, key: i128) -> bool {
        self.share(key, key) == Share::All
    }

    /// Returns how many values between `least` and `greatest` are in the set: none, all or some.
    #[inline]
    pub(crate) fn share(&self, least: i128, greatest: i128) -> Share {
        let at = self.ranges.partition_point(|range| range.1 < least);
        match self.ranges.get(at) {
            Some(range) if range.0 <= least && greatest <= range.1 => Share::All,
            Some(range) if range.0 <= greatest => Share::Some,
            _ => Share::None,
        }
    }
}

/// A share of some rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// None of them.
    None,
    /// Some of them, or an unknown number.
    Some,
    /// All of them.
    All,
}

/// Returns the gaps that `ranges`, ascending and separate, leave in `least..=greatest`.
pub(crate) fn gaps(ranges: &[(i128, i128)], least: i128, greatest: i128) -> Vec<(i128, i128)> {
    let mut gaps = Vec::with_capacity(ranges.len() + 1);
    let mut from = Some(least);
    for &(first, last) in ranges {
        if let Some(from) = from
            && from < first
        {
            gaps.push((from, first - 1));
        }
        from = last.checked_add(1);
    }
    if let Some(from) = from
        && from <= greatest
    {
        gaps.push((from, greatest));
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::{Set, Share};

    #[test]
    fn a_set_and_its_complement_share_nothing_and_leave_nothing() {
        let ends = [i128::MIN, i128::MIN + 1, -3, -2, 0, 1, 7, i128::MAX - 1, i128::MAX];
        for &a in &ends {
            for &b in &ends {
                for &c in &ends {
                    let set = Set::union_of(vec![(a, b), (c, c)], a < c);
                    let other = set.complement();
                    assert!(set.intersection(&other).is_none());
                    let mut all = set.ranges().to_vec();
                    all.extend(other.ranges());
                    assert!(Set::union_of(all, true).is_all());
                    assert_eq!(other.complement(), set);
                    for &d in &ends {
                        let inside = (a <= d && d <= b) || c == d;
                        let share = if inside { Share::All } else { Share::None };
                        assert_eq!(set.share(d, d), share);
                        assert_eq!(set.within(d, d).len(), usize::from(inside));
                    }
                }
            }
        }
    }
}
