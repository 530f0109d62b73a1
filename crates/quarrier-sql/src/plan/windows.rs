//! Accounts for the memory of window functions over whole partitions: DataFusion holds their input
//! in memory, but does not count it.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::windows::WindowAggExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

use crate::scan::HeldExec;

#[derive(Debug)]
pub(super) struct Windows;

impl PhysicalOptimizerRule for Windows {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let held = |plan: Arc<dyn ExecutionPlan>| {
            let Some(window) = plan.downcast_ref::<WindowAggExec>() else {
                return Ok(Transformed::no(plan));
            };
            let input: Arc<dyn ExecutionPlan> = Arc::new(HeldExec::new(Arc::clone(window.input())));
            Ok(Transformed::yes(replace_children_if_necessary(plan, vec![input])?))
        };
        plan.transform_up(held).data()
    }

    fn name(&self) -> &'static str {
        "windows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
