//! Decides which subqueries are joined here, and which are left to DataFusion, whose joins by
//! equality need no domain.

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Filter, Projection, SubqueryAlias};
use datafusion::logical_expr::{Expr, Join, JoinType, LogicalPlan, Operator};

use super::free;

/// Whether DataFusion decorrelates a scalar subquery: an aggregate without GROUP BY over rows that
/// equal outer columns.
pub(super) fn is_left_as_value(plan: &LogicalPlan) -> Result<bool> {
    match plan {
        LogicalPlan::Projection(Projection { input, expr, .. }) => {
            Ok(!has_outer(expr)? && is_left_as_value(input)?)
        }
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => is_left_as_value(input),
        LogicalPlan::Aggregate(aggregate) => Ok(aggregate.group_expr.is_empty()
            && !has_outer(&aggregate.aggr_expr)?
            && is_plain(&aggregate.input, is_equality)?),
        _ => Ok(false),
    }
}

/// Whether DataFusion turns a subquery in EXISTS into a semi-join.
pub(super) fn is_left_as_rows(plan: &LogicalPlan) -> Result<bool> {
    is_plain(plan, |_| true)
}

/// Whether outer columns occur only in conditions that `takes` accepts.
fn is_plain(plan: &LogicalPlan, takes: fn(&Expr) -> bool) -> Result<bool> {
    if free::of(plan)?.is_empty() {
        return Ok(true);
    }
    match plan {
        LogicalPlan::Projection(Projection { input, expr, .. }) => {
            Ok(!has_outer(expr)? && is_plain(input, takes)?)
        }
        // No case for aliases: outer columns below one would have to be passed through it, which
        // DataFusion omits.
        LogicalPlan::Filter(Filter { input, predicate, .. }) => {
            for part in split_conjunction(predicate) {
                let has_query = part.exists(|part| Ok(free::query(part).is_some()))?;
                let is_taken = !part.contains_outer() || takes(part);
                if !is_taken || (has_query && part.contains_outer()) {
                    return Ok(false);
                }
            }
            is_plain(input, takes)
        }
        LogicalPlan::Join(Join { left, right, filter, join_type: JoinType::Inner, .. }) => {
            let is_outer = filter.as_ref().is_some_and(Expr::contains_outer);
            Ok(!is_outer && is_plain(left, takes)? && is_plain(right, takes)?)
        }
        _ => Ok(false),
    }
}

fn has_outer(exprs: &[Expr]) -> Result<bool> {
    for expr in exprs {
        if expr.contains_outer() || expr.exists(|part| Ok(free::query(part).is_some()))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the condition is an inner column equal to an outer one.
fn is_equality(expr: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = expr else { return false };
    matches!(
        (&**left, &**right),
        (Expr::Column(_), Expr::OuterReferenceColumn(..))
            | (Expr::OuterReferenceColumn(..), Expr::Column(_))
    )
}

/// Whether a query has at most one row for any contents of its tables.
pub(super) fn is_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(Projection { input, .. })
        | LogicalPlan::Filter(Filter { input, .. })
        | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => is_one_row(input),
        LogicalPlan::Sort(sort) => is_one_row(&sort.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(_) => true,
        LogicalPlan::Limit(limit) => {
            use datafusion::logical_expr::FetchType;
            matches!(limit.get_fetch_type(), Ok(FetchType::Literal(Some(0 | 1))))
                || is_one_row(&limit.input)
        }
        _ => false,
    }
}
