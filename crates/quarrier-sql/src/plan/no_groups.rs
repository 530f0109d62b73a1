//! An aggregate without groups has one row, whatever it is of. DataFusion 55 hands a condition without
//! columns, such as what `n = 4 AND n = 8` comes to, down to what it is of, as if that left the row out.

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// The engine's rule, which leaves conditions above such an aggregate.
#[derive(Debug, Default)]
pub(super) struct NoGroups(PushDownFilter);

impl OptimizerRule for NoGroups {
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
            LogicalPlan::Filter(filter) if has_no_groups(&filter.input) => {
                Ok(Transformed::no(plan))
            }
            _ => self.0.rewrite(plan, config),
        }
    }
}

/// Whether it is such an aggregate, perhaps below other conditions, which would be joined to one.
fn has_no_groups(mut plan: &LogicalPlan) -> bool {
    while let LogicalPlan::Filter(filter) = plan {
        plan = &filter.input;
    }
    matches!(plan, LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty())
}
