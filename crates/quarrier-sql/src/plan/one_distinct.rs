//! `COUNT(DISTINCT x), SUM(y)` in two steps, first by `x`: quick, but of exact decimals DataFusion 55 makes
//! sums of sums, which have more digits than those that the rest of the plan was made for.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::single_distinct_to_groupby::SingleDistinctToGroupBy;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// The engine's rule, which leaves sums of decimals alone.
#[derive(Debug, Default)]
pub(super) struct OneDistinct(SingleDistinctToGroupBy);

impl OptimizerRule for OneDistinct {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match &plan {
            LogicalPlan::Aggregate(aggregate) if sums_decimals(aggregate) => {
                Ok(Transformed::no(plan))
            }
            _ => self.0.rewrite(plan, config),
        }
    }
}

fn sums_decimals(aggregate: &Aggregate) -> bool {
    let is_decimal = |value: &Expr| {
        let data_type = value.get_type(aggregate.input.schema());
        !data_type
            .is_ok_and(|it| !matches!(it, DataType::Decimal128(..) | DataType::Decimal256(..)))
    };
    aggregate.aggr_expr.iter().any(|one| match one {
        Expr::AggregateFunction(AggregateFunction { func, params }) => {
            func.name() == "sum" && !params.distinct && params.args.iter().any(is_decimal)
        }
        _ => false,
    })
}
