//! What a worker runs: the request, its units, and the columns of the answers for them.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::DataFusionError;
use quarrier::source::Version;
use quarrier_units::{Error, SourceUnits, Stored, Unit, View};
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

/// A unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) source: TaskSource,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// The source of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskSource {
    /// The name by which workers open it.
    pub(crate) at: Vec<u8>,
    name: Vec<u8>,
    source: String,
    length: u64,
    mark: String,
}

/// Runs units of one request.
pub(crate) trait RunUnits {
    /// The name of the job.
    fn job(&self) -> &str;

    /// Runs a unit, and stores its rows.
    fn store(&mut self, source: &mut SourceUnits, unit: &Unit) -> Result<Stored, Error>;

    /// How it sees sources.
    fn view(&self) -> View {
        View::Bytes
    }

    /// Whether the client runs units that failed again, since each of them is a source by itself.
    fn leaves_failed(&self) -> bool;
}

/// The columns of answers; `bytes` are a part of an object.
pub(crate) fn answer_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("index", DataType::UInt64, false),
        Field::new("state", DataType::UInt8, false),
        Field::new("bytes", DataType::Binary, false),
    ]))
}

/// The error for a plan that cannot be one of ours.
pub(crate) fn damaged(reason: impl fmt::Display) -> DataFusionError {
    DataFusionError::Plan(format!("the plan of the job is damaged: {reason}"))
}

impl TaskSource {
    pub(crate) fn new(unit: &Unit, at: &OsStr) -> Self {
        TaskSource {
            at: at.as_encoded_bytes().to_vec(),
            name: unit.name.as_encoded_bytes().to_vec(),
            source: unit.source.clone(),
            length: unit.version.length,
            mark: unit.version.mark.clone(),
        }
    }
}

impl Task {
    pub(crate) fn unit(&self) -> Unit {
        let source = &self.source;
        Unit {
            name: OsString::from_vec(source.name.clone()),
            source: source.source.clone(),
            version: Version { length: source.length, mark: source.mark.clone() },
            range: self.start..self.end,
        }
    }
}
