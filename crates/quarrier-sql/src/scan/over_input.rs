//! Common methods of plans with one input.
//!
//! Each macro is used within `impl ExecutionPlan`, for a type whose field `input` is the input.

/// Defines the name and the input, which may have any number of partitions.
macro_rules! over_input {
    ($name:literal) => {
        fn name(&self) -> &str {
            $name
        }

        fn children(&self) -> Vec<&std::sync::Arc<dyn ExecutionPlan>> {
            vec![&self.input]
        }

        fn benefits_from_input_partitioning(&self) -> Vec<bool> {
            vec![false]
        }
    };
}

/// For plans that evaluate no expression.
macro_rules! without_expressions {
    () => {
        fn apply_expressions(
            &self,
            _: &mut dyn FnMut(
                &std::sync::Arc<dyn datafusion::physical_plan::PhysicalExpr>,
            ) -> Result<datafusion::common::tree_node::TreeNodeRecursion>,
        ) -> Result<datafusion::common::tree_node::TreeNodeRecursion> {
            Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
        }
    };
}

/// For plans that return some or all rows of their input, in its order and partitions. A plan that
/// runs again must not reuse this plan's state, so resetting removes it from the plan.
macro_rules! rows_of_input {
    () => {
        fn properties(&self) -> &std::sync::Arc<datafusion::physical_plan::PlanProperties> {
            self.input.properties()
        }

        fn maintains_input_order(&self) -> Vec<bool> {
            vec![true]
        }

        fn reset_state(self: std::sync::Arc<Self>) -> Result<std::sync::Arc<dyn ExecutionPlan>> {
            Ok(std::sync::Arc::clone(&self.input))
        }

        fn child_stats_requests(
            &self,
            partition: Option<usize>,
        ) -> Vec<datafusion::physical_plan::statistics::ChildStats> {
            vec![datafusion::physical_plan::statistics::ChildStats::At(partition)]
        }
    };
}

pub(super) use {over_input, rows_of_input, without_expressions};
