//! Accounts for the memory of rows that a consumer holds until its input ends, as some window
//! functions do. DataFusion does not account for it.

use std::fmt;
use std::sync::Arc;

use datafusion::common::{Result, Statistics, internal_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::StreamExt;

use super::over_input::{over_input, rows_of_input, without_expressions};

/// The consumer concatenates the rows at the end, when they exist twice.
const COPIES: usize = 2;

/// Passes rows on, and reserves memory for them until its stream is dropped.
#[derive(Debug)]
pub(crate) struct HeldExec {
    input: Arc<dyn ExecutionPlan>,
}

impl HeldExec {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        HeldExec { input }
    }
}

impl DisplayAs for HeldExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeldExec")
    }
}

impl ExecutionPlan for HeldExec {
    over_input!("HeldExec");
    without_expressions!();
    rows_of_input!();

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.pop() else { return internal_err!("rows of nothing") };
        Ok(Arc::new(HeldExec::new(input)))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let held: MemoryReservation =
            MemoryConsumer::new("the window function").register(context.memory_pool());
        let batches = self.input.execute(partition, context)?.map(move |batch| {
            let batch = batch?;
            held.try_grow(COPIES * batch.get_array_memory_size())?;
            Ok(batch)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::clone(&inputs[0]))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}
