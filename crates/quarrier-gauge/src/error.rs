//! The error type of this crate: the problem, where it is, and what to try.

use std::fmt;
use std::io;

/// The result of a measurement.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a measurement gave no reading.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused an operation.
    Io {
        /// The path, address or object of the operation.
        subject: String,
        /// The operation, for example `open` or `read at byte 4096`.
        what: String,
        /// The error of the operating system.
        error: io::Error,
    },
    /// A measurement computed, read or received wrong values.
    Wrong {
        /// The measurement.
        measurement: String,
        /// The actual and the expected result.
        reason: String,
    },
    /// The measurement needs more memory or disk space than is free.
    NoRoom {
        /// What needs the space, and where.
        subject: String,
        /// The space needed, in bytes.
        asked_bytes: u64,
        /// The space left, in bytes.
        left_bytes: u64,
    },
    /// The other side of a network measurement refused it, ended it, or does not speak the protocol.
    Peer {
        /// Its address.
        address: String,
        /// The violation, or the other side's message.
        reason: String,
    },
    /// A size, count or name that is not supported.
    BadRequest(String),
    /// A GPU device failed.
    Device(quarrier_gpu::Error),
    /// A thread of the measurement panicked.
    Panicked(String),
    /// The caller asked to stop.
    Stopped,
}

impl Error {
    /// Wraps an operating-system error with its subject and the operation.
    pub fn io(subject: impl Into<String>, what: impl Into<String>, error: io::Error) -> Self {
        Error::Io { subject: subject.into(), what: what.into(), error }
    }

    /// Makes the error for a wrong result.
    pub fn wrong(measurement: impl Into<String>, reason: impl Into<String>) -> Self {
        Error::Wrong { measurement: measurement.into(), reason: reason.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { subject, what, error } => write!(f, "{subject}: cannot {what}: {error}"),
            Error::Wrong { measurement, reason } => write!(
                f,
                "{measurement}: wrong result, so its time means nothing: {reason}; check the \
                 machine's memory"
            ),
            Error::NoRoom { subject, asked_bytes, left_bytes } => write!(
                f,
                "{subject}: {asked_bytes} bytes are needed and {left_bytes} are free; free some, \
                 or measure less"
            ),
            Error::Peer { address, reason } => write!(f, "{address}: {reason}"),
            Error::Device(error) => error.fmt(f),
            Error::BadRequest(text) => f.write_str(text),
            Error::Panicked(text) => write!(f, "a thread of the measurement panicked: {text}"),
            Error::Stopped => f.write_str("stopped before the measurement was done"),
        }
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
