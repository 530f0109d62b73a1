//! Computes ORDER BY … LIMIT on a table's columns in the scan. It finds the top rows block by
//! block, skips blocks that contain none, and reads the other columns only for the top rows.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use quarrier_filter::Order;

use super::rule::source;
use crate::scan::MessagesExec;
use quarrier_exact::Floats;

/// Maximum number of rows: the scan holds them in memory, and cannot spill.
pub(crate) const TOP_ROWS_MAX: usize = 1 << 20;

/// Replaces a sort above a scan by a scan for the top rows.
pub(super) fn instead(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    match plan.downcast_ref::<SortPreservingMergeExec>() {
        Some(merge) => merged(merge),
        None => Ok(sorted(plan, None)),
    }
}

/// A merge of sorted partitions, which may be projected before the merge.
fn merged(merge: &SortPreservingMergeExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(projection) = merge.input().downcast_ref::<ProjectionExec>() else {
        return Ok(sorted(merge.input(), merge.fetch()));
    };
    let Some(scan) = sorted(projection.input(), merge.fetch()) else { return Ok(None) };
    let projected = ProjectionExec::try_new(projection.expr().to_vec(), scan)?;
    Ok(Some(Arc::new(projected)))
}

/// Removes the conversion to canonical floats, since the scan sorts floats by value.
fn by_value(expr: &Arc<dyn PhysicalExpr>) -> &Arc<dyn PhysicalExpr> {
    let call = expr.downcast_ref::<ScalarFunctionExpr>();
    let call = call.filter(|call| Floats::of(call.fun().name()) == Some(Floats::Ordered));
    call.and_then(|call| call.args().first()).unwrap_or(expr)
}

fn sorted(plan: &Arc<dyn ExecutionPlan>, merged: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
    let sort = plan.downcast_ref::<SortExec>()?;
    let fetch = match (sort.fetch(), merged) {
        (Some(a), Some(b)) => a.min(b),
        (a, b) => a.or(b)?,
    };
    // A sort that keeps its partitions needs a merge above it.
    if fetch > TOP_ROWS_MAX || (sort.preserve_partitioning() && merged.is_none()) {
        return None;
    }
    let projection = sort.input().downcast_ref::<ProjectionExec>();
    let input = projection.map_or(sort.input(), |projection| projection.input());
    let scan = source(input).downcast_ref::<MessagesExec>()?;
    let column = |expr: &Arc<dyn PhysicalExpr>| {
        let mut place = by_value(expr).downcast_ref::<Column>()?.index();
        if let Some(projection) = projection {
            place = projection.expr().get(place)?.expr.downcast_ref::<Column>()?.index();
        }
        scan.spec().columns.get(place).copied()
    };
    let order = sort.expr().iter().map(|sorted| {
        Some(Order {
            column: column(&sorted.expr)?,
            descending: sorted.options.descending,
            nulls_first: sorted.options.nulls_first,
        })
    });
    let order: Vec<Order> = order.collect::<Option<_>>()?;
    let scan = scan.ordered(order, fetch).ok()?;
    match projection {
        Some(projection) => {
            let projected = ProjectionExec::try_new(projection.expr().to_vec(), scan).ok()?;
            Some(Arc::new(projected))
        }
        None => Some(scan),
    }
}
