//! The position of a literal among the keys of a column.

use std::cmp::Ordering;

use quarrier_messages::column::{Dictionary, float_key};
use quarrier_messages::{Kind, Value};

use super::Set;
use crate::expr::Comparison;
use crate::naive::{self, Datum};
use crate::number::Exact;

/// The keys less than a literal end before `first`; the greater ones begin at `after`. Keys in
/// between equal the literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    first: i128,
    after: i128,
}

impl Place {
    fn exactly(key: i64) -> Place {
        Place { first: key.into(), after: i128::from(key) + 1 }
    }

    /// Returns the keys for which `key op literal` is true.
    pub(crate) fn set(self, op: Comparison) -> Set {
        let (least, greatest) = (i128::MIN, i128::MAX);
        let below = (least, self.first - 1);
        let above = (self.after, greatest);
        let equal = (self.first, self.after - 1);
        let ranges = match op {
            Comparison::Equal => vec![equal],
            Comparison::NotEqual => vec![below, above],
            Comparison::Less => vec![below],
            Comparison::LessOrEqual => vec![(least, self.after - 1)],
            Comparison::Greater => vec![above],
            Comparison::GreaterOrEqual => vec![(self.first, greatest)],
        };
        Set::union_of(ranges, false)
    }

    /// Returns the first and the last of these keys; `None` if others are between them.
    pub(crate) fn range(self, op: Comparison) -> Option<(i128, i128)> {
        let (least, greatest) = (i128::MIN, i128::MAX);
        Some(match op {
            Comparison::Equal => (self.first, self.after - 1),
            Comparison::NotEqual if self.first < self.after => return None,
            Comparison::NotEqual => (least, greatest),
            Comparison::Less => (least, self.first - 1),
            Comparison::LessOrEqual => (least, self.after - 1),
            Comparison::Greater => (self.after, greatest),
            Comparison::GreaterOrEqual => (self.first, greatest),
        })
    }
}

/// Returns the position of `literal`, not NULL, in a column of type `kind`, with this dictionary if
/// it has one; `None` if keys cannot decide (plain strings).
pub(crate) fn place(kind: Kind, dictionary: Option<&Dictionary>, literal: &Value) -> Option<Place> {
    Some(match (kind, literal) {
        (Kind::Boolean, Value::Boolean(truth)) => Place::exactly((*truth).into()),
        (Kind::Integer, Value::Integer(key)) | (Kind::Timestamp, Value::Timestamp(key)) => {
            Place::exactly(*key)
        }
        (Kind::Date, Value::Date(day)) => Place::exactly((*day).into()),
        (Kind::Integer, Value::Decimal { mantissa, scale }) => exact(0, *mantissa, *scale)?,
        (Kind::Decimal { scale }, Value::Integer(number)) => exact(scale, (*number).into(), 0)?,
        (Kind::Decimal { scale: of }, Value::Decimal { mantissa, scale }) => {
            exact(of, *mantissa, *scale)?
        }
        (Kind::Float, Value::Integer(_) | Value::Decimal { .. } | Value::Float(_)) => {
            Place::exactly(float_key(float(literal)?))
        }
        (Kind::Integer | Kind::Decimal { .. }, Value::Float(_))
        | (Kind::Date, Value::Timestamp(_))
        | (Kind::Timestamp, Value::Date(_)) => searched(kind, literal)?,
        (Kind::Text, Value::Text(text)) => match dictionary?.code_of(text) {
            Ok(code) => Place::exactly(code.into()),
            Err(next) => Place { first: next.into(), after: next.into() },
        },
        _ => return None,
    })
}

/// No column has a number this far out, since it would have more than 38 digits.
const BEYOND: i128 = i128::MAX - 1;

/// Returns the position of an exact number among mantissas of `scale`.
fn exact(scale: u8, mantissa: i128, literal_scale: u8) -> Option<Place> {
    if literal_scale <= scale {
        let factor = 10_i128.checked_pow(u32::from(scale - literal_scale))?;
        // Beyond all keys, the exact position of the literal does not matter.
        let key = mantissa.saturating_mul(factor).clamp(-BEYOND, BEYOND);
        return Some(Place { first: key, after: key + 1 });
    }
    let divisor = 10_i128.checked_pow(u32::from(literal_scale - scale))?;
    let mantissa = mantissa.clamp(-BEYOND, BEYOND);
    let (whole, rest) = (mantissa.div_euclid(divisor), mantissa.rem_euclid(divisor));
    Some(Place { first: whole + i128::from(rest != 0), after: whole + 1 })
}

/// Converts a number to the float as which it is compared.
pub(crate) fn float(literal: &Value) -> Option<f64> {
    Some(match literal {
        Value::Integer(number) => *number as f64,
        Value::Decimal { mantissa, scale } => Exact::new(*mantissa, *scale).float(),
        Value::Float(number) => *number,
        _ => return None,
    })
}

