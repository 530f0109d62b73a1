//! Types string literals that are compared with a date or time as `quarrier-filter` does: `ts >
//! '2024-12-31'` means `ts > TIMESTAMP '2024-12-31'`. A malformed literal is an error before any
//! row is read.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable};
use quarrier_filter::calendar;

use super::strict::is_comparison;
use crate::Error;

/// Replaces such string literals in an expression.
pub(super) fn dated(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|part| {
        let is_written = match &part {
            Expr::BinaryExpr(BinaryExpr { left, right, op }) => {
                is_comparison(*op) && (is_text(left) || is_text(right))
            }
            Expr::Between(between) => {
                [&between.expr, &between.low, &between.high].into_iter().any(|part| is_text(part))
            }
            Expr::InList(list) => is_text(&list.expr) || list.list.iter().any(is_text),
            Expr::ScalarFunction(function) => {
                takes_alike(function.name()) && function.args.iter().any(is_text)
            }
            Expr::Case(_) => true,
            Expr::InSubquery(asked) => is_text(&asked.expr),
            _ => false,
        };
        if is_written { beside(part, schema) } else { Ok(Transformed::no(part)) }
    })
}

fn is_text(expr: &Expr) -> bool {
    text(expr).is_some()
}

fn text(expr: &Expr) -> Option<&str> {
    let Expr::Literal(scalar, _) = expr else { return None };
    scalar.try_as_str().flatten()
}

/// Functions whose arguments all have the same type.
fn takes_alike(name: &str) -> bool {
    matches!(name, "coalesce" | "nullif" | "greatest" | "least" | "sql_overlaps")
}

fn beside(part: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match part {
        Expr::Case(case) => of_case(case, schema),
        Expr::InSubquery(mut asked) => {
            let columns = asked.subquery.subquery.schema().fields();
            let kind = columns.first().map(|field| field.data_type().clone());
            let changed =
                kind.filter(is_time).map_or(Ok(false), |kind| date(&mut asked.expr, &kind));
            Ok(Transformed::new_transformed(Expr::InSubquery(asked), changed?))
        }
        part => {
            let mut kind = None;
            part.apply_children(|child| {
                kind = kind.take().or_else(|| time_of(child, schema));
                Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
            })?;
            let Some(kind) = kind else { return Ok(Transformed::no(part)) };
            part.map_children(|mut child| {
                let changed = date(&mut child, &kind)?;
                Ok(Transformed::new_transformed(child, changed))
            })
        }
    }
}

/// Types the operands compared in a CASE, and its results.
fn of_case(
    mut case: datafusion::logical_expr::Case,
    schema: &DFSchema,
) -> Result<Transformed<Expr>> {
    let mut changed = false;
    if let Some(operand) = &mut case.expr {
        let mut alike = vec![&mut **operand];
        alike.extend(case.when_then_expr.iter_mut().map(|(when, _)| &mut **when));
        changed |= all_dated(alike, schema)?;
    }
    let mut alike: Vec<&mut Expr> =
        case.when_then_expr.iter_mut().map(|(_, then)| &mut **then).collect();
    alike.extend(case.else_expr.as_deref_mut());
    changed |= all_dated(alike, schema)?;
    Ok(Transformed::new_transformed(Expr::Case(case), changed))
}

fn all_dated(alike: Vec<&mut Expr>, schema: &DFSchema) -> Result<bool> {
    if !alike.iter().any(|expr| is_text(expr)) {
        return Ok(false);
    }
    let Some(kind) = alike.iter().find_map(|expr| time_of(expr, schema)) else { return Ok(false) };
    let mut changed = false;
    for expr in alike {
        changed |= date(expr, &kind)?;
    }
    Ok(changed)
}

fn time_of(expr: &Expr, schema: &DFSchema) -> Option<DataType> {
    expr.get_type(schema).ok().filter(is_time)
}

fn is_time(kind: &DataType) -> bool {
    use DataType as T;
    match kind {
        T::Date32 | T::Date64 | T::Timestamp(..) | T::Time32(_) | T::Time64(_) => true,
        T::Dictionary(_, values) => is_time(values),
        _ => false,
    }
}

fn at_utc(at: i64) -> ScalarValue {
    ScalarValue::TimestampNanosecond(Some(at), None)
}

/// Replaces a string literal by a value of this type. Returns whether it did.
fn date(expr: &mut Expr, kind: &DataType) -> Result<bool> {
    let Some(text) = text(expr) else { return Ok(false) };
    let (value, like) = match kind {
        DataType::Dictionary(_, values) => return date(expr, values),
        DataType::Date32 | DataType::Date64 => {
            let day = calendar::parse_date(text).map(|day| ScalarValue::Date32(Some(day)));
            let moment = || calendar::parse_timestamp(text).map(at_utc);
            (day.or_else(moment), "DATE '2024-12-31'")
        }
        DataType::Time32(_) | DataType::Time64(_) => {
            let time = calendar::parse_time(text);
            (time.map(|time| ScalarValue::Time64Nanosecond(Some(time))), "TIME '23:59:59.5'")
        }
        DataType::Timestamp(_, zone) => {
            let moment = calendar::parse_timestamp(text);
            (
                moment.map(|at| ScalarValue::TimestampNanosecond(Some(at), zone.clone())),
                "TIMESTAMP '2024-12-31 23:59:59.5', from 1677-09-22 to 2262-04-11",
            )
        }
        _ => return Ok(false),
    };
    let Some(value) = value else {
        let shown: String = text.chars().take(60).collect();
        return Err(Error::text(format!("'{shown}' is not written as {like}")).into());
    };
    *expr = Expr::Literal(value, None);
    Ok(true)
}
