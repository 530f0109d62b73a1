//! The one error type of this crate: what, where, and what to try.

use std::fmt;
use std::io;

/// Why a remote source could not be opened or read. No text holds a query or a password.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The URL cannot be used.
    BadUrl {
        /// The URL, without its secrets.
        source_name: String,
        /// Why it is invalid.
        reason: String,
    },
    /// Settings that cannot be used: S3 credentials, a proxy, the system's certificates.
    Setup {
        /// Why it is invalid, and which setting.
        reason: String,
    },
    /// The server says that the object does not exist (404, 410).
    NotFound {
        /// The URL, without its secrets.
        source_name: String,
    },
    /// The server refuses (401, 403): credentials are missing, wrong or over their time.
    Denied {
        /// The URL, without its secrets.
        source_name: String,
        /// The HTTP status.
        status: u16,
    },
    /// The server answers with a status that trying again does not change.
    Status {
        /// The URL, without its secrets.
        source_name: String,
        /// The HTTP status.
        status: u16,
    },
    /// The server ignores ranges, and the object is too large to be kept whole.
    NoRanges {
        /// The URL, without its secrets.
        source_name: String,
        /// The most bytes that are kept whole.
        whole_bytes_max: u64,
    },
    /// No connection, after all attempts: unknown host, refused, no valid certificate.
    Unreachable {
        /// The URL, without its secrets.
        source_name: String,
        /// The error of the system or of TLS.
        reason: String,
    },
    /// The object is not the one that was opened any more: ETag, Last-Modified or length.
    Changed {
        /// The URL, without its secrets.
        source_name: String,
        /// The validator that changed.
        what: String,
    },
    /// A range could not be had, after all attempts; others may still be had.
    Failed {
        /// The URL, without its secrets.
        source_name: String,
        /// The offset of the first byte that is missing.
        offset: u64,
        /// How often it was tried.
        attempts: u32,
        /// The error of the last attempt.
        reason: String,
    },
    /// So many ranges in a row failed that the server is considered gone.
    Gone {
        /// The URL, without its secrets.
        source_name: String,
        /// The error of the last attempt.
        reason: String,
    },
    /// No request may be made ([`Options::offline`](crate::Options::offline)), and the cache does not have
    /// the object, or not these bytes of it.
    NotCached {
        /// The URL, without its secrets.
        source_name: String,
        /// The first byte that is missing; `None` if no part of the object is there.
        offset: Option<u64>,
    },
    /// The [`Remote`](crate::Remote) was dropped, or its stop flag was set.
    Closed {
        /// The URL, without its secrets.
        source_name: String,
    },
}

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The name of the source, where the error is about one.
    pub fn source_name(&self) -> Option<&str> {
        match self {
            Error::Setup { .. } => None,
            Error::BadUrl { source_name, .. }
            | Error::NotFound { source_name }
            | Error::Denied { source_name, .. }
            | Error::Status { source_name, .. }
            | Error::NoRanges { source_name, .. }
            | Error::Unreachable { source_name, .. }
            | Error::Changed { source_name, .. }
            | Error::Failed { source_name, .. }
            | Error::Gone { source_name, .. }
            | Error::NotCached { source_name, .. }
            | Error::Closed { source_name } => Some(source_name),
        }
    }

    /// Whether the error is about one range, so that others may still be read.
    pub fn is_of_a_range(&self) -> bool {
        matches!(self, Error::Failed { .. } | Error::NotCached { .. })
    }

    /// The error without the name of the source.
    pub fn reason(&self) -> String {
        match self {
            Error::BadUrl { reason, .. } | Error::Setup { reason } => reason.clone(),
            Error::NotFound { .. } => "the server has no such object (404)".to_string(),
            Error::Denied { status, .. } => format!(
                "the server refuses to give it ({status}); the credentials or the signed URL may \
                 be missing, wrong or over their time"
            ),
            Error::Status { status, .. } => format!("the server answers with status {status}"),
            Error::NoRanges { whole_bytes_max, .. } => format!(
                "the server ignores ranges, and the object has more than {whole_bytes_max} bytes; \
                 fetch it first, or pipe it to '-'"
            ),
            Error::Unreachable { reason, .. } => format!("cannot connect: {reason}"),
            Error::Changed { what, .. } => {
                format!("changed on the server since it was opened ({what}); open it again")
            }
            Error::Failed { offset, attempts, reason, .. } => {
                let times = if *attempts == 1 { "once" } else { "times" };
                let count = if *attempts == 1 { String::new() } else { format!("{attempts} ") };
                format!("tried {count}{times} at byte {offset}: {reason}")
            }
            Error::Gone { reason, .. } => {
                format!("the server fails again and again: {reason}; try again later")
            }
            Error::NotCached { offset, .. } => {
                let missing = offset.map_or_else(|| "it".to_string(), |at| format!("byte {at}"));
                format!(
                    "{missing} is not in the cache, and offline nothing is fetched; 'quarrier cache \
                     fill' fetches it"
                )
            }
            Error::Closed { .. } => "the connection was given up".to_string(),
        }
    }

    fn kind(&self) -> io::ErrorKind {
        match self {
            Error::BadUrl { .. } | Error::Setup { .. } => io::ErrorKind::InvalidInput,
            Error::NotFound { .. } => io::ErrorKind::NotFound,
            Error::NotCached { offset: None, .. } => io::ErrorKind::NotFound,
            Error::NotCached { .. } => io::ErrorKind::Other,
            Error::Denied { .. } => io::ErrorKind::PermissionDenied,
            Error::NoRanges { .. } => io::ErrorKind::Unsupported,
            Error::Changed { .. } => io::ErrorKind::StaleNetworkFileHandle,
            Error::Failed { .. } => io::ErrorKind::Other,
            Error::Unreachable { .. } | Error::Gone { .. } | Error::Status { .. } => {
                io::ErrorKind::NotConnected
            }
            Error::Closed { .. } => io::ErrorKind::ConnectionAborted,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source_name() {
            Some(name) => write!(f, "{name}: {}", self.reason()),
            None => f.write_str(&self.reason()),
        }
    }
}

impl std::error::Error for Error {}

/// An [`Error`] as the payload of an [`io::Error`]; the code that reports it names the source.
#[derive(Debug)]
pub struct Unnamed(pub Error);

impl fmt::Display for Unnamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.reason())
    }
}

impl std::error::Error for Unnamed {}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        io::Error::new(error.kind(), Unnamed(error))
    }
}
