//! Converts errors to those of PostgreSQL, with their SQLSTATE.

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use quarrier_wire::{Failure, state};

use crate::Error;

/// Returns an error with its SQLSTATE.
pub(super) fn failed(error: &Error) -> Failure {
    Failure::new(code(error), error.to_string())
}

/// Returns an error of a data folder with its SQLSTATE.
pub(super) fn of_folder(error: &quarrier::Error) -> Failure {
    let code = match error {
        quarrier::Error::Messages(error) => of_messages(error),
        _ => state::SYSTEM,
    };
    Failure::new(code, error.to_string())
}

fn of_messages(error: &quarrier_messages::Error) -> &'static str {
    use quarrier_messages::{Error as E, log::Error as Log};
    match error {
        E::Log(Log::Full { .. }) => state::DISK_FULL,
        E::Log(Log::TooLarge { .. }) => state::LIMIT,
        E::Log(_) => state::SYSTEM,
        E::Format { .. } => state::PARAMETER,
        E::Store { .. } | E::Columns { .. } => state::UNSUPPORTED,
        E::Cancelled => state::SHUTDOWN,
        _ => state::SYSTEM,
    }
}

fn code(error: &Error) -> &'static str {
    match error {
        Error::Text { .. } => state::SYNTAX,
        Error::Value { reason } => of_value(reason),
        Error::Table { .. } => state::NO_TABLE,
        Error::Denied { .. } => state::DENIED,
        Error::Cancelled | Error::TimedOut { .. } => state::CANCELLED,
        Error::Setup { .. } | Error::Output { .. } => state::SYSTEM,
        Error::Internal(_) => state::INTERNAL,
        Error::Engine(error) => of_engine(error.find_root()),
    }
}

fn of_value(reason: &str) -> &'static str {
    let reason = reason.to_ascii_lowercase();
    if reason.contains("divi") && reason.contains("zero") {
        state::DIVISION
    } else if reason.contains("overflow") || reason.contains("out of range") {
        state::OUT_OF_RANGE
    } else {
        state::TEXT
    }
}

fn of_engine(error: &DataFusionError) -> &'static str {
    match error {
        DataFusionError::SchemaError(inner, _) => match &**inner {
            SchemaError::FieldNotFound { .. } => state::NO_COLUMN,
            SchemaError::AmbiguousReference { .. } => "42702",
            _ => "42701",
        },
        DataFusionError::Plan(said) => of_plan(said),
        DataFusionError::SQL(..) => state::SYNTAX,
        DataFusionError::NotImplemented(_) => state::UNSUPPORTED,
        DataFusionError::ResourcesExhausted(_) => state::MEMORY,
        DataFusionError::ArrowError(inner, _) => of_value(&inner.to_string()),
        DataFusionError::Execution(said) => of_value(said),
        DataFusionError::Diagnostic(_, inner) => of_engine(inner),
        _ => state::INTERNAL,
    }
}

fn of_plan(said: &str) -> &'static str {
    let lower = said.to_ascii_lowercase();
    let names = |word: &str| lower.contains(word);
    if names("table") && (names("not found") || names("no table")) {
        state::NO_TABLE
    } else if names("function")
        && (names("invalid function") || names("not found") || names("unknown"))
    {
        state::NO_FUNCTION
    } else if names("cannot coerce") || names("compare") || names("type") {
        state::KINDS
    } else {
        state::SYNTAX
    }
}
