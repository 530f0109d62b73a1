//! ORDER BY … LIMIT of a table's columns is answered by the scan: it finds the best rows block by
//! block, skips blocks that have none of them, and reads the other columns of the best only.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use quarrier_filter::Order;

use crate::scan::MessagesExec;

/// Puts the best rows of an order in the place of a scan and its sort.
#[derive(Debug)]
pub(crate) struct TopRows;

/// The most rows: the scan holds them in memory, and does not spill.
const ROWS_MAX: usize = 1 << 20;

impl PhysicalOptimizerRule for TopRows {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_down(|plan| {
            let found = match plan.downcast_ref::<SortPreservingMergeExec>() {
                Some(merge) => sorted(merge.input(), merge.fetch()),
                None => sorted(&plan, None),
            };
            Ok(match found {
                Some(scan) => Transformed::yes(scan),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "top_rows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn sorted(plan: &Arc<dyn ExecutionPlan>, merged: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
    let sort = plan.downcast_ref::<SortExec>()?;
    let fetch = match (sort.fetch(), merged) {
        (Some(a), Some(b)) => a.min(b),
        (a, b) => a.or(b)?,
    };
    // A sort of one partition of many is a part of an answer.
    if fetch > ROWS_MAX || (sort.preserve_partitioning() && merged.is_none()) {
        return None;
    }
    let input = match sort.input().downcast_ref::<CoalescePartitionsExec>() {
        Some(joined) => joined.input(),
        None => sort.input(),
    };
    let scan = input.downcast_ref::<MessagesExec>()?;
    let column = |expr: &Arc<dyn PhysicalExpr>| {
        let column = expr.downcast_ref::<Column>()?;
        scan.wanted().columns.get(column.index()).copied()
    };
    let order = sort.expr().iter().map(|sorted| {
        Some(Order {
            column: column(&sorted.expr)?,
            descending: sorted.options.descending,
            nulls_first: sorted.options.nulls_first,
        })
    });
    let order: Vec<Order> = order.collect::<Option<_>>()?;
    scan.ordered(order, fetch).ok().map(|scan| scan as Arc<dyn ExecutionPlan>)
}
