//! Removes misrouted dynamic filters (runtime filters) from scans. DataFusion 55 pushes a dynamic
//! filter down by column names where rows are repartitioned or coalesced: above `t1 JOIN t2`, both
//! with a column `id`, a filter on `t2.id` arrives as one on `t1.id`, and rows are lost.
//!
//! apache/datafusion#25244, fixed by #25259, which no release of 55 contains: delete this file and `lineage`
//! with DataFusion 56.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::datasource::physical_plan::FileSource;
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::expressions::{Column, DynamicFilterPhysicalExpr, lit};
use datafusion::physical_expr::{PhysicalExpr, conjunction, split_conjunction};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;

use super::lineage::{Origin, origins};
use crate::scan::MessagesExec;

/// An optimizer rule that runs after all rules that push dynamic filters down.
#[derive(Debug)]
pub(super) struct MisroutedDynamicFilters;

impl PhysicalOptimizerRule for MisroutedDynamicFilters {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let misrouted = find_misrouted(&plan)?;
        if misrouted.is_empty() {
            return Ok(plan);
        }
        plan.transform_up(|part| {
            let mut part = Transformed::no(part);
            let leaf: *const () = Arc::as_ptr(&part.data).cast();
            for (_, id) in misrouted.iter().filter(|(misrouted, _)| *misrouted == leaf) {
                if let Some(other) = without(&part.data, *id) {
                    part = Transformed::yes(other);
                }
            }
            Ok(part)
        })
        .data()
    }

    fn name(&self) -> &str {
        "misrouted_dynamic_filters"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The leaves that a dynamic filter reached for the wrong column, each with the filter's ID.
fn find_misrouted(plan: &Arc<dyn ExecutionPlan>) -> Result<Vec<(*const (), u64)>> {
    let mut found = Vec::new();
    plan.apply(|producer| {
        for filter in producer.dynamic_expressions_produced() {
            let Some(id) = filter.expression_id() else { continue };
            // A hash join filters its probe side, the right one.
            let inputs = producer.children();
            let input = match producer.downcast_ref::<HashJoinExec>() {
                Some(join) => join.right(),
                None => match inputs.as_slice() {
                    [one] => *one,
                    _ => continue,
                },
            };
            let intended = columns_of(&filter);
            input.apply(|leaf| {
                let delivered = filters_at(leaf)
                    .into_iter()
                    .find(|delivered| delivered.expression_id() == Some(id));
                if let Some(delivered) = delivered
                    && !targets_column(input, &intended, leaf, &columns_of(&delivered))
                {
                    found.push((Arc::as_ptr(leaf).cast(), id));
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// The columns that a filter refers to, in order.
fn columns_of(filter: &Arc<dyn PhysicalExpr>) -> Vec<Column> {
    let mut columns = Vec::new();
    for child in filter.children() {
        let _ = child.apply(|part| {
            columns.extend(part.downcast_ref::<Column>().cloned());
            Ok(TreeNodeRecursion::Continue)
        });
    }
    columns
}

/// Whether each column of the filter at a leaf is the column that its producer meant.
fn targets_column(
    input: &Arc<dyn ExecutionPlan>,
    intended: &[Column],
    leaf: &Arc<dyn ExecutionPlan>,
    delivered: &[Column],
) -> bool {
    // File scans number the columns as in the file, so those are matched by name.
    let is_by_name = leaf.downcast_ref::<DataSourceExec>().is_some();
    let place = |column: &Column| match is_by_name {
        true => leaf.schema().index_of(column.name()).ok(),
        false => Some(column.index()),
    };
    let is_one = |(intended, delivered): (&Column, &Column)| {
        let delivered = place(delivered).map(|place| Origin::of(leaf, place));
        delivered.is_some_and(|delivered| origins(input, intended.index()).contains(&delivered))
    };
    intended.len() == delivered.len() && intended.iter().zip(delivered).all(is_one)
}

/// The dynamic filters pushed down to a leaf.
pub(super) fn filters_at(leaf: &Arc<dyn ExecutionPlan>) -> Vec<Arc<dyn PhysicalExpr>> {
    if let Some(scan) = leaf.downcast_ref::<MessagesExec>() {
        return scan.dynamic().to_vec();
    }
    let predicate = parquet(leaf).and_then(|(_, source)| source.filter());
    let parts = predicate.iter().flat_map(split_conjunction);
    parts
        .filter(|part| part.downcast_ref::<DynamicFilterPhysicalExpr>().is_some())
        .cloned()
        .collect()
}

fn parquet(leaf: &Arc<dyn ExecutionPlan>) -> Option<(&FileScanConfig, &ParquetSource)> {
    let source = leaf.downcast_ref::<DataSourceExec>()?;
    source.downcast_to_file_source::<ParquetSource>()
}

/// The leaf without this filter.
fn without(leaf: &Arc<dyn ExecutionPlan>, id: u64) -> Option<Arc<dyn ExecutionPlan>> {
    let is_it = |part: &Arc<dyn PhysicalExpr>| part.expression_id() == Some(id);
    if let Some(scan) = leaf.downcast_ref::<MessagesExec>() {
        return Some(Arc::new(scan.without_dynamic(is_it)));
    }
    let (config, source) = parquet(leaf)?;
    let predicate = source.filter()?;
    let parts = split_conjunction(&predicate).into_iter();
    let left: Vec<_> = parts.filter(|part| !is_it(part)).cloned().collect();
    let left = if left.is_empty() { lit(true) } else { conjunction(left) };
    let config = FileScanConfigBuilder::from(config.clone());
    let config = config.with_source(Arc::new(source.with_predicate(left))).build();
    Some(DataSourceExec::from_data_source(config))
}
