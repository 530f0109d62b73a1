//! Reasons for rejecting messages.

use std::fmt;

/// Why a message was rejected, and where in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The offset in the message, in bytes.
    pub at: usize,
    /// The reason.
    pub what: &'static str,
}

impl Fault {
    pub(crate) fn new(at: usize, what: &'static str) -> Self {
        Fault { at, what }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} bytes into the message", self.what, self.at)
    }
}

impl std::error::Error for Fault {}
