//! Why a tree cannot be mounted.

use std::path::PathBuf;
use std::{fmt, io};

/// Why a tree cannot be mounted. Each variant displays as one line that says what to try.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The mount point cannot be used.
    MountPoint {
        /// The mount point.
        point: PathBuf,
        /// The reason, and what to try.
        reason: String,
    },
    /// `/dev/fuse` cannot be opened.
    Device {
        /// The system's error.
        error: io::Error,
    },
    /// The system refuses the mount.
    Refused {
        /// The mount point.
        point: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The handshake with the kernel fails, or no thread can be started.
    Session {
        /// The mount point.
        point: PathBuf,
        /// The error.
        error: io::Error,
    },
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::MountPoint { point, reason } => write!(f, "{}: {reason}", point.display()),
            Error::Device { error } => {
                let advice = match error.kind() {
                    io::ErrorKind::NotFound => {
                        "load the kernel module (modprobe fuse), or start the container with \
                         --device /dev/fuse"
                    }
                    io::ErrorKind::PermissionDenied => {
                        "become a user who may open it, or start the container with --device /dev/fuse"
                    }
                    _ => "load the kernel module (modprobe fuse)",
                };
                write!(f, "/dev/fuse: cannot open: {error}; {advice}")
            }
            Error::Refused { point, reason } => {
                write!(
                    f,
                    "{}: cannot mount here: {reason}; become root, install fusermount3 (package fuse3), \
                     or start the container with --cap-add SYS_ADMIN",
                    point.display()
                )
            }
            Error::Session { point, error } => {
                write!(f, "{}: cannot mount here: {error}", point.display())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Device { error } | Error::Session { error, .. } => Some(error),
            Error::MountPoint { .. } | Error::Refused { .. } => None,
        }
    }
}
