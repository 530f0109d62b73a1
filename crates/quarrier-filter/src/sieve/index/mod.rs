//! Evaluates many conditions at once. An index by the values with which conditions compare a column
//! finds the conditions that a row's value may satisfy, and skips all others.
//!
//! ```text
//!  symbol = 'WQY' AND price > 10 AND qty < 5
//!  └ anchor: looked up ─→ bucket of 'WQY' ─→ group (price, qty): bounds, compared side by side
//!                                       └──→ others: evaluated one by one
//! ```

mod asked;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use quarrier_messages::column::float_key;
use quarrier_messages::{Kind, Schema, Value};

use super::{HeldValue, Sieve};
use crate::naive;
use crate::predicate::place;
use crate::{Expr, Fault};
use asked::{Asked, Key, Test, bare};

/// With fewer conditions, all are evaluated.
const CONDITIONS_MIN: usize = 32;
/// The maximum number of decimals of bounds.
const SCALE_MAX: u8 = 18;

/// Conditions by the values that they require.
#[derive(Debug)]
pub(super) struct Index {
    anchors: Vec<Anchor>,
    /// All conditions, by number.
    exprs: Arc<[Expr]>,
    /// Whether the index has each of them.
    members: Vec<bool>,
    /// The columns of the schema whose values it tests, ascending.
    columns: Vec<usize>,
}

/// The conditions that are indexed by one column.
#[derive(Debug)]
struct Anchor {
    /// The column's index in the schema.
    column: usize,
    /// The index of the bucket of each value.
    strings: HashMap<Box<str>, usize>,
    numbers: HashMap<(i64, u8), usize>,
    buckets: Vec<Bucket>,
}

/// The conditions that require one value.
#[derive(Debug, Default)]
struct Bucket {
    groups: Vec<Group>,
    others: Vec<u32>,
}

/// Conditions that have bounds on the same columns and no other tests.
#[derive(Debug)]
struct Group {
    conditions: Vec<u32>,
    bounds: Vec<Bounds>,
}

/// The least and the greatest key of each condition.
#[derive(Debug)]
struct Bounds {
    /// The column's index in the schema.
    column: usize,
    scale: u8,
    first: Vec<i64>,
    last: Vec<i64>,
}

/// The least and the greatest key of a column in one condition.
#[derive(Debug, Clone, Copy)]
struct Bound {
    column: usize,
    first: i128,
    last: i128,
}

impl Index {
    /// Builds an index, and chooses the conditions to include; `None` if it would save nothing.
    pub(super) fn of(schema: &Schema, conditions: &Arc<[Expr]>) -> Option<Index> {
        if conditions.len() < CONDITIONS_MIN {
            return None;
        }
        let asked = Asked::of(schema, conditions);
        let chosen = chosen(schema, asked.tests());
        let scales = scales(schema, asked.tests());
        let mut anchors = Anchors { all: Vec::new(), scales, bounds: Vec::new() };
        let mut members = vec![false; conditions.len()];
        let mut is_tested = vec![false; schema.fields.len()];
        for (number, tests) in asked.conditions().enumerate() {
            let Some(at) = anchor(tests, &chosen) else { continue };
            anchors.add(number as u32, (tests, at), schema);
            members[number] = true;
            tests.iter().for_each(|(column, _)| is_tested[*column] = true);
        }
        let count = members.iter().filter(|is_member| **is_member).count();
        let columns = (0..is_tested.len()).filter(|column| is_tested[*column]).collect();
        let index = Index { anchors: anchors.all, exprs: Arc::clone(conditions), members, columns };
        (count >= CONDITIONS_MIN).then_some(index)
    }

    /// Whether it includes a condition.
    pub(super) fn has(&self, condition: usize) -> bool {
        self.members.get(condition).copied().unwrap_or(false)
    }

    /// Returns a condition by its number.
    pub(super) fn condition(&self, number: usize) -> &Expr {
        &self.exprs[number]
    }

    /// Returns the columns of the schema whose values it tests.
    pub(super) fn columns(&self) -> &[usize] {
        &self.columns
    }
}

/// The anchors of an index while it is built.
struct Anchors {
    all: Vec<Anchor>,
    /// The decimals of each column's bounds; `None` if it has no exact numbers.
    scales: Vec<Option<u8>>,
    /// The bounds of the condition to be added.
    bounds: Vec<Bound>,
}

