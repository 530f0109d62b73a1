//! Optimizer rules that replace one plan by another.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};

/// The source of the rows that a plan passes on unchanged, in one partition or several.
pub(super) fn source(plan: &Arc<dyn ExecutionPlan>) -> &Arc<dyn ExecutionPlan> {
    let is_spread = |spread: &&RepartitionExec| {
        matches!(spread.partitioning(), Partitioning::RoundRobinBatch(_))
    };
    let mut plan = plan;
    loop {
        let joined = plan.downcast_ref::<CoalescePartitionsExec>();
        let spread = plan.downcast_ref::<RepartitionExec>().filter(is_spread);
        plan = match (joined, spread) {
            (Some(joined), _) if joined.fetch().is_none() => joined.input(),
            (_, Some(spread)) => spread.input(),
            _ => return plan,
        };
    }
}

/// A better plan for the given one; `None` keeps it.
type Instead = fn(&Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>>;

/// Applies a replacement to every node of a plan, from the top down.
pub(super) struct Rule {
    name: &'static str,
    instead: Instead,
}

impl Rule {
    /// A rule with this name.
    pub(super) fn new(name: &'static str, instead: Instead) -> Arc<Self> {
        Arc::new(Rule { name, instead })
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PhysicalOptimizerRule for Rule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_down(|plan| {
            Ok(match (self.instead)(&plan)? {
                Some(other) => Transformed::yes(other),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        self.name
    }

    fn schema_check(&self) -> bool {
        true
    }
}
