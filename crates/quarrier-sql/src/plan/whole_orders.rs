//! ORDER BY … LIMIT over a UNION: sorts each part by all columns of the ORDER BY.
//!
//! If a column of the ORDER BY is constant in every part, DataFusion omits it from the parts'
//! sorts. These then share a threshold on the other columns only, and a part with a better constant
//! loses rows.
//!
//! Not reported yet: `SELECT 1 AS a, v + 1000000 AS b FROM s WHERE v < 3 UNION ALL SELECT 0 AS a, v
//! AS b FROM s ORDER BY a, b DESC LIMIT 3`, where `s` has the numbers below 100,000, usually
//! returns rows with `a` = 1.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;

/// Sorts the parts by the columns by which they are merged.
pub(super) fn instead(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    Ok(plan.downcast_ref::<SortPreservingMergeExec>().and_then(whole))
}

fn whole(merge: &SortPreservingMergeExec) -> Option<Arc<dyn ExecutionPlan>> {
    let sort = merge.input().downcast_ref::<SortExec>()?;
    let is_part = sort.preserve_partitioning() && sort.expr().len() < merge.expr().len();
    let fetch = sort.fetch().filter(|_| is_part)?;
    let sort = SortExec::new(merge.expr().clone(), Arc::clone(sort.input()))
        .with_preserve_partitioning(true)
        .with_fetch(Some(fetch));
    let whole = SortPreservingMergeExec::new(merge.expr().clone(), Arc::new(sort));
    Some(Arc::new(whole.with_fetch(merge.fetch())))
}
