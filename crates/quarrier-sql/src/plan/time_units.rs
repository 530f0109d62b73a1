//! Compares timestamps of a coarse unit with finer constants, as for Parquet files with
//! milliseconds.
//!
//! DataFusion simplifies `CAST(at AS TIMESTAMP(9)) >= constant` to `at >= constant` in the unit of
//! `at`, and truncates the constant (`cast_between_timestamp`), so that a row one nanosecond too
//! early matches. Here, the comparison is rewritten to an equivalent one in the coarse unit:
//!
//! | written, where `c` lies between the units `f` and `f + 1` | becomes |
//! |---|---|
//! | `at < c`, `at <= c` | `at <= f` |
//! | `at > c`, `at >= c` | `at > f` |
//! | `at = c` | `at <= f AND at > f`: FALSE, or UNKNOWN for NULL |
//! | `at <> c` | `at <= f OR at > f` |
//!
//! Not reported yet, related to apache/datafusion#22142, which concerns casts to the coarser unit:
//! `SELECT count(*) FROM ms WHERE at >= TIMESTAMP '1970-01-01 00:00:00.000000001'` counts 1970
//! itself.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use super::numbers::schema_of;

/// Compares timestamps with finer constants exactly.
#[derive(Debug)]
pub(crate) struct TimeUnits;

impl AnalyzerRule for TimeUnits {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let exact = plan.transform_up_with_subqueries(|node| {
            let schema = schema_of(&node)?;
            let names = NamePreserver::new(&node);
            node.map_expressions(|expr| {
                let name = names.save(&expr);
                let exact = expr.transform_up(|expr| compared(expr, &schema))?;
                Ok(exact.update_data(|expr| name.restore(expr)))
            })
        })?;
        Ok(exact.data)
    }

    fn name(&self) -> &str {
        "time_units"
    }
}

fn compared(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let exact = match &expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            bounded(left, *op, right, schema).or_else(|| bounded(right, op.swap()?, left, schema))
        }
        Expr::Between(Between { expr: at, negated, low, high }) => {
            between(at, *negated, low, high, schema)
        }
        Expr::InList(list) => in_list(list, schema),
        _ => None,
    };
    Ok(exact.map_or_else(|| Transformed::no(expr), Transformed::yes))
}

/// Rewrites `at op constant` to the unit of `at`; `None` if the constant is a whole number of
/// units.
fn bounded(at: &Expr, op: Operator, constant: &Expr, schema: &DFSchema) -> Option<Expr> {
    let floor = floor(at, constant, schema)?;
    let below = || at.clone().lt_eq(floor.clone());
    let above = || at.clone().gt(floor.clone());
    match op {
        Operator::Lt | Operator::LtEq => Some(below()),
        Operator::Gt | Operator::GtEq => Some(above()),
        Operator::Eq => Some(below().and(above())),
        Operator::NotEq => Some(below().or(above())),
        _ => None,
    }
}

fn between(at: &Expr, negated: bool, low: &Expr, high: &Expr, schema: &DFSchema) -> Option<Expr> {
    let from = bounded(at, Operator::GtEq, low, schema);
    let to = bounded(at, Operator::LtEq, high, schema);
    if from.is_none() && to.is_none() {
        return None;
    }
    let from = from.unwrap_or_else(|| at.clone().gt_eq(low.clone()));
    let to = to.unwrap_or_else(|| at.clone().lt_eq(high.clone()));
    let inside = from.and(to);
    Some(if negated { Expr::Not(Box::new(inside)) } else { inside })
}

/// The list without the constants that no row can equal, and a comparison that stands for those.
fn in_list(list: &InList, schema: &DFSchema) -> Option<Expr> {
    let at = &*list.expr;
    let differs = |element: &Expr| bounded(at, Operator::Eq, element, schema);
    let (never, rest): (Vec<&Expr>, Vec<&Expr>) =
        list.list.iter().partition(|element| differs(element).is_some());
    let never = differs(never.first()?)?;
    let rest: Vec<Expr> = rest.into_iter().cloned().collect();
    let found = if rest.is_empty() { never } else { never.or(at.clone().in_list(rest, false)) };
    Some(if list.negated { Expr::Not(Box::new(found)) } else { found })
}

/// The last timestamp in the unit of `at` before a finer constant; `None` if the constant is a
/// whole number of units.
fn floor(at: &Expr, constant: &Expr, schema: &DFSchema) -> Option<Expr> {
    let DataType::Timestamp(unit, zone) = at.get_type(schema).ok()? else { return None };
    let DataType::Timestamp(finer, None) = constant.get_type(schema).ok()? else { return None };
    let ratio = nanoseconds(unit) / nanoseconds(finer);
    if ratio <= 1 || zone.is_some() || !at.any_column_refs() {
        return None;
    }
    let value = value(constant)?;
    if value.rem_euclid(ratio) == 0 {
        return None;
    }
    let value = Some(value.div_euclid(ratio));
    let floor = match unit {
        TimeUnit::Second => ScalarValue::TimestampSecond(value, None),
        TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(value, None),
        TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(value, None),
        TimeUnit::Nanosecond => return None,
    };
    Some(Expr::Literal(floor, None))
}

fn nanoseconds(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

/// The value of a constant in its unit; `None` for NULL, or if the value is only known at run time.
fn value(constant: &Expr) -> Option<i64> {
    if constant.any_column_refs() {
        return None;
    }
    let simplifier = ExprSimplifier::new(SimplifyContext::default());
    match simplifier.simplify(constant.clone()).ok()? {
        Expr::Literal(
            ScalarValue::TimestampSecond(value, None)
            | ScalarValue::TimestampMillisecond(value, None)
            | ScalarValue::TimestampMicrosecond(value, None)
            | ScalarValue::TimestampNanosecond(value, None),
            _,
        ) => value,
        _ => None,
    }
}