/// Searches by comparing: values are in the order of their keys.
fn searched(kind: Kind, literal: &Value) -> Option<Place> {
    let (least, greatest) = match kind {
        Kind::Date => (i128::from(i32::MIN), i128::from(i32::MAX)),
        Kind::Decimal { .. } => (1 - 10_i128.pow(38), 10_i128.pow(38) - 1),
        _ => (i128::from(i64::MIN), i128::from(i64::MAX)),
    };
    let literal = Datum::from(literal);
    let compared = |key: i128| naive::compare(&datum(kind, key), &literal).ok().flatten();
    compared(0)?;
    let first_where = |holds: &dyn Fn(Ordering) -> bool| {
        let (mut low, mut high) = (least, greatest + 1);
        while low < high {
            let middle = low + (high.abs_diff(low) / 2) as i128;
            match compared(middle) {
                Some(order) if !holds(order) => low = middle + 1,
                _ => high = middle,
            }
        }
        // There are no keys beyond the greatest of the type.
        if low > greatest { BEYOND } else { low }
    };
    Some(Place {
        first: first_where(&|order| order.is_ge()),
        after: first_where(&|order| order.is_gt()),
    })
}

/// Returns the operator with which `b op a` becomes `a turned(op) b`.
pub(crate) fn turned(op: Comparison) -> Comparison {
    match op {
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        same => same,
    }
}

/// Returns the value of a key of a column that has no floats or strings.
pub(crate) fn datum(kind: Kind, key: i128) -> Datum<'static> {
    match kind {
        Kind::Null | Kind::Text => Datum::Null,
        Kind::Boolean => Datum::Boolean(key != 0),
        Kind::Integer => Datum::Integer(key as i64),
        Kind::Decimal { scale } => Datum::Decimal { mantissa: key, scale },
        Kind::Float => Datum::Float(key as f64),
        Kind::Date => Datum::Date(key as i32),
        Kind::Timestamp => Datum::Timestamp(key as i64),
    }
}

#[cfg(test)]
mod tests {
    use super::{datum, place};
    use crate::expr::Comparison;
    use crate::naive;
    use quarrier_messages::{Kind, Value};

    #[test]
    fn a_literal_cuts_keys_as_comparing_them_does() {
        let decimal = |mantissa, scale| Value::Decimal { mantissa, scale };
        let most = 10_i128.pow(38) - 1;
        let (d2, day) = (Kind::Decimal { scale: 2 }, 86_400_000_000_000);
        let cases = [
            (
                Kind::Integer,
                vec![Value::Integer(7), decimal(75, 1), decimal(70, 1), decimal(-75, 1)],
            ),
            (Kind::Integer, vec![Value::Float(7.5), Value::Float(-0.0), Value::Float(f64::NAN)]),
            (
                Kind::Integer,
                vec![Value::Float(f64::INFINITY), Value::Float(9.3e18), decimal(i128::MAX, 0)],
            ),
            (d2, vec![Value::Integer(1), decimal(105, 2), decimal(1055, 3), decimal(-1055, 3)]),
            (d2, vec![Value::Float(1.05), Value::Float(f64::NEG_INFINITY)]),
            (d2, vec![Value::Float(1e30), decimal(most, 2), decimal(most, 3), decimal(-most, 0)]),
            (
                Kind::Decimal { scale: 38 },
                vec![Value::Float(0.5), decimal(most, 38), decimal(1, 0)],
            ),
            (Kind::Decimal { scale: 0 }, vec![decimal(1 << 64, 0), decimal(-most, 1)]),
            (
                Kind::Date,
                vec![Value::Date(3), Value::Timestamp(3 * day), Value::Timestamp(3 * day - 1)],
            ),
            (Kind::Timestamp, vec![Value::Date(3), Value::Timestamp(5), Value::Date(i32::MAX)]),
            (Kind::Boolean, vec![Value::Boolean(true), Value::Boolean(false)]),
        ];
        let ops = [
            Comparison::Equal,
            Comparison::NotEqual,
            Comparison::Less,
            Comparison::LessOrEqual,
            Comparison::Greater,
            Comparison::GreaterOrEqual,
        ];
        for (kind, literals) in cases {
            for literal in literals {
                let place = place(kind, None, &literal).unwrap();
                let mut keys: Vec<i128> =
                    vec![0, 1, 2, 3, 4, 6, 7, 8, 104, 105, 106, -7, -8, -106, -105];
                match kind {
                    Kind::Boolean => keys.truncate(2),
                    Kind::Date => keys.extend([i32::MIN, i32::MAX].map(i128::from)),
                    _ => {
                        let days = [3 * day - 1, 3 * day, 3 * day + 1];
                        keys.extend([i64::MIN, i64::MAX].into_iter().chain(days).map(i128::from));
                    }
                }
                if let Kind::Decimal { .. } = kind {
                    let far = [most, most - 1, 1 << 64, 10_i128.pow(32), most / 10];
                    keys.extend(far.into_iter().flat_map(|far| [far, far + 1, -far, 1 - far]));
                    keys.retain(|key| (-most..=most).contains(key));
                }
                for key in keys {
                    let order = naive::compare(&datum(kind, key), &(&literal).into()).unwrap();
                    for op in ops {
                        let inside = place.set(op).contains(key);
                        if let Some((first, last)) = place.range(op) {
                            assert_eq!(
                                inside,
                                first <= key && key <= last,
                                "{kind:?} {key} {op:?}"
                            );
                        } else {
                            assert_eq!(op, Comparison::NotEqual);
                        }
                        let expected = naive::holds(op, order.unwrap());
                        assert_eq!(inside, expected, "{kind:?} {key} {op:?} {literal:?}");
                    }
                }
            }
        }
    }
}