impl Anchors {
    /// Adds a condition, by its test number `at`.
    fn add(&mut self, number: u32, (tests, at): (&[(usize, Test<'_>)], usize), schema: &Schema) {
        let (column, test) = &tests[at];
        let keys = test.keys().unwrap_or_default();
        let has_bounds = self.find_bounds(tests, at, schema).is_some();
        let anchor = match self.all.iter().position(|anchor| anchor.column == *column) {
            Some(known) => &mut self.all[known],
            None => {
                let (strings, numbers, buckets) = Default::default();
                self.all.push(Anchor { column: *column, strings, numbers, buckets });
                let last = self.all.len() - 1;
                &mut self.all[last]
            }
        };
        // A repeated value counts once.
        let mut known = HashSet::new();
        for key in keys {
            if keys.len() > 1 && !known.insert(key) {
                continue;
            }
            let bucket = anchor.bucket_of(key);
            match has_bounds {
                true => bucket.bounded(number, &self.bounds, &self.scales),
                false => bucket.others.push(number),
            }
        }
    }

    /// Finds the bounds on all columns but the anchor's, in the order of the columns; `None` if the condition
    /// has another test.
    fn find_bounds(
        &mut self,
        tests: &[(usize, Test<'_>)],
        anchor: usize,
        schema: &Schema,
    ) -> Option<()> {
        let bounds = &mut self.bounds;
        bounds.clear();
        for (at, (column, test)) in tests.iter().enumerate() {
            let (op, literal) = match test {
                _ if at == anchor => continue,
                Test::Range(op, literal) => (*op, *literal),
                _ => return None,
            };
            let kind = match (schema.fields[*column].kind, self.scales[*column]) {
                (Kind::Integer | Kind::Decimal { .. }, Some(scale @ 1..)) => {
                    Kind::Decimal { scale }
                }
                (Kind::Decimal { .. }, _) => Kind::Integer,
                (kind, _) => kind,
            };
            let (first, last) = place(kind, None, literal)?.range(op)?;
            bounds.push(Bound { column: *column, first, last });
        }
        bounds.sort_unstable_by_key(|bound| bound.column);
        bounds.dedup_by(|later, kept| {
            let is_same = later.column == kept.column;
            if is_same {
                kept.first = kept.first.max(later.first);
                kept.last = kept.last.min(later.last);
            }
            is_same
        });
        Some(())
    }
}

impl Bound {
    /// Returns the first and the last key of 64 bits; 1 and 0 if there is none.
    fn narrow(self) -> (i64, i64) {
        let (first, last) = (self.first.max(i64::MIN.into()), self.last.min(i64::MAX.into()));
        if first <= last { (first as i64, last as i64) } else { (1, 0) }
    }
}

impl Anchor {
    /// Returns the bucket of a value, which it makes if there is none.
    fn bucket_of(&mut self, key: &Key<'_>) -> &mut Bucket {
        let known = match key {
            Key::Text(text) => self.strings.get(*text).copied(),
            Key::Number(key, scale) => self.numbers.get(&(*key, *scale)).copied(),
        };
        let at = known.unwrap_or_else(|| {
            let at = self.buckets.len();
            self.buckets.push(Bucket::default());
            match key {
                Key::Text(text) => self.strings.insert((*text).into(), at),
                Key::Number(key, scale) => self.numbers.insert((*key, *scale), at),
            };
            at
        });
        &mut self.buckets[at]
    }
}

impl Bucket {
    fn bounded(&mut self, number: u32, bounds: &[Bound], scales: &[Option<u8>]) {
        let columns = || bounds.iter().map(|bound| bound.column);
        let is_alike =
            |group: &Group| group.bounds.iter().map(|bounds| bounds.column).eq(columns());
        let group = match self.groups.iter().position(is_alike) {
            Some(known) => &mut self.groups[known],
            None => {
                let none = |column: usize| Bounds {
                    column,
                    scale: scales[column].unwrap_or(0),
                    first: Vec::new(),
                    last: Vec::new(),
                };
                let bounds = columns().map(none).collect();
                self.groups.push(Group { conditions: Vec::new(), bounds });
                let last = self.groups.len() - 1;
                &mut self.groups[last]
            }
        };
        group.conditions.push(number);
        for (known, bound) in group.bounds.iter_mut().zip(bounds) {
            let (first, last) = bound.narrow();
            known.first.push(first);
            known.last.push(last);
        }
    }
}

/// Returns the number of different values required of each column: the more, the fewer conditions
/// per value.
fn chosen(schema: &Schema, tests: &[(usize, Test<'_>)]) -> Vec<usize> {
    let mut known: Vec<HashSet<Key<'_>>> = vec![HashSet::new(); schema.fields.len()];
    for (column, test) in tests {
        known[*column].extend(test.keys().unwrap_or_default());
    }
    known.iter().map(HashSet::len).collect()
}

/// Returns which test of a condition is the anchor.
fn anchor(tests: &[(usize, Test<'_>)], chosen: &[usize]) -> Option<usize> {
    let places = tests.iter().enumerate().filter_map(|(at, (column, test))| {
        let keys = test.keys()?;
        Some((chosen[*column] / keys.len().max(1), at))
    });
    places.max().map(|(_, at)| at)
}

/// Returns, for each column with bounds, the decimals of the bounds and of its own values.
fn scales(schema: &Schema, tests: &[(usize, Test<'_>)]) -> Vec<Option<u8>> {
    let mut scales = vec![None; schema.fields.len()];
    for (column, test) in tests {
        let own = match schema.fields[*column].kind {
            Kind::Decimal { scale } => scale,
            Kind::Integer => 0,
            _ => continue,
        };
        let asked = match test {
            Test::Range(_, Value::Decimal { scale, .. }) => *scale,
            _ => 0,
        };
        let known = scales[*column].unwrap_or(0);
        scales[*column] = Some(own.max(asked).max(known).min(SCALE_MAX));
    }
    scales
}

impl Sieve {
    /// Appends the conditions in the index that are true for the row, and those that have no value, in
    /// no particular order.
    pub(super) fn find(&self, index: &Index, found: &mut Vec<u32>, faults: &mut Vec<(u32, Fault)>) {
        for anchor in &index.anchors {
            if let Some(bucket) = self.bucket(anchor) {
                for group in &bucket.groups {
                    self.compare(index, group, found, faults);
                }
                self.evaluate(index, &bucket.others, found, faults);
            }
        }
    }

    fn held_of(&self, column: usize) -> HeldValue {
        let at = self.places.get(column).copied().flatten();
        at.map_or(HeldValue::Null, |at| self.held[at])
    }

    fn bucket<'i>(&self, anchor: &'i Anchor) -> Option<&'i Bucket> {
        let at = match self.held_of(anchor.column) {
            HeldValue::Text(from, to) => anchor.strings.get(&self.held_text[from..to]),
            held => {
                let (key, scale) = match held {
                    HeldValue::Exact(mantissa, scale) => bare(mantissa, scale)?,
                    other => (key_of(other)?, 0),
                };
                anchor.numbers.get(&(key, scale))
            }
        };
        at.map(|at| &anchor.buckets[*at])
    }

    fn evaluate(
        &self,
        index: &Index,
        conditions: &[u32],
        found: &mut Vec<u32>,
        faults: &mut Vec<(u32, Fault)>,
    ) {
        for condition in conditions {
            match naive::truth(index.condition(*condition as usize), self) {
                Ok(Some(true)) => found.push(*condition),
                Ok(_) => {}
                Err(fault) => faults.push((*condition, fault)),
            }
        }
    }

    /// Compares the row with the bounds of all conditions of a group.
    fn compare(
        &self,
        index: &Index,
        group: &Group,
        found: &mut Vec<u32>,
        faults: &mut Vec<(u32, Fault)>,
    ) {
        for bounds in &group.bounds {
            match self.held_of(bounds.column) {
                HeldValue::Null => return,
                held if scaled(held, bounds.scale).is_none() => {
                    // The value has more digits than any bound.
                    return self.evaluate(index, &group.conditions, found, faults);
                }
                _ => {}
            }
        }
        for (number, conditions) in group.conditions.chunks(64).enumerate() {
            let mut left = u64::MAX >> (64 - conditions.len());
            for bounds in &group.bounds {
                let Some(key) = scaled(self.held_of(bounds.column), bounds.scale) else { continue };
                let these = number * 64..number * 64 + conditions.len();
                let both = bounds.first[these.clone()].iter().zip(&bounds.last[these]);
                let mut within = 0;
                for (bit, (first, last)) in both.enumerate() {
                    within |= u64::from((*first <= key) & (key <= *last)) << bit;
                }
                left &= within;
            }
            while left != 0 {
                found.push(conditions[left.trailing_zeros() as usize]);
                left &= left - 1;
            }
        }
    }
}

/// Returns the key of a value that is not an exact number with decimals.
fn key_of(held: HeldValue) -> Option<i64> {
    Some(match held {
        HeldValue::Boolean(truth) => truth.into(),
        HeldValue::Integer(number) => number,
        HeldValue::Float(number) => float_key(number),
        HeldValue::Date(day) => day.into(),
        HeldValue::Timestamp(nanoseconds) => nanoseconds,
        HeldValue::Null | HeldValue::Exact(..) | HeldValue::Text(..) => return None,
    })
}

/// Returns the key at a scale, if it fits 64 bits.
fn scaled(held: HeldValue, to: u8) -> Option<i64> {
    let (mantissa, scale) = match held {
        HeldValue::Exact(mantissa, scale) if scale > to => {
            let (mantissa, scale) = bare(mantissa, scale)?;
            (mantissa.into(), scale)
        }
        HeldValue::Exact(mantissa, scale) => (mantissa, scale),
        HeldValue::Integer(number) if to > 0 => (i128::from(number), 0),
        other => return key_of(other),
    };
    let factor = 10_i128.checked_pow(to.checked_sub(scale)?.into())?;
    i64::try_from(mantissa.checked_mul(factor)?).ok()
}
