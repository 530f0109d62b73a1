//! Reasons for rejecting messages.

use std::fmt;
use std::sync::Mutex;

use quarrier_core::sync::lock;

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

    /// Makes the fault that another process of the same version reports. Keeps up to 256 distinct reasons for
    /// ever; there are fewer.
    pub fn reported(at: usize, what: &str) -> Self {
        static KNOWN: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
        let mut known = lock(&KNOWN);
        let what = match known.iter().find(|known| **known == what) {
            Some(what) => what,
            None if known.len() >= REASONS_MAX => "it does not parse",
            None => {
                let what: &'static str = Box::leak(what.into());
                known.push(what);
                what
            }
        };
        Fault { at, what }
    }
}

/// Maximum number of reasons of other processes that are kept.
const REASONS_MAX: usize = 256;

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} bytes into the message", self.what, self.at)
    }
}

impl std::error::Error for Fault {}
