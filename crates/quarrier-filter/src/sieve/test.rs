//! Tests of one value against constants.

use quarrier_messages::Value;

use crate::Expr;
use crate::expr::Comparison;
use crate::naive;
use crate::predicate::Set;

/// The outcomes of tests.
pub(super) const FALSE: u8 = 0;
pub(super) const TRUE: u8 = 1;
pub(super) const UNKNOWN: u8 = 2;

pub(super) fn truth(of: u8) -> Option<bool> {
    (of != UNKNOWN).then_some(of == TRUE)
}

/// The number of scales of exact numbers that fit 64 bits: 0 to 18.
pub(super) const SCALES: usize = 19;

/// Tests whether a number, a day, a timestamp or a boolean is in a set of keys.
#[derive(Debug, Clone)]
pub(super) struct NumberTest {
    /// A set for each scale of exact numbers; one for other types.
    ranges: Box<[Ranges]>,
    /// The conditions for numbers that do not fit 64 bits; all of them must be true.
    conditions: Box<[Expr]>,
}

#[derive(Debug, Clone)]
struct Ranges {
    first: i64,
    last: i64,
    /// The keys between `first` and `last` that are not in the set: first and last of each gap.
    gaps: Box<[(i64, i64)]>,
}

impl NumberTest {
    pub(super) fn new(sets: &[Set], conditions: Vec<Expr>) -> Self {
        NumberTest { ranges: sets.iter().map(Ranges::new).collect(), conditions: conditions.into() }
    }

    /// Whether an exact number of any size passes. It is evaluated, because no set has its scale.
    pub(super) fn holds_wide(&self, mantissa: i128, scale: u8) -> bool {
        let row = |_: usize| Value::Decimal { mantissa, scale };
        let is_true = |condition: &Expr| matches!(naive::truth(condition, &row), Ok(Some(true)));
        !self.conditions.is_empty() && self.conditions.iter().all(is_true)
    }

    /// Whether the key is in the set for `scale`; 0 for values that are not exact numbers.
    #[inline(always)]
    pub(super) fn holds(&self, key: i64, scale: usize) -> bool {
        self.ranges.get(scale).is_some_and(|ranges| ranges.holds(key))
    }
}

impl Ranges {
    fn new(set: &Set) -> Self {
        let all = set.narrow_within(i64::MIN, i64::MAX);
        let (Some(&(first, _)), Some(&(_, last))) = (all.first(), all.last()) else {
            return Ranges { first: 1, last: 0, gaps: Box::default() };
        };
        let gaps = all.windows(2).map(|pair| (pair[0].1 + 1, pair[1].0 - 1)).collect();
        Ranges { first, last, gaps }
    }

    #[inline(always)]
    fn holds(&self, key: i64) -> bool {
        self.first <= key && key <= self.last && (self.gaps.is_empty() || self.is_in_no_gap(key))
    }

    fn is_in_no_gap(&self, key: i64) -> bool {
        let at = self.gaps.partition_point(|gap| gap.1 < key);
        self.gaps.get(at).is_none_or(|gap| key < gap.0)
    }
}

/// The test of a string.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum TextTest {
    /// No string passes: `IS NULL`.
    Nothing,
    /// Every string passes.
    Everything,
    Equal(Box<str>),
    /// One of these strings, in ascending order.
    In(Box<[Box<str>]>),
    Order(Comparison, Box<str>),
    Prefix(Box<str>),
    Suffix(Box<str>),
    Contains(Box<str>),
}

impl TextTest {
    #[inline(always)]
    pub(super) fn holds(&self, text: &str) -> bool {
        match self {
            TextTest::Equal(wanted) => **wanted == *text,
            other => other.holds_otherwise(text),
        }
    }

    fn holds_otherwise(&self, text: &str) -> bool {
        match self {
            TextTest::Nothing => false,
            TextTest::Everything => true,
            TextTest::Equal(wanted) => **wanted == *text,
            TextTest::In(list) => list.binary_search_by(|wanted| (**wanted).cmp(text)).is_ok(),
            TextTest::Order(op, wanted) => naive::holds(*op, text.cmp(wanted)),
            TextTest::Prefix(prefix) => text.starts_with(&**prefix),
            TextTest::Suffix(suffix) => text.ends_with(&**suffix),
            TextTest::Contains(part) => text.contains(&**part),
        }
    }
}
