//! The error type of this crate: what failed, where, and what to try.

use std::fmt;
use std::io;

/// Why a remote source could not be opened or read. No message contains a query or a password.
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
    /// A setting cannot be used: S3 credentials, a proxy, the system's certificates.
    Setup {
        /// The setting, and why it is invalid.
        reason: String,
    },
    /// The server reports that the object does not exist (404, 410).
    NotFound {
        /// The URL, without its secrets.
        source_name: String,
    },
    /// The server denies access (401, 403): credentials are missing, wrong or expired.
    Denied {
        /// The URL, without its secrets.
        source_name: String,
        /// The HTTP status.
        status: u16,
    },
    /// The server responds with a status that retrying does not change.
    Status {
        /// The URL, without its secrets.
        source_name: String,
        /// The HTTP status.
        status: u16,
    },
    /// The server ignores ranges, and the object is too large to download as a whole.
    NoRanges {
        /// The URL, without its secrets.
        source_name: String,
        /// The maximum size of an object to download as a whole, in bytes.
        whole_bytes_max: u64,
    },
    /// No connection after all attempts: unknown host, connection refused, invalid certificate.
    Unreachable {
        /// The URL, without its secrets.
        source_name: String,
        /// The error of the system or of TLS.
        reason: String,
    },
    /// The object is no longer the one that was opened: its ETag, Last-Modified or length differs.
    Changed {
        /// The URL, without its secrets.
        source_name: String,
        /// The validator that changed.
        what: String,
    },
    /// A range could not be fetched after all attempts; others may still succeed.
    Failed {
        /// The URL, without its secrets.
        source_name: String,
        /// The offset of the first missing byte.
        offset: u64,
        /// The number of attempts.
        attempts: u32,
        /// The error of the last attempt.
        reason: String,
    },
    /// So many consecutive ranges failed that the server is considered gone.
    Gone {
        /// The URL, without its secrets.
        source_name: String,
        /// The error of the last attempt.
        reason: String,
    },
    /// Requests are not allowed ([`Options::offline`](crate::Options::offline)), and the object, or
    /// this part of it, is not in the cache.
    NotCached {
        /// The URL, without its secrets.
        source_name: String,
        /// The first missing byte; `None` if no part of the object is cached.
        offset: Option<u64>,
    },
    /// The bucket of a listing, or of a new object, does not exist.
    NoBucket {
        /// The URL.
        source_name: String,
    },
    /// The server refuses to list the objects of a bucket (401, 403).
    NotListed {
        /// The URL.
        source_name: String,
        /// The HTTP status.
        status: u16,
    },
    /// The server's response about objects of a bucket cannot be used.
    Unusable {
        /// The URL.
        source_name: String,
        /// Why it cannot be used.
        reason: String,
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
    /// The name of the source, if the error is about one.
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
            | Error::NoBucket { source_name }
            | Error::NotListed { source_name, .. }
            | Error::Unusable { source_name, .. }
            | Error::Closed { source_name } => Some(source_name),
        }
    }

    /// Whether the error concerns a single range, so that others may still be read.
    pub fn concerns_range(&self) -> bool {
        matches!(self, Error::Failed { .. } | Error::NotCached { .. })
    }

    /// The error message without the name of the source.
    pub fn reason(&self) -> String {
        match self {
            Error::BadUrl { reason, .. }
            | Error::Setup { reason }
            | Error::Unusable { reason, .. } => reason.clone(),
            Error::NotFound { .. } => "the server has no such object (404)".to_string(),
            Error::Denied { status, .. } => format!(
                "the server denies access ({status}); the credentials or the signed URL may \
                 be missing, wrong or expired"
            ),
            Error::Status { status, .. } => format!("the server responds with status {status}"),
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
                format!("the server keeps failing: {reason}; try again later")
            }
            Error::NotCached { offset, .. } => {
                let missing = offset.map_or_else(|| "it".to_string(), |at| format!("byte {at}"));
                format!(
                    "{missing} is not in the cache, and nothing is fetched offline; 'quarrier cache \
                     fill' fetches it"
                )
            }
            Error::NoBucket { .. } => {
                "the server has no such bucket (404); check its name, and the \
                                       region and the address of the store"
                    .to_string()
            }
            Error::NotListed { status, .. } => format!(
                "the server refuses to list the bucket ({status}); the credentials may be missing, \
                 wrong or expired, or lack the permission to list"
            ),
            Error::Closed { .. } => "the connection was closed on request".to_string(),
        }
    }

    fn kind(&self) -> io::ErrorKind {
        match self {
            Error::BadUrl { .. } | Error::Setup { .. } => io::ErrorKind::InvalidInput,
            Error::NotFound { .. } | Error::NoBucket { .. } => io::ErrorKind::NotFound,
            Error::NotCached { offset: None, .. } => io::ErrorKind::NotFound,
            Error::NotCached { .. } => io::ErrorKind::Other,
            Error::Denied { .. } | Error::NotListed { .. } => io::ErrorKind::PermissionDenied,
            Error::Unusable { .. } => io::ErrorKind::InvalidData,
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

/// An [`Error`] as the payload of an [`io::Error`], whose message lacks the source name; the caller
/// adds it.
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
