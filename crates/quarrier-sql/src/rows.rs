//! The rows of an answer, as a stream of batches.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::physical_plan::ExecutionPlan;
use quarrier_core::sync::lock;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::Result;

/// The rows of an answer. A background task computes them until this is dropped.
#[derive(Debug)]
pub struct Rows {
    schema: SchemaRef,
    plan: Arc<Mutex<Arc<dyn ExecutionPlan>>>,
    batches: mpsc::Receiver<Result<RecordBatch>>,
    /// The task that computes the rows; `None` if all of them are available.
    task: Option<AbortHandle>,
    waited: Duration,
}

impl Rows {
    /// Rows of `plan` that arrive through `batches`. `task` computes them, and may switch to
    /// another plan; `None` if `batches` already holds all rows.
    pub(crate) fn new(
        schema: SchemaRef,
        plan: Arc<Mutex<Arc<dyn ExecutionPlan>>>,
        batches: mpsc::Receiver<Result<RecordBatch>>,
        task: Option<AbortHandle>,
    ) -> Self {
        Rows { schema, plan, batches, task, waited: Duration::ZERO }
    }

    /// Adds time that was spent on finding the first rows.
    pub(crate) fn waited_already(self, waited: Duration) -> Self {
        let mut rows = self;
        rows.waited += waited;
        rows
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The plan that runs, with its metrics so far.
    pub fn plan(&self) -> Arc<dyn ExecutionPlan> {
        Arc::clone(&lock(&self.plan))
    }

    /// Waits for the next rows; `None` at the end.
    ///
    /// # Errors
    /// The statement fails while it runs: a value cannot be computed, or there is not enough
    /// memory.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let start = Instant::now();
        let next = self.batches.recv().await.transpose();
        self.waited += start.elapsed();
        next
    }

    /// Whether all rows were found before they were requested.
    pub fn are_here(&self) -> bool {
        self.task.is_none()
    }

    /// The total time spent waiting for rows.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// The number of bytes touched so far.
    pub fn bytes_touched(&self) -> Touched {
        let mut touched = Touched::default();
        let whole = self.plan();
        let mut open = vec![&whole];
        while let Some(plan) = open.pop() {
            open.extend(plan.children());
            let Some(metrics) = plan.metrics() else { continue };
            let bytes = match plan.name() {
                "MessagesExec" => &mut touched.column_bytes,
                _ => &mut touched.input_bytes,
            };
            for name in ["bytes_touched", "bytes_scanned"] {
                *bytes += metrics.sum_by_name(name).map_or(0, |sum| sum.as_usize() as u64);
            }
        }
        touched
    }
}

/// The number of bytes touched for an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Touched {
    /// Bytes of columns in memory.
    pub column_bytes: u64,
    /// Bytes of files, and of searched or carved sources.
    pub input_bytes: u64,
}

impl Drop for Rows {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
