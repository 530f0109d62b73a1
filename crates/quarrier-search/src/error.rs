//! The one error type of this crate.

use std::fmt;

/// Why a pattern or a set of patterns is invalid, or cannot be searched for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A pattern is invalid.
    Pattern {
        /// The pattern as written.
        pattern: String,
        /// Why it is invalid, and what to try.
        reason: String,
    },
    /// A line of a pattern file is invalid.
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// Why it is invalid, and what to try.
        reason: String,
    },
    /// The set as a whole is invalid: empty, or too large.
    Set(String),
    /// An engine that does not exist, or that cannot serve these patterns or this machine.
    Engine(String),
    /// The `stop` flag ended the parsing or compiling of the set.
    Stopped,
    /// A device cannot search for the set.
    Device(quarrier_gpu::Error),
}

impl Error {
    pub(crate) fn pattern(pattern: &str, reason: impl Into<String>) -> Self {
        Error::Pattern { pattern: pattern.to_string(), reason: reason.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Pattern { pattern, reason } => write!(f, "pattern '{pattern}': {reason}"),
            Error::Line { line, reason } => write!(f, "line {line}: {reason}"),
            Error::Stopped => f.write_str("interrupted while the patterns were compiled"),
            Error::Device(error) => error.fmt(f),
            Error::Set(reason) | Error::Engine(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for Error {}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
