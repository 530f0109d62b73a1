//! The state of a log that is open for writing, for monitoring.

use super::Log;
use super::error::Result;
use super::retain::length;
use super::steps::segments;

/// The state of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogState {
    /// The mark of the last durable message; 0 without any.
    pub last_mark: u64,
    /// Number of segments.
    pub segments: u64,
    /// Bytes of the segments, including space allocated in advance.
    pub bytes: u64,
    /// Whether a spare segment is ready; without one, the disk is full.
    pub has_room: bool,
    /// Why the log accepts no more writes; None while it does.
    pub stopped: Option<String>,
}

impl Log {
    /// Returns the state of the log. Lists its folder.
    ///
    /// # Errors
    /// [`Error::Io`](super::Error::Io).
    pub fn state(&self) -> Result<LogState> {
        let disk = self.disk();
        let segments = segments(disk)?;
        let mut bytes = 0;
        for (_, name) in &segments {
            bytes += length(disk, name)?;
        }
        Ok(LogState {
            last_mark: self.next_mark().saturating_sub(1),
            segments: segments.len() as u64,
            bytes,
            has_room: self.is_room_ready(),
            stopped: self.stopped().map(|error| error.to_string()),
        })
    }
}
