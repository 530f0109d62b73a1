//! The error type for EWF images.

use std::fmt;

/// Why an image could not be opened or verified.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A segment could not be opened or read.
    Source(quarrier_core::Error),
    /// Not an image, or one in an unsupported format.
    NotAnImage {
        /// The path or name of the segment.
        source_name: String,
        /// The actual format, and a remedy.
        reason: String,
    },
    /// The bytes are invalid.
    Damaged {
        /// The path or name of the segment.
        source_name: String,
        /// The offset in the segment, in bytes.
        offset: u64,
        /// Why they are invalid.
        reason: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Source(error) => error.fmt(f),
            Error::NotAnImage { source_name, reason } => write!(f, "{source_name}: {reason}"),
            Error::Damaged { source_name, offset, reason } => write!(
                f,
                "{source_name}: damaged at byte {offset}: {reason}; copy the image again from \
                 its source"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Source(error) => Some(error),
            _ => None,
        }
    }
}

impl From<quarrier_core::Error> for Error {
    fn from(error: quarrier_core::Error) -> Self {
        Error::Source(error)
    }
}

/// Converts an image error for callers that open any kind of source.
impl From<Error> for quarrier_core::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Source(error) => error,
            Error::NotAnImage { source_name, reason } => {
                quarrier_core::Error::NotReadable { source_name, reason }
            }
            Error::Damaged { source_name, offset, reason } => quarrier_core::Error::NotReadable {
                source_name,
                reason: format!(
                    "damaged at byte {offset}: {reason}; copy the image again from its source"
                ),
            },
        }
    }
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
