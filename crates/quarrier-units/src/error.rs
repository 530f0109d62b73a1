//! Why units cannot be run or joined.

use std::path::PathBuf;
use std::{fmt, io};

/// Why units cannot be run or joined. Each variant displays as one line.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The search of a unit failed, or was stopped, or the receiver of its rows refused more.
    Search(quarrier::Error),
    /// The request contradicts itself.
    Request(String),
    /// A source has another version than its units. No rows of the other version were stored.
    Changed {
        /// The source.
        name: String,
    },
    /// An object cannot be written or read.
    Results {
        /// The path or URL of the object, or of its folder.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The bytes of an object are not the rows of its unit.
    Damaged {
        /// The object.
        name: String,
        /// The reason.
        reason: String,
    },
}

impl Error {
    pub(crate) fn damaged(name: &str, reason: impl fmt::Display) -> Self {
        Error::Damaged { name: name.to_string(), reason: reason.to_string() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Search(error) => error.fmt(f),
            Error::Request(reason) => f.write_str(reason),
            Error::Changed { name } => write!(
                f,
                "{name}: changed since it was cut into units, and rows of two versions are not \
                 mixed; run the command again"
            ),
            Error::Results { path, error } => {
                write!(f, "{}: cannot store rows there: {error}", path.display())
            }
            Error::Damaged { name, reason } => {
                write!(f, "{name}: does not hold the rows of this unit ({reason}); remove it")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Search(error) => Some(error),
            Error::Results { error, .. } => Some(error),
            Error::Request(_) | Error::Changed { .. } | Error::Damaged { .. } => None,
        }
    }
}

impl From<quarrier::Error> for Error {
    fn from(error: quarrier::Error) -> Self {
        Error::Search(error)
    }
}

impl From<quarrier_core::Error> for Error {
    fn from(error: quarrier_core::Error) -> Self {
        Error::Search(error.into())
    }
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
