//! Errors.

use std::{fmt, io};

/// Why a partition table or a file system cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The source could not be read.
    Source(quarrier_core::Error),
    /// No supported file system was found, or one has impossible values.
    FileSystem {
        /// The path or name of the source.
        source_name: String,
        /// The offset in the source, in bytes.
        offset: u64,
        /// The fault: a value found there, or something missing.
        found: String,
    },
    /// Structures form a cycle, or exceed the number that any volume can have.
    TooMuch {
        /// The path or name of the source.
        source_name: String,
        /// Where the file system begins, in bytes.
        offset: u64,
        /// The structure in excess.
        found: String,
    },
    /// The callback that receives entries failed.
    Taken(io::Error),
}

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// The result of a read, or `None` if the bytes are damaged or cannot be read.
///
/// # Errors
/// All other errors, which stop the listing.
pub(crate) fn known<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(Error::Source(_) | Error::FileSystem { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Source(error) => error.fmt(f),
            Error::FileSystem { source_name, offset, found }
            | Error::TooMuch { source_name, offset, found } => {
                write!(f, "{source_name}: {found}, at byte {offset}")
            }
            Error::Taken(error) => write!(f, "entries cannot be passed on: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Source(error) => Some(error),
            Error::FileSystem { .. } | Error::TooMuch { .. } => None,
            Error::Taken(error) => Some(error),
        }
    }
}

impl From<quarrier_core::Error> for Error {
    fn from(error: quarrier_core::Error) -> Self {
        Error::Source(error)
    }
}
