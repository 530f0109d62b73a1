//! Counts the rows of a plan.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use futures::TryStreamExt;

use super::over_input::{over_input, without_expressions};

/// Counts the rows of all partitions of its input.
#[derive(Debug)]
pub(crate) struct CountExec {
    input: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl CountExec {
    /// Counts the rows of `input`. All columns of `schema` are 64-bit integers, and each holds the
    /// count.
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, schema: SchemaRef) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        CountExec { input, schema, properties: Arc::new(properties) }
    }

    /// The row with the count, for a schema as in [`new`](Self::new).
    pub(crate) fn counted(schema: &SchemaRef, count: usize) -> Result<RecordBatch> {
        let value: ArrayRef = Arc::new(Int64Array::from(vec![count as i64]));
        let columns = vec![value; schema.fields().len()];
        Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
    }
}

impl DisplayAs for CountExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CountExec")
    }
}

impl ExecutionPlan for CountExec {
    over_input!("CountExec");
    without_expressions!();

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.pop().unwrap_or_else(|| Arc::clone(&self.input));
        Ok(Arc::new(CountExec::new(input, Arc::clone(&self.schema))))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let partitions = self.input.properties().output_partitioning().partition_count();
        let mut parts = Vec::with_capacity(partitions);
        for partition in 0..partitions {
            parts.push(self.input.execute(partition, Arc::clone(&context))?);
        }
        let schema = Arc::clone(&self.schema);
        let counted = futures::stream::once(async move {
            let mut count = 0;
            for mut part in parts {
                while let Some(batch) = part.try_next().await? {
                    count += batch.num_rows();
                }
            }
            CountExec::counted(&schema, count)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), counted)))
    }
}
