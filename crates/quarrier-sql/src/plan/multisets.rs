//! EXCEPT ALL and INTERSECT ALL as in SQL-92. A row that occurs five times on the left and twice on
//! the right is returned three times or twice. DataFusion checks only whether the right side has
//! the row.
//!
//! apache/datafusion#12956 (EXCEPT ALL) and #12955 (INTERSECT ALL), both open.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinConstraint, JoinType, NullEquality, Result};
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::{Expr, ExprFunctionExt, Join, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::AnalyzerRule;

/// Numbers equal rows on both sides, so that the first matches the first, and the second the
/// second.
#[derive(Debug)]
pub(crate) struct Multisets;

impl AnalyzerRule for Multisets {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let counted = plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Join(join) if is_of_multisets(&join) => {
                Ok(Transformed::yes(counted(join)?))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok(counted.data)
    }

    fn name(&self) -> &str {
        "multisets"
    }
}

/// Whether a join represents EXCEPT ALL or INTERSECT ALL. If the left side is distinct,
/// DataFusion's join is correct.
fn is_of_multisets(join: &Join) -> bool {
    let columns = join.left.schema().columns();
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.join_constraint == JoinConstraint::On
        && join.filter.is_none()
        && !join.null_aware
        && !matches!(*join.left, LogicalPlan::Distinct(_))
        && join.on.len() == columns.len()
        && join.on.iter().zip(&columns).all(|((left, _), column)| match left {
            Expr::Column(named) => named.name == column.name,
            _ => false,
        })
}

fn counted(join: Join) -> Result<LogicalPlan> {
    let outputs = columns(&join.left);
    let (left, of_left) = with_count(&join.left, "left_count")?;
    let (right, of_right) = with_count(&join.right, "right_count")?;
    let mut on = join.on;
    on.push((of_left, of_right));
    let join = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        None,
        join.join_type,
        join.join_constraint,
        join.null_equality,
        false,
    )?;
    LogicalPlanBuilder::from(LogicalPlan::Join(join)).project(outputs)?.build()
}

fn columns(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().map(Expr::Column).collect()
}

/// The rows, numbered among equal ones, and the column with that number.
fn with_count(plan: &LogicalPlan, name: &str) -> Result<(LogicalPlan, Expr)> {
    let count = row_number().partition_by(columns(plan)).build()?;
    let mut outputs = columns(plan);
    let counted = LogicalPlanBuilder::from(plan.clone()).window([count])?.build()?;
    let place = counted.schema().fields().len() - 1;
    outputs.push(Expr::Column(Column::from(counted.schema().qualified_field(place))).alias(name));
    let plan = LogicalPlanBuilder::from(counted).project(outputs)?.build()?;
    Ok((plan, Expr::Column(Column::new_unqualified(name))))
}
