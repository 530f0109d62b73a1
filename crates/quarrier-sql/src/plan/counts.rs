//! COUNT(*) of what a scan leaves is what the scan counts: the engine would make a value for each row
//! to count it.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};

use crate::scan::{CountExec, MessagesExec};

/// Puts the count of a scan in the place of an aggregate over it.
#[derive(Debug)]
pub(crate) struct Counts;

impl PhysicalOptimizerRule for Counts {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_down(|plan| {
            Ok(match plan.downcast_ref::<AggregateExec>().and_then(counted) {
                Some(count) => Transformed::yes(count),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "counts"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn counted(aggregate: &AggregateExec) -> Option<Arc<dyn ExecutionPlan>> {
    let is_first = matches!(
        aggregate.mode(),
        AggregateMode::Partial | AggregateMode::Single | AggregateMode::SinglePartitioned
    );
    let scan = MessagesExec::beneath(aggregate.input())?;
    let is_scan = scan.wanted().columns.is_empty();
    let is_of_rows = aggregate.aggr_expr().iter().all(|one| is_count(one))
        && aggregate.filter_expr().iter().all(Option::is_none)
        && aggregate.group_expr().is_true_no_grouping();
    let schema = aggregate.schema();
    let is_whole = schema.fields().iter().all(|field| *field.data_type() == DataType::Int64)
        && !schema.fields().is_empty();
    let count = || CountExec::new(Arc::new(scan.clone()), schema);
    (is_first && is_scan && is_of_rows && is_whole)
        .then(|| Arc::new(count()) as Arc<dyn ExecutionPlan>)
}

/// Whether it counts rows, whatever is in them.
fn is_count(aggregate: &AggregateFunctionExpr) -> bool {
    let values = aggregate.expressions();
    let is_value = |literal: &Literal| !literal.value().is_null();
    aggregate.fun().name() == "count"
        && !aggregate.is_distinct()
        && values.len() == 1
        && values.iter().all(|value| value.downcast_ref::<Literal>().is_some_and(is_value))
}
