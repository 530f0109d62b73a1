//! The errors of a log. Damage is not an error: the reader reports and skips it.

use std::fmt;
use std::io;
use std::sync::Arc;

/// The reasons why opening, reading or writing a log fails.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// Another writer holds the folder.
    Locked {
        /// The lock file.
        path: String,
        /// The process that holds it, if known.
        pid: Option<u32>,
    },
    /// The operating system reported an error.
    Io {
        /// The path of the file or folder.
        path: String,
        /// The operation that failed, for example `read at byte 4096`.
        what: String,
        /// The operating system's error.
        error: Arc<io::Error>,
    },
    /// There is no space for another segment. None of the refused batches is in the log. Reading continues,
    /// and writes succeed again once there is space.
    Full {
        /// The file that found no space.
        path: String,
        /// The operating system's error.
        error: Arc<io::Error>,
    },
    /// A write or sync failed, so the log accepts no more writes until it is opened again. Only then is it
    /// known whether the failed group is on disk.
    Stopped {
        /// The operation that failed, and why.
        reason: String,
    },
    /// The log was closed.
    Closed,
    /// A batch that is too large for a segment.
    TooLarge {
        /// The length in bytes, as stored.
        bytes: u64,
        /// The maximum length in bytes.
        bytes_max: u64,
    },
    /// An invalid batch, such as one without messages.
    Invalid {
        /// Why it is invalid.
        reason: &'static str,
    },
    /// A batch whose predecessor by the same publisher is not in the log.
    Gap {
        /// The sequence of the publisher's last batch in the log; 0 without any.
        last: u64,
        /// The sequence of the refused batch.
        sequence: u64,
    },
    /// Retention has removed the requested messages.
    Gone {
        /// The requested mark.
        mark: u64,
        /// The oldest mark in the log.
        oldest: u64,
    },
    /// The payload of a batch matches its checksum but contradicts its header.
    Payload {
        /// The mark of the batch's first message.
        mark: u64,
        /// The contradiction.
        reason: String,
    },
}

impl Error {
    pub(crate) fn io(path: impl Into<String>, what: impl Into<String>, error: io::Error) -> Self {
        Error::Io { path: path.into(), what: what.into(), error: Arc::new(error) }
    }
}

/// Returns whether the error means a full disk rather than a defect.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// Returns the system's message without Rust's `(os error N)`.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.rfind(" (os error ").map_or_else(|| text.clone(), |at| text[..at].to_string())
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Locked { path, pid: Some(pid) } => write!(
                f,
                "{path}: process {pid} writes to this folder; stop it first, or use another folder"
            ),
            Error::Locked { path, pid: None } => write!(
                f,
                "{path}: another process writes to this folder; stop it first, or use another folder"
            ),
            Error::Io { path, what, error } => write!(f, "{path}: cannot {what}: {}", plain(error)),
            Error::Full { path, error } => write!(
                f,
                "{path}: no space for the log to grow: {}; free some space and send again \
                 (reads continue)",
                plain(error)
            ),
            Error::Stopped { reason } => write!(
                f,
                "the log accepts no more writes: {reason}; check the disk, then open the log again \
                 (reads continue)"
            ),
            Error::Closed => f.write_str("the log is closed; open it again to write"),
            Error::TooLarge { bytes, bytes_max } => write!(
                f,
                "a batch of {bytes} bytes is too large, at most {bytes_max} fit; send it in parts"
            ),
            Error::Invalid { reason } => write!(f, "invalid batch: {reason}"),
            Error::Gap { last, sequence } => write!(
                f,
                "batch {sequence} of a publisher does not follow its last one in the log, {last}; \
                 send the batches between them first"
            ),
            Error::Gone { mark, oldest } => write!(
                f,
                "retention has removed the message of mark {mark}; the oldest mark is {oldest}"
            ),
            Error::Payload { mark, reason } => {
                write!(f, "the batch of mark {mark} cannot be decoded: {reason}")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { error, .. } | Error::Full { error, .. } => Some(error.as_ref()),
            _ => None,
        }
    }
}

/// Shorthand for results of this module.
pub type Result<T> = std::result::Result<T, Error>;
