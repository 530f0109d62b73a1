//! The one error type of the facade: the problem, where it is, and what to try.

use std::path::PathBuf;
use std::{fmt, io};

use quarrier_carve::folder::REPORT;
use quarrier_messages::format::fix::DictionaryError;

/// Why a request failed.
///
/// Each variant displays as one line that names the source, the place and what to try.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// No file, or no object of a bucket, has this name.
    NotFound {
        /// The name as given.
        name: String,
    },
    /// The named source cannot be opened, or not in the requested way.
    Unsupported {
        /// The name, without passwords and signatures.
        name: String,
        /// The reason, and what to try.
        reason: String,
    },
    /// A range begins past the end of its source.
    Range {
        /// The source.
        name: String,
        /// The first byte of the range.
        start: u64,
        /// The length of the source in bytes.
        length: u64,
    },
    /// The request contradicts itself, or names a file that cannot be used.
    Request(String),
    /// A local source failed.
    Source(quarrier_core::Error),
    /// A remote source failed.
    Remote(quarrier_remote::Error),
    /// Patterns, an engine or a device cannot search.
    Search(quarrier_search::Error),
    /// A regex matched more bytes than it may.
    TooLong {
        /// The source.
        name: String,
        /// The pattern and the offset.
        error: quarrier_search::Error,
    },
    /// A rule is invalid.
    Rules(quarrier_rules::Error),
    /// A file system or a partition table cannot be read.
    Files(quarrier_files::Error),
    /// Carving failed.
    Carve(quarrier_carve::Error),
    /// Messages cannot be loaded.
    Messages(quarrier_messages::Error),
    /// A FIX data dictionary cannot be used.
    Dictionary {
        /// Its path.
        path: PathBuf,
        /// Why it is invalid.
        error: DictionaryError,
    },
    /// A condition is invalid.
    Condition {
        /// The location of the condition: `condition`, or a file and a line.
        place: String,
        /// Why it is invalid.
        error: quarrier_filter::Error,
    },
    /// No message has a requested column.
    NoColumn {
        /// The column's name as requested.
        name: String,
        /// The place, and what to try.
        reason: String,
    },
    /// A condition has no value for a message, as for a division by zero.
    NoValue {
        /// The source.
        name: String,
        /// The line of the message, from 1.
        line: u64,
        /// The offset of the message.
        offset: u64,
        /// The index of the condition, from 0, if there are several.
        condition: Option<usize>,
        /// The reason.
        fault: quarrier_filter::Fault,
    },
    /// A column has values of several types, and the source cannot be read again from its start, which
    /// a late change of type requires.
    Kinds {
        /// The source.
        name: String,
        /// Place and reason, and what to try.
        reason: String,
    },
    /// The list of rejected messages cannot be written.
    Rejects {
        /// The file of the list.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The machine cannot be measured.
    Gauge(quarrier_gauge::Error),
    /// The run was stopped, and has no result.
    Stopped {
        /// The source.
        name: String,
        /// Everything before this offset was read.
        offset: u64,
    },
    /// The receiver of rows refused more.
    Output(io::Error),
    /// A folder cannot be written.
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Carved files can no longer be written; earlier ones are complete.
    Write {
        /// The folder.
        folder: PathBuf,
        /// The number of complete files.
        files: u64,
        /// The system's error.
        error: io::Error,
        /// The error that prevented the completion of the folder's report, if that failed too.
        report: Option<io::Error>,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotFound { name } if quarrier_remote::is_bucket(name) => {
                write!(f, "{name}: no object of the bucket has such a name and any bytes")
            }
            Error::NotFound { name } => {
                write!(f, "{name}: no such file, and no file matches it as a glob")
            }
            Error::Unsupported { name, reason } => write!(f, "{name}: {reason}"),
            Error::Range { name, start, length } => write!(
                f,
                "{name}: the range begins at byte {start} but the source has {length} bytes"
            ),
            Error::Request(reason) => f.write_str(reason),
            Error::Source(error) => error.fmt(f),
            Error::Remote(error) => error.fmt(f),
            Error::Search(error) => error.fmt(f),
            Error::Rules(error) => error.fmt(f),
            Error::TooLong { name, error } => write!(f, "{name}: {error}"),
            Error::Carve(error) => error.fmt(f),
            Error::Files(error) => error.fmt(f),
            Error::Messages(error) => error.fmt(f),
            Error::Dictionary { path, error } => write!(f, "{}: {error}", path.display()),
            Error::Condition { place, error } => write!(f, "{place}: {error}"),
            Error::NoColumn { reason, .. } | Error::Kinds { reason, .. } => f.write_str(reason),
            Error::NoValue { name, line, offset, condition, fault } => {
                write!(f, "{name}: line {line}, byte {offset}: ")?;
                match condition {
                    None => f.write_str("the condition")?,
                    Some(place) => write!(f, "condition {}", place + 1)?,
                }
                write!(f, " has no value for this message: {fault}")
            }
            Error::Rejects { path, error } => {
                write!(f, "{}: cannot write the rejects: {error}", path.display())
            }
            Error::Gauge(error) => error.fmt(f),
            Error::Stopped { name, offset } => write!(f, "{name}: interrupted at byte {offset}"),
            Error::Output(error) => write!(f, "rows cannot be passed on: {error}"),
            Error::Folder { folder, error } => {
                write!(f, "{}: cannot write there: {error}", folder.display())
            }
            Error::Write { folder, files, error, report } => {
                write!(
                    f,
                    "{}: cannot write: {error}; {files} files are written and in {REPORT}; free \
                     some space, and --resume continues",
                    folder.display()
                )?;
                report.as_ref().map_or(Ok(()), |report| {
                    write!(f, "; the report cannot be written either: {report}")
                })
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::NotFound { .. }
            | Error::Unsupported { .. }
            | Error::Range { .. }
            | Error::Request(_)
            | Error::NoColumn { .. }
            | Error::NoValue { .. }
            | Error::Kinds { .. }
            | Error::Stopped { .. } => None,
            Error::Source(error) => Some(error),
            Error::Remote(error) => Some(error),
            Error::Search(error) | Error::TooLong { error, .. } => Some(error),
            Error::Carve(error) => Some(error),
            Error::Rules(error) => Some(error),
            Error::Files(error) => Some(error),
            Error::Messages(error) => Some(error),
            Error::Dictionary { error, .. } => Some(error),
            Error::Condition { error, .. } => Some(error),
            Error::Gauge(error) => Some(error),
            Error::Rejects { error, .. } | Error::Output(error) => Some(error),
            Error::Folder { error, .. } | Error::Write { error, .. } => Some(error),
        }
    }
}

impl From<quarrier_core::Error> for Error {
    fn from(error: quarrier_core::Error) -> Self {
        Error::Source(error)
    }
}

impl From<quarrier_remote::Error> for Error {
    fn from(error: quarrier_remote::Error) -> Self {
        Error::Remote(error)
    }
}

impl From<quarrier_search::Error> for Error {
    fn from(error: quarrier_search::Error) -> Self {
        Error::Search(error)
    }
}

impl From<quarrier_carve::Error> for Error {
    fn from(error: quarrier_carve::Error) -> Self {
        Error::Carve(error)
    }
}

impl From<quarrier_files::Error> for Error {
    fn from(error: quarrier_files::Error) -> Self {
        match error {
            quarrier_files::Error::Source(error) => Error::Source(error),
            error => Error::Files(error),
        }
    }
}

impl From<quarrier_messages::Error> for Error {
    fn from(error: quarrier_messages::Error) -> Self {
        Error::Messages(error)
    }
}

impl From<quarrier_gauge::Error> for Error {
    fn from(error: quarrier_gauge::Error) -> Self {
        Error::Gauge(error)
    }
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
