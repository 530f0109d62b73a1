//! Reads a log from a mark on: intact batches, damage, and the end.

use std::path::Path;
use std::sync::Arc;

use super::batch::{ABANDONED, CONTINUES, Encoding, Header, MORE};
use super::disk::{Disk, RealDisk};
use super::entry::{Entry, Event};
use super::error::{Error, Result};
use super::steps::{Horizon, Last, LogItem, Steps};

/// The folder of the segments in a data folder.
pub(crate) const LOG_FOLDER: &str = "log";

/// Reads a log and verifies the checksum of every batch. Uses a buffer of 4 MiB and memory for one batch.
///
/// A reader changes nothing, so it may read a log that is being written. Unacknowledged messages may then be
/// missing or appear torn; [`Log::follow`](super::Log::follow) waits for them.
///
/// ```
/// use quarrier_messages::log::{Event, Reader};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # quarrier_messages::log::Log::open(folder.path())?.close()?;
/// let mut reader = Reader::open(folder.path(), 1)?;
/// while let Some(event) = reader.next_event()? {
///     match event {
///         Event::Batch(batch) => println!("{} messages", batch.messages()),
///         Event::Damage(damage) => eprintln!("{damage}"),
///         _ => {}
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Reader {
    steps: Steps,
    /// The reader skips batches before this mark.
    from: u64,
    chain: Option<Chain>,
    /// An event found after the one just returned.
    waiting: Option<Event>,
    last_time_us: i64,
}

/// A chain of batches that is being read.
#[derive(Debug, Clone, Copy)]
struct Chain {
    /// Whether its last batch exists, so that all of them count.
    is_finished: bool,
    first_mark: u64,
}

impl Reader {
    /// Opens the log of the data folder `folder` at the message with mark `from`, or at the oldest existing
    /// one; 1 is the first message ever.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open(folder: &Path, from: u64) -> Result<Self> {
        let folder = folder.join(LOG_FOLDER);
        let disk = RealDisk::open(&folder)
            .map_err(|error| Error::io(folder.display().to_string(), "open the log", error))?;
        Reader::of(Arc::new(disk), from)
    }

    /// Like [`Reader::open`], for any disk.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn of(disk: Arc<dyn Disk>, from: u64) -> Result<Self> {
        Reader::within(disk, from, None)
    }

    pub(super) fn within(disk: Arc<dyn Disk>, from: u64, horizon: Option<Horizon>) -> Result<Self> {
        let steps = Steps::new(disk, from, horizon)?;
        Ok(Reader { steps, from, chain: None, waiting: None, last_time_us: i64::MIN })
    }

    /// Returns the next event; None at the end of the log.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be opened. Unreadable bytes are damage.
    pub fn next_event(&mut self) -> Result<Option<Event>> {
        loop {
            if let Some(event) = self.waiting.take() {
                return Ok(Some(event));
            }
            match self.steps.step()? {
                None => return Ok(self.end_chain(self.steps.expected())),
                Some(LogItem::Damage(damage)) => return Ok(Some(Event::Damage(damage))),
                Some(LogItem::Cut(cut)) => return Ok(Some(Event::Cut(cut))),
                Some(LogItem::Batch { header, place, stored }) => {
                    self.last_time_us = self.last_time_us.max(header.time_us);
                    let ended =
                        if header.has(CONTINUES) { None } else { self.end_chain(header.mark) };
                    let is_shown = self.is_finished(&header)?
                        && header.encoding != Encoding::Note
                        && header.next_mark() > self.from;
                    if is_shown {
                        let place = (self.steps.segment(), place);
                        self.waiting = Some(Event::Batch(Entry::new(header, place, stored)));
                    }
                    if ended.is_some() {
                        return Ok(ended);
                    }
                }
            }
        }
    }

    /// Ends the chain at `mark`. Returns an event if its last batch never arrived.
    fn end_chain(&mut self, mark: u64) -> Option<Event> {
        let chain = self.chain.take().filter(|chain| !chain.is_finished)?;
        Some(Event::Unfinished { marks: chain.first_mark..mark })
    }

    /// Returns whether the batch counts: if it belongs to no chain, or if its chain has its last batch.
    fn is_finished(&mut self, header: &Header) -> Result<bool> {
        if !header.has(CONTINUES) && !header.has(MORE) {
            return Ok(true);
        }
        let chain = match self.chain {
            Some(chain) => chain,
            None => Chain {
                is_finished: !header.has(MORE) || is_finished_later(self.steps.ahead())?,
                first_mark: header.mark,
            },
        };
        self.chain = header.has(MORE).then_some(chain);
        Ok(chain.is_finished)
    }

    /// Returns the mark of the next message, once the reader has reached the end.
    pub fn next_mark(&self) -> u64 {
        self.steps.next_mark()
    }

    /// Returns the first mark of the oldest segment; None without any.
    pub fn oldest_mark(&self) -> Option<u64> {
        self.steps.oldest_mark()
    }

    pub(super) fn last(&self) -> Option<&Last> {
        self.steps.last()
    }

    pub(super) fn last_time_us(&self) -> i64 {
        self.last_time_us
    }

    pub(super) fn extend(&mut self, horizon: Horizon) -> Result<()> {
        self.steps.extend(horizon)
    }
}

/// Returns whether the last batch of a chain that begins before `steps` follows. If damage may have destroyed
/// it, the rest of the chain counts as finished: one bad block must not lose the whole chain.
fn is_finished_later(mut steps: Steps) -> Result<bool> {
    let mut is_damaged = false;
    loop {
        match steps.step()? {
            None => return Ok(is_damaged),
            Some(LogItem::Cut(_)) => return Ok(false),
            Some(LogItem::Damage(damage)) => is_damaged |= damage.loses_messages(),
            Some(LogItem::Batch { header, .. }) if !header.has(CONTINUES) => {
                return Ok(is_damaged && !header.has(ABANDONED));
            }
            Some(LogItem::Batch { header, .. }) if !header.has(MORE) => return Ok(true),
            Some(LogItem::Batch { .. }) => {}
        }
    }
}
