//! Rewrites one expression, after those within it.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{BinaryOperator as Op, Expr, Interval, Value, VisitorMut};

use super::walk::{Flow, Stop};
use super::{calls, like, padded, refused, rows, template};
use crate::Result;
use crate::dialect::{SYMMETRIC, call};

/// Rewrites every expression that DataFusion would evaluate differently.
pub(super) struct Predicates;

impl VisitorMut for Predicates {
    type Break = Stop;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        match rewrite(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Some(Box::new(error))),
        }
    }
}

fn rewrite(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::Like { .. } => like::rewrite(expr),
        Expr::SimilarTo { .. } => like::similar(expr),
        Expr::RLike { negated, expr: operand, pattern, .. } => {
            let op = if *negated { Op::PGRegexNotMatch } else { Op::PGRegexMatch };
            let (left, right) = (operand.clone(), pattern.clone());
            *expr = Expr::Nested(Box::new(Expr::BinaryOp { left, op, right }));
            Ok(())
        }
        Expr::Between { .. } => between(expr),
        Expr::BinaryOp { left, op: Op::Overlaps, right } => {
            *expr = overlaps(left, right)?;
            Ok(())
        }
        Expr::BinaryOp { left, op, right } if is_comparison(op) => {
            if rows::is_row(left) || rows::is_row(right) {
                *expr = rows::compared(left, op, right)?;
                each_value(expr);
            } else {
                padded::compared(expr);
            }
            Ok(())
        }
        Expr::InList { expr: operand, list, negated: is_negated } => {
            if rows::is_row(operand) {
                *expr = negated(rows::listed(operand, list)?, *is_negated);
                each_value(expr);
            } else if padded::is_padded(operand) || list.iter().any(padded::is_padded) {
                *expr = negated(padded::listed(operand, list), *is_negated);
            }
            Ok(())
        }
        Expr::IsNull(operand) => {
            if let Some(rewritten) = rows::null(operand, false) {
                *expr = rewritten;
            }
            Ok(())
        }
        Expr::IsNotNull(operand) => {
            if let Some(rewritten) = rows::null(operand, true) {
                *expr = rewritten;
            }
            Ok(())
        }
        // DataFusion's plans disagree on whether IS UNKNOWN is nullable.
        Expr::IsUnknown(operand) => {
            *expr = Expr::IsNull(operand.clone());
            Ok(())
        }
        Expr::IsNotUnknown(operand) => {
            *expr = Expr::IsNotNull(operand.clone());
            Ok(())
        }
        Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } => {
            if let Expr::Subquery(query) = &**right {
                // `filled` gives the query's table a unique name, which DataFusion needs.
                let text = "(SELECT quantified.v FROM (SELECT 1) AS quantified (v))";
                let filled = template::filled(text, (**query).clone())?;
                **right = match filled {
                    Expr::Nested(inner) => *inner,
                    other => other,
                };
            }
            Ok(())
        }
        Expr::Cast { .. } => padded::cast(expr),
        Expr::Extract { .. } | Expr::Function(_) => calls::rewrite(expr),
        Expr::Named { name, .. } if name.value == SYMMETRIC => Ok(()),
        _ => Ok(()),
    }
}

/// Rewrites the comparisons of a row's values, some of which may be strings of fixed length.
fn each_value(expr: &mut Expr) {
    match expr {
        Expr::Nested(inner) => each_value(inner),
        Expr::BinaryOp { left, op: Op::And | Op::Or, right } => {
            each_value(left);
            each_value(right);
        }
        Expr::UnaryOp { expr, .. } => each_value(expr),
        Expr::BinaryOp { op, .. } if is_comparison(op) => padded::compared(expr),
        _ => {}
    }
}

pub(super) fn is_comparison(op: &Op) -> bool {
    matches!(op, Op::Eq | Op::NotEq | Op::Lt | Op::LtEq | Op::Gt | Op::GtEq)
}

/// Adds NOT if `negated`.
pub(super) fn negated(expr: Expr, negated: bool) -> Expr {
    if !negated {
        return expr;
    }
    let op = datafusion::sql::sqlparser::ast::UnaryOperator::Not;
    Expr::Nested(Box::new(Expr::UnaryOp { op, expr: Box::new(expr) }))
}

pub(super) fn truth(truth: bool) -> Expr {
    Expr::Value(Value::Boolean(truth).into())
}

fn between(expr: &mut Expr) -> Result<()> {
    let Expr::Between { expr: operand, negated: is_negated, low, high } = expr else {
        return Ok(());
    };
    let (low, is_symmetric) = match &**low {
        Expr::Named { expr, name } if name.value == SYMMETRIC => ((**expr).clone(), true),
        other => (other.clone(), false),
    };
    let is_row = rows::is_row(operand);
    let is_padded = [&**operand, &low, &**high].into_iter().any(padded::is_padded);
    if !is_symmetric && !is_row && !is_padded {
        return Ok(());
    }
    let within = |low: &Expr, high: &Expr| -> Result<Expr> {
        let above = side(operand, Op::GtEq, low)?;
        let below = side(operand, Op::LtEq, high)?;
        Ok(both(above, Op::And, below))
    };
    let mut rewritten = within(&low, high)?;
    if is_symmetric {
        rewritten = both(rewritten, Op::Or, within(high, &low)?);
    }
    *expr = negated(rewritten, *is_negated);
    Ok(())
}

fn side(left: &Expr, op: Op, right: &Expr) -> Result<Expr> {
    if rows::is_row(left) || rows::is_row(right) {
        let mut compared = rows::compared(left, &op, right)?;
        each_value(&mut compared);
        return Ok(compared);
    }
    let mut compared =
        Expr::BinaryOp { left: Box::new(left.clone()), op, right: Box::new(right.clone()) };
    padded::compared(&mut compared);
    Ok(compared)
}

fn both(left: Expr, op: Op, right: Expr) -> Expr {
    Expr::Nested(Box::new(Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }))
}

/// `(start, end) OVERLAPS (start, end)`; an end may also be an INTERVAL.
fn overlaps(left: &Expr, right: &Expr) -> Result<Expr> {
    let mut arguments = Vec::new();
    for period in [left, right] {
        let Expr::Tuple(values) = period else {
            return Err(refused(format!("OVERLAPS takes periods (start, end), not {period}")));
        };
        let [start, end] = values.as_slice() else {
            return Err(refused(format!("a period has a start and an end, not {period}")));
        };
        arguments.push(start.clone());
        arguments.push(match end {
            Expr::Interval(Interval { .. }) => Expr::BinaryOp {
                left: Box::new(start.clone()),
                op: Op::Plus,
                right: Box::new(end.clone()),
            },
            end => end.clone(),
        });
    }
    Ok(call("sql_overlaps", arguments))
}
