//! Reads a log while it grows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::disk::Disk;
use super::entry::Event;
use super::error::{Error, Result};
use super::reader::Reader;
use super::steps::Horizon;
use super::writer::Shared;

/// Reads a log from a mark on and waits for new messages. A follower sees only durable messages, reads at its
/// own pace, and delays no writer.
pub struct Follower {
    shared: Arc<Shared>,
    reader: Reader,
    seen: Option<Horizon>,
}

impl Follower {
    pub(super) fn new(disk: Arc<dyn Disk>, shared: Arc<Shared>, from: u64) -> Result<Self> {
        let seen = shared.queue.horizon();
        let start = Horizon { segment: 0, salt: 0, end: 0 };
        let reader = Reader::within(disk, from, Some(seen.unwrap_or(start)))?;
        match reader.oldest_mark() {
            Some(oldest) if from < oldest => Err(Error::Gone { mark: from, oldest }),
            _ => Ok(Follower { shared, reader, seen }),
        }
    }

    /// Returns the next event; None if nothing arrived within `patience`, or if the log is closed and was
    /// read to its end.
    ///
    /// # Errors
    /// [`Error::Io`], including when retention has removed the next messages.
    pub fn next_event(&mut self, patience: Duration) -> Result<Option<Event>> {
        let until = Instant::now() + patience;
        loop {
            if let Some(event) = self.reader.next_event()? {
                return Ok(Some(event));
            }
            let left = until.saturating_duration_since(Instant::now());
            let horizon = self.shared.queue.wait_for_growth(self.seen, left);
            match horizon.filter(|_| horizon != self.seen) {
                Some(grown) => {
                    self.reader.extend(grown)?;
                    self.seen = horizon;
                }
                None => return Ok(None),
            }
        }
    }
}
