//! What can go wrong with a log. Damage is no error: it is reported and read over.

use std::fmt;
use std::io;
use std::sync::Arc;

/// Why a log could not be opened, read or written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// Another writer has the folder.
    Locked {
        /// The lock file.
        path: String,
        /// The process that holds it, where the file says so.
        pid: Option<u32>,
    },
    /// The operating system refused.
    Io {
        /// The path of the file or folder.
        path: String,
        /// What was tried, for example `read at byte 4096`.
        what: String,
        /// The operating system's answer.
        error: Arc<io::Error>,
    },
    /// No room is left for another segment. Nothing of what was refused is in the log; reads go on,
    /// and writes succeed again as soon as there is room.
    Full {
        /// The file that found no room.
        path: String,
        /// The operating system's answer.
        error: Arc<io::Error>,
    },
    /// A write or sync failed, so no more is written until the log is opened anew. Whether the group
    /// that failed is on disk is only known then.
    Stopped {
        /// What failed.
        reason: String,
    },
    /// The log was closed.
    Closed,
    /// A batch that no segment holds.
    TooLarge {
        /// Its length in bytes, as stored.
        bytes: u64,
        /// The most that fits.
        bytes_max: u64,
    },
    /// A batch that makes no sense, such as one without messages.
    Invalid {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A batch that is to follow one of its publisher that the log did not take.
    Gap {
        /// The sequence of the publisher's last batch in the log; 0 where there is none.
        last: u64,
        /// The sequence of this one.
        sequence: u64,
    },
    /// Messages that retention has removed were asked for.
    Gone {
        /// The mark asked for.
        mark: u64,
        /// The oldest mark there is.
        oldest: u64,
    },
    /// The payload of a batch is whole, and is not what its header says.
    Payload {
        /// The mark of the batch's first message.
        mark: u64,
        /// What is wrong.
        reason: String,
    },
}

impl Error {
    pub(crate) fn io(path: impl Into<String>, what: impl Into<String>, error: io::Error) -> Self {
        Error::Io { path: path.into(), what: what.into(), error: Arc::new(error) }
    }
}

/// Whether the system has no room, rather than a defect.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// The system's words without Rust's `(os error N)`.
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
                "{path}: no room for the log to grow: {}; free some space and send again (reads go on)",
                plain(error)
            ),
            Error::Stopped { reason } => write!(
                f,
                "the log takes no more writes: {reason}; check the disk, then open the log again \
                 (reads go on)"
            ),
            Error::Closed => f.write_str("the log is closed; open it again to write"),
            Error::TooLarge { bytes, bytes_max } => write!(
                f,
                "a batch of {bytes} bytes is too large, at most {bytes_max} fit; send it in parts"
            ),
            Error::Invalid { reason } => write!(f, "the log takes no batch like this: {reason}"),
            Error::Gap { last, sequence } => write!(
                f,
                "batch {sequence} of a publisher does not follow its last one in the log, {last}; \
                 send the batches between them first"
            ),
            Error::Gone { mark, oldest } => write!(
                f,
                "messages from mark {mark} on are no longer kept; the oldest mark is {oldest}"
            ),
            Error::Payload { mark, reason } => {
                write!(f, "the batch of mark {mark} cannot be unpacked: {reason}")
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
