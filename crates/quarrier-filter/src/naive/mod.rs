//! Evaluates expressions row by row, in the simplest way: the oracle of the scan, and its fallback.
//!
//! Truth is Kleene's, with a fourth outcome: an expression may have no value (`1 / 0`). `FALSE AND
//! fault` is FALSE and `TRUE OR fault` is TRUE in either order of the operands, so that the result
//! does not depend on the order in which conditions are evaluated. Any other use of a fault is that
//! fault.

use crate::expr::{Comparison, Expr, Pattern};
use crate::matching::Matching;
use crate::{Fault, calendar};

mod arithmetic;
mod cast;
mod compare;
mod datum;
mod functions;

use std::cmp::Ordering;

pub(crate) use cast::text as shown;
pub use datum::{Datum, Row};

/// Returns the value of `expr` for a row, in time proportional to the number of its nodes. Copies
/// strings only if they change.
///
/// # Errors
/// If the expression has no value; [`Fault::Kinds`] only for an expression that was not bound by
/// [`sql`](crate::sql).
pub fn evaluate<'a, R: Row + ?Sized>(expr: &'a Expr, row: &'a R) -> Result<Datum<'a>, Fault> {
    Ok(match expr {
        Expr::Literal(value) => Datum::from(value),
        Expr::Column(column) => row.datum(*column),
        Expr::Not(operand) => truth_datum(truth(operand, row)?.map(|truth| !truth)),
        Expr::And(operands) => truth_datum(joined(operands.iter().map(|o| truth(o, row)), false)?),
        Expr::Or(operands) => truth_datum(joined(operands.iter().map(|o| truth(o, row)), true)?),
        Expr::Compare { op, left, right } => {
            let (left, right) = (evaluate(left, row)?, evaluate(right, row)?);
            truth_datum(compare::compared(&left, &right)?.map(|order| holds(*op, order)))
        }
        Expr::In { operand, list } => truth_datum(is_in(operand, list, row)?),
        Expr::Among { column, keys } => match row.datum(*column) {
            Datum::Null => Datum::Null,
            Datum::Integer(key) => Datum::Boolean(keys.contains(key)),
            _ => return Err(Fault::Kinds { what: "keys" }),
        },
        Expr::Match { operand, pattern } => truth_datum(matches(operand, pattern, row)?),
        Expr::IsNull(operand) => Datum::Boolean(evaluate(operand, row)? == Datum::Null),
        Expr::Is { operand, truth: wanted } => Datum::Boolean(truth(operand, row)? == *wanted),
        Expr::Arithmetic { op, left, right } => {
            let (left, right) = (evaluate(left, row)?, evaluate(right, row)?);
            arithmetic::calculated(*op, left, right)?
        }
        Expr::Negate(operand) => arithmetic::negated(evaluate(operand, row)?)?,
        Expr::Case { branches, otherwise } => {
            for (condition, result) in branches {
                if truth(condition, row)? == Some(true) {
                    return evaluate(result, row);
                }
            }
            match otherwise {
                Some(otherwise) => evaluate(otherwise, row)?,
                None => Datum::Null,
            }
        }
        Expr::Cast { operand, to } => cast::cast(evaluate(operand, row)?, *to)?,
        Expr::Call { function, arguments } => functions::called(*function, arguments, row)?,
    })
}

/// Returns the truth of `condition` for a row; `None` is UNKNOWN. A message matches if it is
/// `Some(true)`.
///
/// # Errors
/// The errors of [`evaluate`].
pub fn truth<R: Row + ?Sized>(condition: &Expr, row: &R) -> Result<Option<bool>, Fault> {
    match evaluate(condition, row)? {
        Datum::Boolean(truth) => Ok(Some(truth)),
        Datum::Null => Ok(None),
        _ => Err(Fault::Kinds { what: "a condition" }),
    }
}

/// Compares two values; `None` if one is NULL. NaN is equal to itself and greater than all other
/// numbers.
///
/// # Errors
/// [`Fault::Kinds`] if their types do not compare.
pub fn compare(left: &Datum<'_>, right: &Datum<'_>) -> Result<Option<Ordering>, Fault> {
    compare::compared(left, right)
}

/// Whether `left op right` is true, given the order of the two.
pub fn holds(op: Comparison, order: Ordering) -> bool {
    match op {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }
}

fn truth_datum(truth: Option<bool>) -> Datum<'static> {
    truth.map_or(Datum::Null, Datum::Boolean)
}

/// AND if `decisive` is false, OR if it is true.
fn joined(
    truths: impl Iterator<Item = Result<Option<bool>, Fault>>,
    decisive: bool,
) -> Result<Option<bool>, Fault> {
    let mut result = Ok(Some(!decisive));
    for truth in truths {
        match truth {
            Ok(Some(truth)) if truth == decisive => return Ok(Some(decisive)),
            Ok(Some(_)) => {}
            Ok(None) => result = result.and(Ok(None)),
            Err(fault) => result = result.and(Err(fault)),
        }
    }
    result
}

fn is_in<R: Row + ?Sized>(operand: &Expr, list: &[Expr], row: &R) -> Result<Option<bool>, Fault> {
    let operand = evaluate(operand, row)?;
    let equals = list.iter().map(|element| {
        let element = evaluate(element, row)?;
        Ok(compare::compared(&operand, &element)?.map(Ordering::is_eq))
    });
    joined(equals, true)
}

fn matches<R: Row + ?Sized>(
    operand: &Expr,
    pattern: &Pattern,
    row: &R,
) -> Result<Option<bool>, Fault> {
    let operand = evaluate(operand, row)?;
    let computed;
    let pattern = match pattern {
        Pattern::Fixed(fixed) => Some(fixed),
        Pattern::Computed { text, escape, by } => match evaluate(text, row)? {
            Datum::Null => None,
            Datum::Text(text) => {
                computed = Matching::new(&text, *escape, *by)?;
                Some(&computed)
            }
            _ => return Err(Fault::Kinds { what: "a pattern" }),
        },
    };
    match (operand, pattern) {
        (Datum::Null, _) | (_, None) => Ok(None),
        (Datum::Text(text), Some(pattern)) => Ok(Some(pattern.is_match(&text))),
        _ => Err(Fault::Kinds { what: "a match" }),
    }
}

/// Converts a date to the timestamp of its midnight; in 128 bits, because some days exceed 64.
fn midnight(day: i32) -> i128 {
    i128::from(day) * i128::from(calendar::DAY_NS)
}
