//! Common methods of plans over one input.
//!
//! Each of these macros is used within `impl ExecutionPlan` for a type whose field `input` is that
//! plan.

/// Its name, and its input, which is as good in any number of partitions.
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

/// No expression is evaluated.
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

/// The rows are the input's, in its order and partitions, all of them or some. A plan that is run again
/// starts without its state, which belongs to one run.
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
