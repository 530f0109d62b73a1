//! The error type of this crate: what failed, where, and what to try.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::error::ArrowError;
use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;
use quarrier_core::panics::{self, Panicked};
use quarrier_exact::Refusal;
use tokio::task::JoinError;

/// Why a statement has no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The text is not a valid statement.
    Text {
        /// Why it is wrong, and what to try.
        reason: String,
    },
    /// The answer depends on a value that cannot be computed.
    Value {
        /// Why, and what to try.
        reason: String,
    },
    /// A table cannot be opened.
    Table {
        /// The table's name, usually a file name.
        name: String,
        /// Why it cannot be opened.
        reason: String,
    },
    /// A statement may not access a file.
    Denied {
        /// The file's name.
        name: String,
        /// The folders that statements may access.
        reason: String,
    },
    /// The engine could not be set up.
    Setup {
        /// Why it failed.
        reason: String,
    },
    /// Planning or running failed.
    Engine(DataFusionError),
    /// The answer could not be written.
    Output {
        /// The output's name.
        name: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// DataFusion or this crate panicked, which is a bug.
    Internal(Panicked),
    /// The statement was stopped.
    Cancelled,
    /// The statement exceeded its time limit.
    TimedOut {
        /// The limit in seconds.
        seconds: f64,
    },
}

/// The cause of an error, for callers that map errors to codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The statement is wrong or not supported.
    Statement,
    /// The statement names a column that does not exist.
    Column,
    /// The answer depends on a value that cannot be computed.
    Value,
    /// Too little memory.
    Memory,
    /// Anything else.
    Other,
}

impl Error {
    pub(crate) fn text(reason: impl Into<String>) -> Self {
        Error::Text { reason: reason.into() }
    }

    pub(crate) fn value(reason: impl Into<String>) -> Self {
        Error::Value { reason: reason.into() }
    }

    pub(crate) fn table(name: &str, reason: impl fmt::Display) -> Self {
        Error::Table { name: name.to_string(), reason: reason.to_string() }
    }

    /// The cause of this error.
    pub fn cause(&self) -> Cause {
        let error = match self {
            Error::Text { .. } => return Cause::Statement,
            Error::Value { .. } => return Cause::Value,
            Error::Engine(error) => error.find_root(),
            _ => return Cause::Other,
        };
        match error {
            DataFusionError::SchemaError(inner, _) => match &**inner {
                SchemaError::FieldNotFound { .. } => Cause::Column,
                _ => Cause::Statement,
            },
            DataFusionError::ArrowError(..) | DataFusionError::Execution(_) => Cause::Value,
            DataFusionError::ResourcesExhausted(_) => Cause::Memory,
            DataFusionError::Plan(_)
            | DataFusionError::SQL(..)
            | DataFusionError::NotImplemented(_)
            | DataFusionError::Configuration(_)
            | DataFusionError::Internal(_) => Cause::Statement,
            _ => Cause::Other,
        }
    }

    /// Whether the statement was stopped.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Error::Cancelled)
    }

    /// Whether the reader of the output has closed it, which counts as success.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Error::Output { error, .. }
            if error.kind() == std::io::ErrorKind::BrokenPipe)
    }
}

/// Maximum number of characters of an error that are shown.
const SHOWN_MAX: usize = 1_000;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Text { reason } | Error::Value { reason } | Error::Setup { reason } => {
                f.write_str(reason)
            }
            Error::Table { name, reason } => {
                let reason = reason.strip_prefix(&format!("{name}: ")).unwrap_or(reason);
                write!(f, "{name}: {reason}")
            }
            Error::Denied { name, reason } => write!(f, "{name}: {reason}"),
            Error::Engine(error) => f.write_str(&said(error)),
            Error::Output { name, error } => write!(f, "{name}: cannot write: {error}"),
            Error::Internal(panicked) => write!(
                f,
                "{panicked} ended the statement; try to rewrite it, and please report this"
            ),
            Error::Cancelled => f.write_str("interrupted before the answer was complete"),
            Error::TimedOut { seconds } => write!(
                f,
                "not answered within {seconds} s; try a narrower condition or a longer --timeout"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Engine(error) => Some(error),
            Error::Output { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// Whether the error is a panic in one of DataFusion's tasks.
fn is_panic(error: &DataFusionError) -> bool {
    let joined = match error {
        DataFusionError::ExecutionJoin(joined) => Some(&**joined),
        DataFusionError::External(inner) => {
            let shared = inner.downcast_ref::<Arc<JoinError>>().map(|joined| &**joined);
            shared.or_else(|| inner.downcast_ref::<JoinError>())
        }
        _ => None,
    };
    joined.is_some_and(JoinError::is_panic)
}

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        if is_panic(error.find_root()) {
            return Error::Internal(panics::taken());
        }
        match error.find_root() {
            DataFusionError::External(inner) if inner.downcast_ref::<Error>().is_some() => {
                match inner.downcast_ref::<Error>() {
                    Some(Error::Cancelled) => Error::Cancelled,
                    Some(Error::Value { reason }) => Error::value(reason),
                    Some(Error::Table { name, reason }) => Error::table(name, reason),
                    Some(Error::Internal(panicked)) => Error::Internal(panicked.clone()),
                    Some(other) => Error::text(other.to_string()),
                    None => Error::Engine(error),
                }
            }
            DataFusionError::External(inner) => match inner.downcast_ref::<Refusal>() {
                Some(refusal) if refusal.concerns_arguments() => Error::text(refusal.to_string()),
                Some(refusal) => Error::value(refusal.to_string()),
                None => Error::Engine(error),
            },
            _ => Error::Engine(error),
        }
    }
}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        match error {
            Error::Engine(error) => error,
            other => DataFusionError::External(Box::new(other)),
        }
    }
}

