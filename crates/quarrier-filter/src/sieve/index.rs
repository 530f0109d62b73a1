//! Evaluates many conditions at once. An index by the values with which conditions compare a column
//! finds the conditions that a row's value may satisfy, and skips all others.
//!
//! ```text
//!  symbol = 'WQY' AND price > 10 AND qty < 5
//!  └ anchor: looked up ─→ bucket of 'WQY' ─→ group (price, qty): bounds, compared side by side
//!                                       └──→ others: evaluated one by one
//! ```

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use quarrier_messages::column::float_key;
use quarrier_messages::{Kind, Schema, Value};

use super::{HeldValue, Sieve};
use crate::expr::{Comparison, Pattern};
use crate::naive;
use crate::predicate::{Set, columns_of, place, turned};
use crate::{Expr, Fault};

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

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Text(Box<str>),
    /// Without trailing zeros after the decimal point.
    Number(i64, u8),
}

/// The test of a column in a condition.
enum Test<'e> {
    /// Equal to one of these values.
    Keys(Vec<Key>),
    Range(Comparison, &'e Value),
    Other,
}

impl Index {
    /// Builds an index, and chooses the conditions to include; `None` if it would save nothing.
    pub(super) fn of(schema: &Schema, conditions: &Arc<[Expr]>) -> Option<Index> {
        if conditions.len() < CONDITIONS_MIN {
            return None;
        }
        let asked: Vec<_> = conditions.iter().map(|condition| tests(schema, condition)).collect();
        let chosen = chosen(&asked);
        let scales = scales(schema, asked.iter().flatten());
        let members = vec![false; conditions.len()];
        let mut index = Index { anchors: Vec::new(), exprs: Arc::clone(conditions), members };
        for (number, tests) in asked.iter().enumerate() {
            let anchor = tests.as_deref().and_then(|tests| anchor(tests, &chosen));
            let (Some(tests), Some(at)) = (tests, anchor) else { continue };
            index.add(number as u32, (tests, at), schema, &scales);
            index.members[number] = true;
        }
        let count = index.conditions().count();
        (count >= CONDITIONS_MIN).then_some(index)
    }

