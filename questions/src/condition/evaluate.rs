//! Evaluates conditions in the simplest way, row by row.

use std::cmp::Ordering;

use super::{Arithmetic, Comparison, Condition, Operand};
use crate::table::Table;
use crate::value::{Value, whole};

/// Why a condition has no result: an integer overflowed 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault;

/// Returns the rows for which the condition is true.
///
/// # Errors
/// If the result for a row depends on a calculation that overflows.
pub fn matching(condition: &Condition, table: &Table) -> Result<Vec<usize>, Fault> {
    let mut rows = Vec::new();
    for row in 0..table.rows {
        if truth(condition, table, row)? == Some(true) {
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Returns the rows for which the condition is true, whatever the value of calculations that
/// overflow; `None` if the result for some row depends on such a value.
pub fn matching_whatever(condition: &Condition, table: &Table) -> Option<Vec<usize>> {
    let mut rows = Vec::new();
    for row in 0..table.rows {
        match &possible(condition, table, row)[..] {
            [Some(true)] => rows.push(row),
            truths if truths.contains(&Some(true)) => return None,
            _ => {}
        }
    }
    Some(rows)
}

const TRUTHS: [Option<bool>; 3] = [Some(true), Some(false), None];

/// The possible results for a row: a comparison with a calculation that overflows may have any.
fn possible(condition: &Condition, table: &Table, row: usize) -> Vec<Option<bool>> {
    let of = |inner: &Condition| possible(inner, table, row);
    let pairs = |one: &Condition, other: &Condition, decisive: bool| {
        let (ones, others) = (of(one), of(other));
        let all = ones.iter().flat_map(|&one| others.iter().map(move |&other| [one, other]));
        all.filter_map(|sides| joined(sides.map(Ok), decisive).ok()).collect()
    };
    let mut truths: Vec<Option<bool>> = match condition {
        Condition::Not(inner) => of(inner).into_iter().map(|truth| Some(!truth?)).collect(),
        Condition::And(one, other) => pairs(one, other, false),
        Condition::Or(one, other) => pairs(one, other, true),
        Condition::Unknown(inner) if is_never_unknown(inner) => vec![Some(false)],
        Condition::Unknown(inner) => {
            of(inner).into_iter().map(|truth| Some(truth.is_none())).collect()
        }
        _ => truth(condition, table, row).map_or(TRUTHS.to_vec(), |truth| vec![truth]),
    };
    truths.sort_unstable();
    truths.dedup();
    truths
}

/// Whether a calculation of the condition overflows in some row, even if the result does not depend
/// on it.
pub fn may_fault(condition: &Condition, table: &Table) -> bool {
    let mut calculations = Vec::new();
    of_condition(condition, &mut calculations);
    let faults =
        |operand: &&Operand| (0..table.rows).any(|row| value(operand, table, row).is_err());
    calculations.iter().any(faults)
}

fn of_condition<'c>(condition: &'c Condition, found: &mut Vec<&'c Operand>) {
    match condition {
        Condition::Compare(_, left, right) => found.extend([left, right]),
        Condition::Between { operand, low, high, .. } => found.extend([operand, low, high]),
        Condition::In { operand, list, .. } => {
            found.push(operand);
            found.extend(list);
        }
        Condition::Like { operand, .. } | Condition::IsNull(operand, _) => found.push(operand),
        Condition::Truth(_) => {}
        Condition::Not(inner) | Condition::Unknown(inner) => of_condition(inner, found),
        Condition::And(one, other) | Condition::Or(one, other) => {
            of_condition(one, found);
            of_condition(other, found);
        }
    }
}

fn truth(condition: &Condition, table: &Table, row: usize) -> Result<Option<bool>, Fault> {
    let value = |operand: &Operand| value(operand, table, row);
    Ok(match condition {
        Condition::Compare(op, left, right) => compared(*op, left, right, table, row)?,
        Condition::Between { operand, negated, low, high } => {
            let above = compared(Comparison::GreaterOrEqual, operand, low, table, row);
            let below = compared(Comparison::LessOrEqual, operand, high, table, row);
            joined([above, below], false)?.map(|truth| truth != *negated)
        }
        Condition::In { list, .. } if matches!(&list[..], [one] if is_null(one)) => None,
        Condition::In { operand, negated, list } => {
            let operand = value(operand)?;
            let equal = |element| Ok(operand.compared(&value(element)?).map(Ordering::is_eq));
            joined(list.iter().map(equal), true)?.map(|truth| truth != *negated)
        }
        Condition::Like { operand, negated, pattern, is_escaped } => match value(operand)? {
            Value::Text(text) => {
                let escape = is_escaped.then_some('!');
                let text: Vec<char> = text.chars().collect();
                let pattern: Vec<char> = pattern.chars().collect();
                Some(like(&text, &pattern, escape) != *negated)
            }
            _ => None,
        },
        Condition::IsNull(operand, negated) => Some(value(operand)?.is_null() != *negated),
        Condition::Truth(column) => match table.columns[*column].values[row] {
            Value::Truth(truth) => Some(truth),
            _ => None,
        },
        Condition::Not(inner) => truth(inner, table, row)?.map(|truth| !truth),
        Condition::And(one, other) => {
            joined([one, other].map(|side| truth(side, table, row)), false)?
        }
        Condition::Or(one, other) => {
            joined([one, other].map(|side| truth(side, table, row)), true)?
        }
        // DataFusion does not evaluate it, so an overflow in it is not an error of the statement.
        Condition::Unknown(inner) if is_never_unknown(inner) => Some(false),
        Condition::Unknown(inner) => Some(truth(inner, table, row)?.is_none()),
    })
}

/// Whether a condition is true or false in every row, whatever its operands are.
fn is_never_unknown(condition: &Condition) -> bool {
    match condition {
        Condition::IsNull(..) | Condition::Unknown(_) => true,
        Condition::Not(inner) => is_never_unknown(inner),
        Condition::And(one, other) | Condition::Or(one, other) => {
            is_never_unknown(one) && is_never_unknown(other)
        }
        Condition::Compare(_, left, right) => is_literal(left) && is_literal(right),
        Condition::Between { operand, low, high, .. } => {
            [operand, low, high].into_iter().all(is_literal)
        }
        Condition::In { operand, list, .. } => is_literal(operand) && list.iter().all(is_literal),
        Condition::Like { .. } | Condition::Truth(_) => false,
    }
}

/// Whether an operand is a literal that is not NULL.
fn is_literal(operand: &Operand) -> bool {
    matches!(operand, Operand::Literal(..)) && !is_null(operand)
}

/// The result of a comparison. It is NULL if one side is the literal NULL, even if the other side has no
/// value.
fn compared(
    op: Comparison,
    left: &Operand,
    right: &Operand,
    table: &Table,
    row: usize,
) -> Result<Option<bool>, Fault> {
    if is_null(left) || is_null(right) {
        return Ok(None);
    }
    let (left, right) = (value(left, table, row)?, value(right, table, row)?);
    Ok(left.compared(&right).map(|order| holds(op, order)))
}

fn is_null(operand: &Operand) -> bool {
    matches!(operand, Operand::Literal(Value::Null, _))
}

/// AND if `decisive` is false, OR if it is true. A decisive side hides the faults of the others.
fn joined(
    sides: impl IntoIterator<Item = Result<Option<bool>, Fault>>,
    decisive: bool,
) -> Result<Option<bool>, Fault> {
    let sides: Vec<_> = sides.into_iter().collect();
    if sides.contains(&Ok(Some(decisive))) {
        return Ok(Some(decisive));
    }
    let all: Vec<Option<bool>> = sides.into_iter().collect::<Result<_, _>>()?;
    Ok(if all.contains(&None) { None } else { Some(!decisive) })
}

fn value(operand: &Operand, table: &Table, row: usize) -> Result<Value, Fault> {
    let value = |operand: &Operand| value(operand, table, row);
    Ok(match operand {
        Operand::Column(column) => table.columns[*column].values[row].clone(),
        Operand::Literal(literal, _) => literal.clone(),
        Operand::Calculated(op, left, right) => calculated(*op, &value(left)?, &value(right)?)?,
        Operand::Length(text) => match value(text)? {
            Value::Text(text) => whole(text.chars().count() as i64),
            _ => Value::Null,
        },
        Operand::Upper(text) => match value(text)? {
            Value::Text(text) => Value::Text(text.to_uppercase().into()),
            _ => Value::Null,
        },
        Operand::Joined(left, right) => match (value(left)?, value(right)?) {
            (Value::Text(left), Value::Text(right)) => Value::Text(format!("{left}{right}").into()),
            _ => Value::Null,
        },
        Operand::Coalesce(first, second) => match value(first)? {
            Value::Null => value(second)?,
            first => first,
        },
        Operand::Case(condition, then, otherwise) => {
            let chosen = truth(condition, table, row)? == Some(true);
            value(if chosen { then } else { otherwise })?
        }
    })
}

fn calculated(op: Arithmetic, left: &Value, right: &Value) -> Result<Value, Fault> {
    let (Value::Exact { mantissa: left, .. }, Value::Exact { mantissa: right, .. }) = (left, right)
    else {
        return Ok(Value::Null);
    };
    let result = match op {
        Arithmetic::Add => left.checked_add(*right),
        Arithmetic::Subtract => left.checked_sub(*right),
        Arithmetic::Multiply => left.checked_mul(*right),
    };
    let result = result.and_then(|result| i64::try_from(result).ok()).ok_or(Fault)?;
    Ok(whole(result))
}

fn holds(op: Comparison, order: Ordering) -> bool {
    match op {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }
}

/// Whether a string matches a LIKE pattern. Only the last `%` has to be retried, so the time is at
/// most the product of the two lengths.
fn like(text: &[char], pattern: &[char], escape: Option<char>) -> bool {
    let (mut at, mut next) = (0, 0);
    let mut retry = None;
    loop {
        let literal = match pattern.get(next) {
            Some('%') => {
                retry = Some((at, next + 1));
                next += 1;
                continue;
            }
            Some('_') if at < text.len() => {
                (at, next) = (at + 1, next + 1);
                continue;
            }
            Some(&mark) if Some(mark) == escape => pattern.get(next + 1).map(|&c| (c, 2)),
            Some(&c) if c != '_' => Some((c, 1)),
            _ => None,
        };
        match literal {
            Some((wanted, length)) if text.get(at) == Some(&wanted) => {
                (at, next) = (at + 1, next + length);
            }
            None if next == pattern.len() && at == text.len() => return true,
            _ => match retry {
                Some((from, after)) if from < text.len() => {
                    retry = Some((from + 1, after));
                    (at, next) = (from + 1, after);
                }
                _ => return false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::like;

    #[test]
    fn like_follows_the_standard() {
        let is = |text: &str, pattern: &str| {
            let text: Vec<char> = text.chars().collect();
            like(&text, &pattern.chars().collect::<Vec<_>>(), Some('!'))
        };
        for (text, pattern) in [
            ("", ""),
            ("", "%"),
            ("abc", "a%"),
            ("abc", "%c"),
            ("abc", "%b%"),
            ("abc", "___"),
            ("a_c", "a!_c"),
            ("aXbXc", "%X_"),
            ("é", "_"),
            ("aab", "%ab"),
            ("abab", "%ab%b"),
        ] {
            assert!(is(text, pattern), "{text} {pattern}");
        }
        for (text, pattern) in
            [("", "_"), ("abc", "b%"), ("abc", "a!_c"), ("abc", "__"), ("abc", "%d%"), ("ab", "a")]
        {
            assert!(!is(text, pattern), "{text} {pattern}");
        }
    }
}
