//! The error type of this crate: what failed, where, and what to try.

use std::fmt;
use std::io;
use std::ops::Range;

/// Why a source could not be opened, read or searched to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused an operation.
    Io {
        /// The path or name of the source.
        source_name: String,
        /// The operation, for example `open` or `read at byte 4096`.
        what: String,
        /// The operating system's answer.
        error: io::Error,
    },
    /// The path does not allow random access, for example because it is a folder.
    NotReadable {
        /// The path as given.
        source_name: String,
        /// Why it is unsuitable, and what to try.
        reason: String,
    },
    /// The source ended before the length it had when it was opened.
    Shrank {
        /// The path or name of the source.
        source_name: String,
        /// Length in bytes when it was opened.
        opened_bytes: u64,
        /// The offset at which the source ended.
        ended_at: u64,
    },
    /// A size, range or count is invalid.
    BadPlan(String),
    /// A kernel panicked; the other workers stopped.
    Panicked {
        /// The indexes that the kernel was to fill.
        range: Range<usize>,
        /// The panic's message.
        message: String,
    },
    /// There is less memory than requested.
    NoRoom {
        /// The requested memory, in bytes.
        asked_bytes: u64,
        /// The memory left, in bytes.
        left_bytes: u64,
        /// The tightest limit, for example a cgroup.
        limited_by: &'static str,
    },
}

impl Error {
    /// Wraps an operating-system error with the source's name and the operation.
    pub fn io(source_name: impl Into<String>, what: impl Into<String>, error: io::Error) -> Self {
        Error::Io { source_name: source_name.into(), what: what.into(), error }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { source_name, what, error } => {
                write!(f, "{source_name}: cannot {what}: {}", plain(error))
            }
            Error::NotReadable { source_name, reason } => write!(f, "{source_name}: {reason}"),
            Error::Shrank { source_name, opened_bytes, ended_at } => write!(
                f,
                "{source_name}: shrank while it was read: it had {opened_bytes} bytes when opened \
                 and ended at byte {ended_at}; copy it first, or read it when nothing writes to it"
            ),
            Error::BadPlan(text) => f.write_str(text),
            Error::Panicked { range, message } => write!(
                f,
                "the kernel panicked while it filled indexes {} to {}: {message}",
                range.start, range.end
            ),
            Error::NoRoom { asked_bytes, left_bytes, limited_by } => write!(
                f,
                "{asked_bytes} bytes of shared memory are not available: {limited_by} leaves \
                 {left_bytes}; request less, or work in parts"
            ),
        }
    }
}

/// Returns the system's message without Rust's `(os error N)` tail.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(at) => text[..at].to_string(),
        None => text,
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
