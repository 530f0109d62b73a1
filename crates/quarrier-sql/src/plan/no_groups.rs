//! An aggregate without GROUP BY has one row for any input. DataFusion 55 pushes a condition
//! without columns, such as the result of `n = 4 AND n = 8`, below the aggregate, as if that
//! removed the row.
//!
//! Related to apache/datafusion#11748, which concerns HAVING: `SELECT c FROM (SELECT count(*) AS c
//! FROM t) AS q WHERE c = 4 AND c = 8` returns a row.

use datafusion::logical_expr::LogicalPlan;

/// Whether a plan is a filter above such an aggregate, possibly with other filters between them,
/// which DataFusion would merge.
pub(super) fn is_filtered(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Filter(filter) = plan else { return false };
    let mut below = &*filter.input;
    while let LogicalPlan::Filter(filter) = below {
        below = &filter.input;
    }
    matches!(below, LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty())
}
