//! The error type of this crate.

/// An error of carving as a whole; damaged files are results, not errors.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The source failed as a whole.
    Source(quarrier_core::Error),
    /// A carved file could not be kept.
    Keep(std::io::Error),
    /// An invalid signature or an unknown type, with the reason.
    Signature(String),
    /// A folder into which files cannot be carved, with the reason.
    Folder(String),
}

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Source(error) => error.fmt(f),
            Error::Keep(error) => write!(f, "the carved files cannot be stored: {error}"),
            Error::Signature(text) | Error::Folder(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Source(error) => Some(error),
            Error::Keep(error) => Some(error),
            Error::Signature(_) | Error::Folder(_) => None,
        }
    }
}

impl From<quarrier_core::Error> for Error {
    fn from(error: quarrier_core::Error) -> Self {
        Error::Source(error)
    }
}
