//! The one error type of this crate.

use std::fmt;

/// Why a device cannot do what was requested.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// There is no such device; the text names it.
    NoDevice(String),
    /// A kernel cannot be compiled.
    Compile {
        /// The device's name.
        device: String,
        /// The compiler's log.
        log: String,
    },
    /// The driver cannot allocate a buffer or pinned host memory.
    OutOfMemory {
        /// The device's name.
        device: String,
        /// The requested operation, and the driver's name of the failure.
        what: String,
    },
    /// The driver refused or failed; the device may be gone.
    Failed {
        /// The device's name.
        device: String,
        /// The operation, and the driver's name of the failure.
        what: String,
    },
    /// The arguments do not match the kernel's table of parameters: a mistake of the caller.
    Arguments(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoDevice(what) | Error::Arguments(what) => f.write_str(what),
            Error::Compile { device, log } => {
                write!(f, "{device}: cannot compile a kernel: {}", log.trim())
            }
            Error::OutOfMemory { device, what } => {
                write!(f, "{device}: not enough memory: {what}; try a smaller --buffer-size")
            }
            Error::Failed { device, what } => write!(f, "{device}: {what}"),
        }
    }
}

impl std::error::Error for Error {}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
