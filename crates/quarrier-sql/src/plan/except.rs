//! Keeps DataFusion's rules away from plans that they get wrong.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// A rule that skips some plans.
#[derive(Debug)]
pub(super) struct Except {
    rule: Arc<dyn OptimizerRule + Send + Sync>,
    is_left: fn(&LogicalPlan) -> bool,
}

impl Except {
    /// Applies `rule`, except to plans for which `is_left` is true.
    pub(super) fn new(
        rule: Arc<dyn OptimizerRule + Send + Sync>,
        is_left: fn(&LogicalPlan) -> bool,
    ) -> Arc<Self> {
        Arc::new(Except { rule, is_left })
    }
}

impl OptimizerRule for Except {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if (self.is_left)(&plan) {
            Ok(Transformed::no(plan))
        } else {
            self.rule.rewrite(plan, config)
        }
    }
}
