//! Units as rows, what runs them, and the columns of the answers for them.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, RecordBatch, StringArray, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::{DataFusionError, Result};
use quarrier_units::{Error, SourceUnits, Stored, Unit};
use serde::{Deserialize, Serialize};

/// What all units of a job share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Payload {
    /// The version of the client's program.
    pub(crate) version: String,
    /// A name for this run of the job.
    pub(crate) run: String,
    /// The name of the job: workers that derive another one from the request would find other rows.
    pub(crate) job: String,
    /// The SHA-256 of the request, which the scheduler keeps.
    pub(crate) request: String,
    /// The place for objects, if workers can reach one.
    pub(crate) to: Option<Vec<u8>>,
}

/// A unit as a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Task {
    /// The name by which workers open the source.
    pub(crate) at: Vec<u8>,
    pub(crate) name: Vec<u8>,
    pub(crate) source: String,
    pub(crate) length: u64,
    pub(crate) mark: String,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// Runs units of one request.
pub(crate) trait RunUnits {
    /// The name of the job.
    fn job(&self) -> &str;

    /// Runs a unit, and stores its rows.
    fn store(&mut self, source: &mut SourceUnits, unit: &Unit) -> Result<Stored, Error>;

    /// Whether the client runs units that failed again, since each of them is a source by itself.
    fn leaves_failed(&self) -> bool;
}

pub(crate) fn task_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("index", DataType::UInt64, false),
        Field::new("task", DataType::Utf8, false),
    ]))
}

/// The columns of answers; `bytes` are a part of an object.
pub(crate) fn answer_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("index", DataType::UInt64, false),
        Field::new("state", DataType::UInt8, false),
        Field::new("bytes", DataType::Binary, false),
    ]))
}

/// The units of a batch, and their indexes.
///
/// # Errors
/// If the batch has no such rows.
pub(crate) fn tasks_of(batch: &RecordBatch) -> Result<Vec<(u64, Task)>> {
    let column = |at: usize| batch.columns().get(at).ok_or_else(|| damaged("a column is missing"));
    let indexes = column(0)?.as_any().downcast_ref::<UInt64Array>();
    let tasks = column(1)?.as_any().downcast_ref::<StringArray>();
    let (Some(indexes), Some(tasks)) = (indexes, tasks) else {
        return Err(damaged("a column has another type"));
    };
    let all = indexes.iter().zip(tasks);
    all.map(|(index, task)| match (index, task) {
        (Some(index), Some(task)) => Ok((index, serde_json::from_str(task).map_err(damaged)?)),
        _ => Err(damaged("a value is missing")),
    })
    .collect()
}

/// The error for a plan that cannot be one of ours.
pub(crate) fn damaged(reason: impl fmt::Display) -> DataFusionError {
    DataFusionError::Plan(format!("the plan of the job is damaged: {reason}"))
}

impl Task {
    pub(crate) fn new(unit: &Unit, at: &std::ffi::OsStr) -> Self {
        Task {
            at: at.as_encoded_bytes().to_vec(),
            name: unit.name.as_encoded_bytes().to_vec(),
            source: unit.source.clone(),
            length: unit.version.length,
            mark: unit.version.mark.clone(),
            start: unit.range.start,
            end: unit.range.end,
        }
    }
}
