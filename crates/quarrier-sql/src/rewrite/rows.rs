//! Row values: compares `(a, b) < (1, 2)` value by value, with three-valued logic.

use datafusion::sql::sqlparser::ast::{BinaryOperator as Op, Expr};

use super::refused;
use crate::Result;

/// The values of a row; `None` for other expressions.
fn values(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::Tuple(values) => Some(values),
        Expr::Nested(inner) => values(inner),
        _ => None,
    }
}

/// Whether an expression is a row.
pub(super) fn is_row(expr: &Expr) -> bool {
    values(expr).is_some()
}

fn joined(parts: Vec<Expr>, op: Op) -> Expr {
    let mut parts = parts.into_iter();
    let first = parts.next().unwrap_or_else(|| super::predicates::truth(true));
    let joined = parts.fold(first, |left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: op.clone(),
        right: Box::new(right),
    });
    Expr::Nested(Box::new(joined))
}

fn binary(left: &Expr, op: Op, right: &Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left.clone()), op, right: Box::new(right.clone()) }
}

/// Compares two rows.
///
/// # Errors
/// The rows differ in length, or do not support this operator.
pub(super) fn compared(left: &Expr, op: &Op, right: &Expr) -> Result<Expr> {
    let (Some(a), Some(b)) = (values(left), values(right)) else {
        return Err(refused(format!(
            "{left} {op} {right} compares a row with a value; write rows of the same length"
        )));
    };
    if a.len() != b.len() || a.is_empty() {
        return Err(refused(format!(
            "{left} {op} {right} compares rows of {} and {} values",
            a.len(),
            b.len()
        )));
    }
    let pairs = || a.iter().zip(b);
    let strict = match op {
        Op::Eq => {
            return Ok(joined(pairs().map(|(a, b)| binary(a, Op::Eq, b)).collect(), Op::And));
        }
        Op::NotEq => {
            return Ok(joined(pairs().map(|(a, b)| binary(a, Op::NotEq, b)).collect(), Op::Or));
        }
        Op::Lt | Op::LtEq => Op::Lt,
        Op::Gt | Op::GtEq => Op::Gt,
        _ => return Err(refused(format!("rows cannot be compared by {op}"))),
    };
    // From the last value to the first: a < x OR (a = x AND rest).
    let last = a.len() - 1;
    let mut rest = binary(&a[last], op.clone(), &b[last]);
    for place in (0..last).rev() {
        let equal = joined(vec![binary(&a[place], Op::Eq, &b[place]), rest], Op::And);
        rest = joined(vec![binary(&a[place], strict.clone(), &b[place]), equal], Op::Or);
    }
    Ok(rest)
}

/// `row IN (row, …)`
pub(super) fn listed(operand: &Expr, list: &[Expr]) -> Result<Expr> {
    let equal: Result<Vec<Expr>> =
        list.iter().map(|element| compared(operand, &Op::Eq, element)).collect();
    Ok(joined(equal?, Op::Or))
}

/// `row IS [NOT] NULL`: all of its values are NULL, or none is.
pub(super) fn null(operand: &Expr, negated: bool) -> Option<Expr> {
    let test = |value: &Expr| {
        let value = Box::new(value.clone());
        if negated { Expr::IsNotNull(value) } else { Expr::IsNull(value) }
    };
    Some(joined(values(operand)?.iter().map(test).collect(), Op::And))
}