/// DataFusion's message, on one line, without the names of its internals.
fn said(error: &DataFusionError) -> String {
    let root = error.find_root();
    if let Some(reason) = known(root) {
        return reason;
    }
    let text = root.strip_backtrace();
    let line: String = text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    let is_internal = line.contains("Internal error: ");
    let line = plainly(&line);
    let mut gist = line.as_str();
    for part in [
        "External error: ",
        "Error during planning: ",
        "SQL error: ",
        "Schema error: ",
        "Execution error: ",
        "Arrow error: ",
        "This feature is not implemented: ",
        "Resources exhausted: ",
        "Optimizer rule ",
    ] {
        gist = gist.strip_prefix(part).unwrap_or(gist);
    }
    if is_internal {
        gist = gist.rsplit("Internal error: ").next().unwrap_or(gist);
    }
    if let Some(name) = missing_table(gist) {
        return format!(
            "there is no table '{name}'; name a file in single quotes, as FROM 'orders.ndjson', or \
             give it a name with --table"
        );
    }
    if let Some(operator) = gist.strip_prefix("Unsupported binary operator: ") {
        return match operator {
            "PGOverlap" => "'&&' is not an SQL operator; write AND".to_string(),
            other => format!("there is no operator {other}; rewrite the expression"),
        };
    }
    let mut shown: String = gist.chars().take(SHOWN_MAX).collect();
    if shown.len() < gist.len() {
        shown.push('…');
    }
    if is_internal {
        return format!("DataFusion cannot run this: {shown}; rewrite the statement");
    }
    if let DataFusionError::ResourcesExhausted(_) = root {
        return format!("not enough memory: {shown}; try a larger --max-memory");
    }
    shown
}

/// Removes remarks for DataFusion's developers and about its internals.
fn plainly(line: &str) -> String {
    let line = line.split("This issue was likely caused by a bug").next().unwrap_or(line);
    let line = match line.split_once(" user-defined coercion failed with: ") {
        Some((_, reason)) => reason,
        None => line,
    };
    let line = line.split(". No function matches").next().unwrap_or(line);
    line.trim_end_matches(['.', ' ']).to_string()
}

/// Better messages for errors that DataFusion explains too little.
fn known(error: &DataFusionError) -> Option<String> {
    match error {
        DataFusionError::SchemaError(inner, _) => match &**inner {
            SchemaError::FieldNotFound { field, valid_fields } if !valid_fields.is_empty() => {
                // Columns are prefixed with their table if the statement wrote the prefix.
                let name = |column: &Column| match &field.relation {
                    Some(_) => column.flat_name(),
                    None => column.name.clone(),
                };
                let names: Vec<String> = valid_fields.iter().map(name).collect();
                let known = names.iter().map(String::as_str);
                Some(quarrier_filter::sql::unknown_column(&name(field), known))
            }
            _ => None,
        },
        DataFusionError::ArrowError(inner, _) => match &**inner {
            ArrowError::DivideByZero => Some(
                "division by zero; try NULLIF(divisor, 0), which makes the quotient NULL".into(),
            ),
            ArrowError::CastError(said) => {
                Some(format!("{said}; TRY_CAST returns NULL for values that cannot be converted"))
            }
            _ => None,
        },
        _ => None,
    }
}

/// The table that DataFusion did not find.
fn missing_table(gist: &str) -> Option<&str> {
    let name = gist.strip_prefix("table '")?.strip_suffix("' not found")?;
    Some(name.strip_prefix("datafusion.public.").unwrap_or(name))
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