    /// Returns the conditions in it.
    fn conditions(&self) -> impl Iterator<Item = &Expr> {
        let all = self.exprs.iter().zip(&self.members);
        all.filter(|(_, is_member)| **is_member).map(|(condition, _)| condition)
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
    pub(super) fn columns(&self) -> HashSet<usize> {
        let mut columns = Vec::new();
        self.conditions().for_each(|condition| columns_of(condition, &mut columns));
        columns.into_iter().collect()
    }

    fn add(
        &mut self,
        number: u32,
        (tests, at): (&[(usize, Test<'_>)], usize),
        schema: &Schema,
        scales: &HashMap<usize, u8>,
    ) {
        let (column, Test::Keys(keys)) = &tests[at] else { return };
        let bounds = bounds(tests, at, schema, scales);
        let anchor = match self.anchors.iter().position(|anchor| anchor.column == *column) {
            Some(known) => &mut self.anchors[known],
            None => {
                let (strings, numbers, buckets) = Default::default();
                self.anchors.push(Anchor { column: *column, strings, numbers, buckets });
                let last = self.anchors.len() - 1;
                &mut self.anchors[last]
            }
        };
        // A repeated value counts once.
        let mut known = HashSet::new();
        for key in keys {
            if keys.len() > 1 && !known.insert(key) {
                continue;
            }
            let bucket = anchor.bucket_of(key);
            match &bounds {
                Some(bounds) => bucket.bounded(number, bounds, scales),
                None => bucket.others.push(number),
            }
        }
    }
}

impl Anchor {
    /// Returns the bucket of a value, which it makes if there is none.
    fn bucket_of(&mut self, key: &Key) -> &mut Bucket {
        let known = match key {
            Key::Text(text) => self.strings.get(text).copied(),
            Key::Number(key, scale) => self.numbers.get(&(*key, *scale)).copied(),
        };
        let at = known.unwrap_or_else(|| {
            let at = self.buckets.len();
            self.buckets.push(Bucket::default());
            match key {
                Key::Text(text) => self.strings.insert(text.clone(), at),
                Key::Number(key, scale) => self.numbers.insert((*key, *scale), at),
            };
            at
        });
        &mut self.buckets[at]
    }
}

impl Bucket {
    fn bounded(
        &mut self,
        number: u32,
        bounds: &BTreeMap<usize, (i64, i64)>,
        scales: &HashMap<usize, u8>,
    ) {
        let is_alike = |group: &Group| {
            group.bounds.iter().map(|bounds| bounds.column).eq(bounds.keys().copied())
        };
        let group = match self.groups.iter().position(is_alike) {
            Some(known) => &mut self.groups[known],
            None => {
                let none = |column: &usize| Bounds {
                    column: *column,
                    scale: scales.get(column).copied().unwrap_or(0),
                    first: Vec::new(),
                    last: Vec::new(),
                };
                let bounds = bounds.keys().map(none).collect();
                self.groups.push(Group { conditions: Vec::new(), bounds });
                let last = self.groups.len() - 1;
                &mut self.groups[last]
            }
        };
        group.conditions.push(number);
        for (known, (first, last)) in group.bounds.iter_mut().zip(bounds.values()) {
            known.first.push(*first);
            known.last.push(*last);
        }
    }
}

/// Returns the tests of a condition that only compares columns with constants, at least one of them
/// for equality. Such a condition has a value for every row.
fn tests<'e>(schema: &Schema, condition: &'e Expr) -> Option<Vec<(usize, Test<'e>)>> {
    let operands = match condition {
        Expr::And(operands) => operands.as_slice(),
        one => std::slice::from_ref(one),
    };
    let tests = operands.iter().map(|operand| test(schema, operand));
    let tests = tests.collect::<Option<Vec<_>>>()?;
    tests.iter().any(|(_, test)| matches!(test, Test::Keys(_))).then_some(tests)
}

fn test<'e>(schema: &Schema, expr: &'e Expr) -> Option<(usize, Test<'e>)> {
    let kind =
        |column: usize| Some(schema.fields.get(column)?.kind).filter(|kind| *kind != Kind::Null);
    match expr {
        Expr::Compare { op, left, right } => {
            let (column, op, literal) = match (&**left, &**right) {
                (Expr::Column(column), Expr::Literal(literal)) => (*column, *op, literal),
                (Expr::Literal(literal), Expr::Column(column)) => (*column, turned(*op), literal),
                _ => return None,
            };
            let kind = kind(column)?;
            let key = key(kind, literal);
            Some((
                column,
                match (op, key) {
                    (Comparison::Equal, Some(key)) => Test::Keys(vec![key]),
                    (_, Some(Key::Text(_))) => Test::Other,
                    _ => {
                        place(kind, None, literal)?;
                        Test::Range(op, literal)
                    }
                },
            ))
        }
        Expr::In { operand, list } => {
            let Expr::Column(column) = **operand else { return None };
            let kind = kind(column)?;
            let keys = list.iter().map(|element| match element {
                Expr::Literal(value) => key(kind, value),
                _ => None,
            });
            Some((column, Test::Keys(keys.collect::<Option<_>>()?)))
        }
        Expr::IsNull(operand) => match **operand {
            Expr::Column(column) => kind(column).map(|_| (column, Test::Other)),
            _ => None,
        },
        Expr::Match { operand, pattern: Pattern::Fixed(_) } => match **operand {
            Expr::Column(column) => (kind(column)? == Kind::Text).then_some((column, Test::Other)),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the key that all equal values of a column have; `None` if there is no single one.
fn key(kind: Kind, literal: &Value) -> Option<Key> {
    match (kind, literal) {
        (Kind::Text, Value::Text(text)) => Some(Key::Text(text.clone())),
        (Kind::Text, _) => None,
        (Kind::Integer | Kind::Decimal { .. }, Value::Integer(number)) => {
            bare((*number).into(), 0).map(|(key, scale)| Key::Number(key, scale))
        }
        (Kind::Integer | Kind::Decimal { .. }, Value::Decimal { mantissa, scale }) => {
            bare(*mantissa, *scale).map(|(key, scale)| Key::Number(key, scale))
        }
        (Kind::Integer | Kind::Decimal { .. }, _) => None,
        _ => {
            let set = place(kind, None, literal)?.set(Comparison::Equal);
            match set.narrow_within(i64::MIN, i64::MAX)[..] {
                [(first, last)] if first == last => Some(Key::Number(first, 0)),
                _ => None,
            }
        }
    }
}

/// Returns an exact number without trailing zeros after the point, if it fits 64 bits.
fn bare(mut mantissa: i128, mut scale: u8) -> Option<(i64, u8)> {
    while scale > 0 && mantissa % 10 == 0 {
        (mantissa, scale) = (mantissa / 10, scale - 1);
    }
    Some((i64::try_from(mantissa).ok()?, scale))
}

/// Returns the number of different values required of each column: the more, the fewer conditions
/// per value.
fn chosen<'t, 'e: 't>(asked: &'t [Option<Vec<(usize, Test<'e>)>>]) -> HashMap<usize, usize> {
    let mut known: HashMap<usize, HashSet<&Key>> = HashMap::new();
    for (column, test) in asked.iter().flatten().flatten() {
        if let Test::Keys(keys) = test {
            known.entry(*column).or_default().extend(keys);
        }
    }
    known.into_iter().map(|(column, keys)| (column, keys.len())).collect()
}

/// Returns which test of a condition is the anchor.
fn anchor(tests: &[(usize, Test<'_>)], chosen: &HashMap<usize, usize>) -> Option<usize> {
    let places = tests.iter().enumerate().filter_map(|(at, (column, test))| match test {
        Test::Keys(keys) => {
            let values = chosen.get(column).copied().unwrap_or(1);
            Some((values / keys.len().max(1), at))
        }
        _ => None,
    });
    places.max().map(|(_, at)| at)
}

/// Returns, for each column with bounds, the decimals of the bounds and of its own values.
fn scales<'t, 'e: 't>(
    schema: &Schema,
    asked: impl Iterator<Item = &'t Vec<(usize, Test<'e>)>>,
) -> HashMap<usize, u8> {
    let mut scales = HashMap::new();
    for (column, test) in asked.flatten() {
        let own = match schema.fields[*column].kind {
            Kind::Decimal { scale } => scale,
            Kind::Integer => 0,
            _ => continue,
        };
        let asked = match test {
            Test::Range(_, Value::Decimal { scale, .. }) => *scale,
            _ => 0,
        };
        let known = scales.entry(*column).or_insert(0);
        *known = own.max(asked).max(*known).min(SCALE_MAX);
    }
    scales
}

/// Returns the bounds on all columns but the anchor's; `None` if the condition has another test.
fn bounds(
    tests: &[(usize, Test<'_>)],
    anchor: usize,
    schema: &Schema,
    scales: &HashMap<usize, u8>,
) -> Option<BTreeMap<usize, (i64, i64)>> {
    let mut sets: BTreeMap<usize, Set> = BTreeMap::new();
    for (at, (column, test)) in tests.iter().enumerate() {
        let (op, literal) = match test {
            _ if at == anchor => continue,
            Test::Range(op, literal) => (*op, *literal),
            _ => return None,
        };
        let kind = match (schema.fields[*column].kind, scales.get(column)) {
            (Kind::Integer | Kind::Decimal { .. }, Some(scale @ 1..)) => {
                Kind::Decimal { scale: *scale }
            }
            (Kind::Decimal { .. }, _) => Kind::Integer,
            (kind, _) => kind,
        };
        let set = place(kind, None, literal)?.set(op);
        match sets.get_mut(column) {
            Some(known) => *known = known.intersection(&set),
            None => drop(sets.insert(*column, set)),
        }
    }
    let bounds = sets.iter().map(|(column, set)| match set.narrow_within(i64::MIN, i64::MAX)[..] {
        [] => Some((*column, (1, 0))),
        [range] => Some((*column, range)),
        _ => None,
    });
    bounds.collect()
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
