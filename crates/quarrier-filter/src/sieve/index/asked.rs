//! What conditions ask of columns, as far as an index can answer it.

use std::ops::Range;

use quarrier_messages::{Kind, Schema, Value};

use crate::Expr;
use crate::expr::{Comparison, Pattern};
use crate::predicate::{place, turned};

/// A value that a column must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Key<'e> {
    Text(&'e str),
    /// Without trailing zeros after the decimal point.
    Number(i64, u8),
}

/// The test of a column in a condition.
pub(super) enum Test<'e> {
    /// Equal to this value.
    Key(Key<'e>),
    /// Equal to one of these values.
    Keys(Vec<Key<'e>>),
    Range(Comparison, &'e Value),
    Other,
}

impl<'e> Test<'e> {
    /// Returns the values to which it compares a column for equality.
    pub(super) fn keys(&self) -> Option<&[Key<'e>]> {
        match self {
            Test::Key(key) => Some(std::slice::from_ref(key)),
            Test::Keys(keys) => Some(keys),
            Test::Range(..) | Test::Other => None,
        }
    }
}

/// The tests of all conditions, with the columns of the schema that they test.
pub(super) struct Asked<'e> {
    tests: Vec<(usize, Test<'e>)>,
    /// For each condition, its tests.
    ranges: Vec<Range<usize>>,
}

impl<'e> Asked<'e> {
    pub(super) fn of(schema: &Schema, conditions: &'e [Expr]) -> Self {
        let mut asked = Asked { tests: Vec::new(), ranges: Vec::with_capacity(conditions.len()) };
        for condition in conditions {
            let from = asked.tests.len();
            if !asked.add(schema, condition) {
                asked.tests.truncate(from);
            }
            asked.ranges.push(from..asked.tests.len());
        }
        asked
    }

    /// Returns the tests of each condition, if it only compares columns with constants, at least one of
    /// them for equality. Such a condition has a value for every row. None for all others.
    pub(super) fn conditions(&self) -> impl Iterator<Item = &[(usize, Test<'e>)]> {
        self.ranges.iter().map(|range| &self.tests[range.clone()])
    }

    /// Returns the tests of all conditions.
    pub(super) fn tests(&self) -> &[(usize, Test<'e>)] {
        &self.tests
    }

    /// Adds the tests of a condition; returns whether an index can have it.
    fn add(&mut self, schema: &Schema, condition: &'e Expr) -> bool {
        let operands = match condition {
            Expr::And(operands) => operands.as_slice(),
            one => std::slice::from_ref(one),
        };
        let mut has_keys = false;
        for operand in operands {
            let Some((column, test)) = test(schema, operand) else { return false };
            has_keys |= test.keys().is_some();
            self.tests.push((column, test));
        }
        has_keys
    }
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
            Some((column, compared(kind(column)?, op, literal)?))
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

fn compared(kind: Kind, op: Comparison, literal: &Value) -> Option<Test<'_>> {
    if op == Comparison::Equal
        && let Some(key) = key(kind, literal)
    {
        return Some(Test::Key(key));
    }
    if let (Kind::Text, Value::Text(_)) = (kind, literal) {
        return Some(Test::Other);
    }
    place(kind, None, literal)?;
    Some(Test::Range(op, literal))
}

/// Returns the key that all equal values of a column have; `None` if there is no single one.
fn key(kind: Kind, literal: &Value) -> Option<Key<'_>> {
    let number = |(key, scale)| Key::Number(key, scale);
    match (kind, literal) {
        (Kind::Text, Value::Text(text)) => Some(Key::Text(text)),
        (Kind::Text, _) => None,
        (Kind::Integer | Kind::Decimal { .. }, Value::Integer(whole)) => {
            bare((*whole).into(), 0).map(number)
        }
        (Kind::Integer | Kind::Decimal { .. }, Value::Decimal { mantissa, scale }) => {
            bare(*mantissa, *scale).map(number)
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
pub(super) fn bare(mut mantissa: i128, mut scale: u8) -> Option<(i64, u8)> {
    while scale > 0 && mantissa % 10 == 0 {
        (mantissa, scale) = (mantissa / 10, scale - 1);
    }
    Some((i64::try_from(mantissa).ok()?, scale))
}
