//! The error type of this crate.

use std::fmt;

use quarrier_core::panics::Panicked;

/// Why rules cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A rule is invalid.
    Rule {
        /// The name of the file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1, in characters.
        column: usize,
        /// Why the rule is invalid, and what to try.
        reason: String,
    },
    /// A file of rules is invalid, or all files together exceed a limit.
    File {
        /// The name of the file.
        file: String,
        /// Why the file is invalid, and what to try.
        reason: String,
    },
    /// The `stop` flag ended the compilation.
    Stopped,
    /// The system could not start a thread.
    Thread(String),
    /// The YARA library, boreal, panicked.
    Internal(Panicked),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Rule { file, line, column, reason } => {
                write!(f, "{file}: line {line}, column {column}: {reason}")
            }
            Error::File { file, reason } => write!(f, "{file}: {reason}"),
            Error::Stopped => f.write_str("interrupted while the rules were compiled"),
            Error::Thread(reason) => write!(f, "the rules cannot be compiled: {reason}"),
            Error::Internal(panicked) => {
                write!(f, "the rules cannot be compiled: {panicked}; leave out the newest rules")
            }
        }
    }
}

impl std::error::Error for Error {}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
