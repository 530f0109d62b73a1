//! The one error type of this crate. A message that does not parse is none: it is listed.

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
        /// What is wrong, and where.
        reason: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Source(error) => error.fmt(f),
            Error::Compressed { source_name, reason } => write!(f, "{source_name}: {reason}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Source(error) => Some(error),
            Error::Compressed { .. } => None,
        }
    }
}

impl From<quarrier_core::Error> for Error {
    fn from(error: quarrier_core::Error) -> Self {
        Error::Source(error)
    }
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
