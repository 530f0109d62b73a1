//! Answers COUNT(*) over a scan or a search by a count that needs no rows. DataFusion would have
//! every row produced.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};

use super::rule::source;
use crate::function::FoundExec;
use crate::scan::{CountExec, MessagesExec};

/// Replaces an aggregate that only counts by a plan that counts its source directly.
pub(super) fn instead(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    Ok(plan.downcast_ref::<AggregateExec>().filter(|plan| is_of_rows(plan)).and_then(counted))
}

fn counted(aggregate: &AggregateExec) -> Option<Arc<dyn ExecutionPlan>> {
    let groups = aggregate.group_expr().expr();
    let input = source(aggregate.input());
    if let Some(found) = input.downcast_ref::<FoundExec>() {
        let columns = groups.iter().map(|(group, _)| Some(group.downcast_ref::<Column>()?.index()));
        let columns: Vec<usize> = columns.collect::<Option<_>>()?;
        return Some(Arc::new(found.counted(&columns, &aggregate.schema())?));
    }
    let scan = input.downcast_ref::<MessagesExec>()?;
    let is_whole = groups.is_empty() && scan.spec().columns.is_empty();
    is_whole.then(|| Arc::new(CountExec::new(Arc::clone(input), aggregate.schema())) as _)
}

/// Whether an aggregate is the first above the rows, and only counts them.
fn is_of_rows(aggregate: &AggregateExec) -> bool {
    let is_first = matches!(
        aggregate.mode(),
        AggregateMode::Partial | AggregateMode::Single | AggregateMode::SinglePartitioned
    );
    let groups = aggregate.group_expr();
    let schema = aggregate.schema();
    let counts = schema.fields().iter().skip(groups.expr().len());
    is_first
        && aggregate.aggr_expr().iter().all(|one| is_count(one))
        && aggregate.filter_expr().iter().all(Option::is_none)
        && aggregate.limit_options().is_none()
        && !groups.has_grouping_set()
        && counts.len() == aggregate.aggr_expr().len()
        && counts.clone().all(|field| *field.data_type() == DataType::Int64)
        && counts.len() > 0
}

/// Whether an aggregate function counts rows, whatever their values.
fn is_count(aggregate: &AggregateFunctionExpr) -> bool {
    let values = aggregate.expressions();
    let is_value = |literal: &Literal| !literal.value().is_null();
    aggregate.fun().name() == "count"
        && !aggregate.is_distinct()
        && values.len() == 1
        && values.iter().all(|value| value.downcast_ref::<Literal>().is_some_and(is_value))
}
