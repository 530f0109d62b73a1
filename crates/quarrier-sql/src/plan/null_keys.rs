//! `a IS NOT DISTINCT FROM b` becomes a join in which NULL equals NULL. DataFusion 55 then moves
//! conditions like `c = d`, which later reach the join, into its keys, as if NULL equalled NULL
//! there too.
//!
//! Not reported yet, related to apache/datafusion#11704: `SELECT l.a, l.b FROM l JOIN l AS m ON l.a
//! IS NOT DISTINCT FROM m.a WHERE l.b = m.b` returns the row `1, NULL` if `l` has it.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{JoinType, NullEquality};
use datafusion::logical_expr::{Join, LogicalPlan};

/// Whether a join has such keys, and further conditions.
pub(super) fn has_conditions(plan: &LogicalPlan) -> bool {
    matches!(
        plan,
        LogicalPlan::Join(Join {
            null_equality: NullEquality::NullEqualsNull,
            filter: Some(_),
            ..
        })
    )
}

/// Whether a plan contains an inner join with such keys.
pub(super) fn are_joined(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let walked = plan.apply_with_subqueries(|node| {
        found |= matches!(
            node,
            LogicalPlan::Join(Join {
                null_equality: NullEquality::NullEqualsNull,
                join_type: JoinType::Inner,
                ..
            })
        );
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found || walked.is_err()
}
