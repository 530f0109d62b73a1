//! Reads rows of a file while a query runs. The Parquet library decodes pages then, and panics at
//! some malicious ones; that becomes an error of the file.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::error::DataFusionError;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::parquet::errors::ParquetError;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::Stream;
use quarrier_messages::guarded;

use super::over_input::{over_input, rows_of_input, without_expressions};
use crate::Error;

/// The name of a file that is not local, attached to its scan.
#[derive(Debug, Clone)]
pub(crate) struct FileName(pub(crate) Arc<str>);

/// Passes on the rows of a file, and adds the file's name to errors.
#[derive(Debug)]
pub(crate) struct FileExec {
    input: Arc<dyn ExecutionPlan>,
    name: Arc<str>,
}

impl FileExec {
    /// Wraps `input`, which reads the file `name`.
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, name: Arc<str>) -> Self {
        FileExec { input, name }
    }
}

impl DisplayAs for FileExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileExec: {}", self.name)
    }
}

impl ExecutionPlan for FileExec {
    over_input!("FileExec");
    without_expressions!();
    rows_of_input!();

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.pop() else { return internal_err!("rows of nothing") };
        Ok(Arc::new(FileExec::new(input, Arc::clone(&self.name))))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let name = Arc::clone(&self.name);
        let input = guarded(|| Ok(self.input.execute(partition, context)));
        let input = input.unwrap_or_else(|error| Err(error.into()));
        let input = input.map_err(|error| of_file(&name, error))?;
        Ok(Box::pin(FileStream { schema: self.schema(), input: Some(input), name }))
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

/// The rows of a partition; `input` is `None` after an error.
struct FileStream {
    schema: SchemaRef,
    input: Option<SendableRecordBatchStream>,
    name: Arc<str>,
}

impl Stream for FileStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(input) = &mut self.input else { return Poll::Ready(None) };
        let next = guarded(|| Ok(input.as_mut().poll_next(context)));
        let next = next.unwrap_or_else(|error| Poll::Ready(Some(Err(error.into()))));
        next.map(|next| {
            next.map(|batch| {
                batch.map_err(|error| {
                    self.input = None;
                    of_file(&self.name, error)
                })
            })
        })
    }
}

impl RecordBatchStream for FileStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Turns an error into one of the file, unless it occurred in a calculation on its rows.
pub(crate) fn of_file(name: &str, error: DataFusionError) -> DataFusionError {
    let reason = match error.find_root() {
        DataFusionError::ParquetError(inner) => {
            if let ParquetError::External(inner) = &**inner {
                match inner.downcast_ref::<Error>() {
                    // Its bytes could not be fetched.
                    Some(Error::Table { name, reason }) => {
                        return Error::table(name, reason).into();
                    }
                    Some(Error::Cancelled) => return Error::Cancelled.into(),
                    _ => {}
                }
            }
            inner.to_string()
        }
        DataFusionError::ArrowError(inner, _) => match &**inner {
            ArrowError::ParquetError(_)
            | ArrowError::ParseError(_)
            | ArrowError::IpcError(_)
            | ArrowError::InvalidArgumentError(_)
            | ArrowError::SchemaError(_)
            | ArrowError::ExternalError(_) => inner.to_string(),
            _ => return error,
        },
        DataFusionError::ObjectStore(inner) => inner.to_string(),
        DataFusionError::IoError(inner) => inner.to_string(),
        _ => return error,
    };
    let reason = format!("it is damaged, truncated, or in another format: {reason}");
    Error::table(name, reason).into()
}
