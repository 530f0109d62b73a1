//! Cancels the compilation of a set, which may take many seconds.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// Becomes true to cancel; `None` if nobody can cancel.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted<'s> {
    stop: Option<&'s AtomicBool>,
}

impl<'s> Wanted<'s> {
    pub(crate) fn until(stop: &'s AtomicBool) -> Self {
        Wanted { stop: Some(stop) }
    }

    /// Fails if the compilation is cancelled. Called once for each pattern.
    ///
    /// # Errors
    /// [`Error::Stopped`]
    #[inline]
    pub(crate) fn check(self) -> Result<()> {
        match self.stop {
            Some(stop) if stop.load(Ordering::Relaxed) => Err(Error::Stopped),
            _ => Ok(()),
        }
    }
}
