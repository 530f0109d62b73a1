//! The error type of this crate. A message that does not parse is not an error, but a reject.

use std::fmt;

/// Why messages could not be loaded.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The source could not be opened or read.
    Source(quarrier_core::Error),
    /// The compressed bytes of a source are damaged.
    Compressed {
        /// The path or name of the source.
        source_name: String,
        /// The reason, and the position.
        reason: String,
    },
    /// An Arrow or Parquet file that could not be read.
    Columns {
        /// The path or name of the source.
        source_name: String,
        /// Why it is invalid.
        reason: String,
    },
    /// An Arrow column that a table cannot have.
    ArrowColumn {
        /// The column's name, or its path if it is nested.
        name: String,
        /// Why, and what to try.
        reason: String,
    },
    /// Arrow batches that could not be read.
    Arrow(arrow_schema::ArrowError),
    /// No format has this name.
    Format {
        /// The name as given.
        name: String,
        /// The valid names.
        known: &'static [&'static str],
    },
    /// A log could not be opened, read or written.
    Log(crate::log::Error),
    /// A data folder lacks what was requested, or cannot store it.
    Store {
        /// The folder, or a file in it.
        place: String,
        /// Why, and what to try.
        reason: String,
    },
    /// The load was stopped before it had read everything.
    Cancelled,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Source(error) => error.fmt(f),
            Error::Compressed { source_name: place, reason }
            | Error::Columns { source_name: place, reason }
            | Error::Store { place, reason } => write!(f, "{place}: {reason}"),
            Error::ArrowColumn { name, reason } => write!(f, "Arrow column {name}: {reason}"),
            Error::Arrow(error) => write!(f, "Arrow batches cannot be read: {error}"),
            Error::Format { name, known } => {
                write!(f, "no format '{name}'; there are: auto, {}", known.join(", "))
            }
            Error::Log(error) => error.fmt(f),
            Error::Cancelled => f.write_str("cancelled before everything was loaded"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Source(error) => Some(error),
            Error::Arrow(error) => Some(error),
            Error::Log(error) => Some(error),
            Error::Compressed { .. }
            | Error::Columns { .. }
            | Error::ArrowColumn { .. }
            | Error::Format { .. }
            | Error::Store { .. }
            | Error::Cancelled => None,
        }
    }
}

impl From<quarrier_core::Error> for Error {
    fn from(error: quarrier_core::Error) -> Self {
        Error::Source(error)
    }
}

impl From<arrow_schema::ArrowError> for Error {
    fn from(error: arrow_schema::ArrowError) -> Self {
        Error::Arrow(error)
    }
}

impl From<crate::log::Error> for Error {
    fn from(error: crate::log::Error) -> Self {
        Error::Log(error)
    }
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
