//! Gathers messages that arrive piece by piece, such as from a client, checks them meanwhile, and appends all
//! or none once they are complete.
//!
//! ```text
//!  push ─→ checked, piece by piece ─→ spool (memory, then a file) ─→ one batch, or a chain of them
//! ```
//!
//! A chain blocks all other writers of the log until it ends, so it must not wait for a client.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::batches::Batches;
use super::definition::Definition;
use super::resume::publisher;
use super::store::Store;
use crate::log::{self, Batch, Committed, Log, Pending, Publication};
use crate::{Error, Format, Reject, Result};

/// Approximate length of a batch in bytes.
const BATCH_BYTES: u64 = 1 << 20;

/// Distinguishes the publishers of gathered messages from those of loaded sources.
const GENERATION: u32 = u32::MAX;

/// Options for appending gathered messages.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct IntakeOptions {
    /// The messages' format; None: detect it from their first bytes.
    pub format: Option<Format>,
    /// Columns to which the messages must conform, in place of the table's declared ones. Ignored if the
    /// table has a key.
    pub definition: Option<Arc<Definition>>,
    /// Whether one message that is invalid or does not conform rejects all of them.
    pub is_whole: bool,
    /// The messages' publisher and its sequence number. If the publisher has sent this number, or a greater
    /// one, before, the messages are skipped.
    pub publication: Option<(String, u64)>,
}

/// Messages that are still arriving. Dropping it discards them.
pub struct Intake {
    table: u32,
    is_whole: bool,
    publication: Option<Publication>,
    batches: Batches,
    /// The error that rejects all messages, however many are still to come.
    failure: Option<Error>,
}

impl Intake {
    /// Prepares for messages for a table with this definition.
    ///
    /// # Errors
    /// If the store is not writable.
    pub(super) fn new(
        store: &Store,
        (table, definition): (u32, Option<Arc<Definition>>),
        options: IntakeOptions,
    ) -> Result<Self> {
        let publication = options.publication.map(|(name, sequence)| Publication {
            publisher: publisher(table, &name, GENERATION),
            sequence,
            source_offset: 0,
        });
        // All messages must conform to the definition of a key.
        let keyed = definition.clone().filter(|definition| !definition.key().is_empty());
        let definition = keyed.or(options.definition).or(definition);
        let batch_bytes = store.writer()?.batch_bytes(BATCH_BYTES);
        let spools = (store.spool(), store.spool());
        let batches = Batches::new(options.format, definition, spools, batch_bytes);
        Ok(Intake { table, is_whole: options.is_whole, publication, batches, failure: None })
    }

    /// Appends bytes, which may end within a message, and checks the messages that are complete.
    ///
    /// Messages that are compressed, or have a format that the log does not store, are discarded: the error
    /// is that of [`Store::take_in`](super::Store::take_in).
    ///
    /// # Errors
    /// [`log::Error::Full`] or [`log::Error::Io`], if the bytes exceed their share of memory and cannot be
    /// written to disk. Then none of the messages can be appended.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        if self.failure.is_some() {
            return Ok(());
        }
        match self.batches.push(bytes) {
            Err(error @ Error::Log(_)) => {
                self.failure = Some(Error::Cancelled);
                Err(error)
            }
            done => {
                self.failure = done.err();
                Ok(())
            }
        }
    }

    /// Returns whether `more` bytes can wait in memory, so that taking them does not block.
    pub fn is_in_memory(&self, more: usize) -> bool {
        self.failure.is_some() || self.batches.can_wait(more)
    }
}

pub(super) fn failed(error: io::Error) -> Error {
    let path = "messages on their way into the log".to_string();
    Error::Log(match log::is_full(&error) {
        true => log::Error::Full { path, error: Arc::new(error) },
        false => log::Error::io(path, "put them aside", error),
    })
}

/// Checked messages that, if there are any, are on their way to the disk.
#[must_use = "messages that nobody waits for may not be on the disk"]
pub struct PendingAppend {
    pub(super) taken: AppendResult,
    pub(super) on_its_way: Option<OnItsWay>,
}

pub(super) enum OnItsWay {
    One(Pending),
    All(Committed),
}

/// The result of appending messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AppendResult {
    /// The messages' marks; empty if none was appended.
    pub marks: Range<u64>,
    /// Number of rejected messages.
    pub rejected: u64,
    /// The first rejected message.
    pub first: Option<Reject>,
    /// Whether the publisher had sent the messages before. They are not appended twice.
    pub is_duplicate: bool,
}

impl PendingAppend {
    /// Returns the first rejected message.
    pub fn first(&self) -> Option<&Reject> {
        self.taken.first.as_ref()
    }

    /// Waits until the messages are on the disk.
    ///
    /// # Errors
    /// [`log::Error::Full`], [`log::Error::Stopped`]: none of the messages counts, unless the log turns out
    /// to have them when it is opened again.
    pub async fn durable(self) -> Result<AppendResult> {
        let PendingAppend { mut taken, on_its_way } = self;
        let committed = match on_its_way {
            None => return Ok(taken),
            Some(OnItsWay::All(committed)) => committed,
            Some(OnItsWay::One(pending)) => pending.await?,
        };
        let messages = taken.marks.end - taken.marks.start;
        taken.is_duplicate = committed.is_duplicate;
        taken.marks = match committed.is_duplicate {
            true => 0..0,
            false => committed.marks.end.saturating_sub(messages)..committed.marks.end,
        };
        Ok(taken)
    }
}

impl Intake {
    /// Checks the last messages. Returns the result, with as many marks as there are messages to append.
    fn finished(&mut self) -> Result<AppendResult> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.batches.finish()?;
        let is_refused = self.is_whole && self.batches.rejected > 0;
        Ok(AppendResult {
            marks: 0..if is_refused { 0 } else { self.batches.messages },
            rejected: self.batches.rejected,
            first: self.batches.first.clone(),
            is_duplicate: false,
        })
    }
}

/// Checks the last of the gathered messages and sends all to the log. Returns once they are in the log's
/// queue or, if they take more than one batch, on the disk.
pub(super) fn take(log: &Log, mut intake: Intake, stop: &AtomicBool) -> Result<PendingAppend> {
    let taken = intake.finished()?;
    if stop.load(Ordering::Relaxed) {
        return Err(Error::Cancelled);
    }
    if taken.marks.is_empty() {
        return Ok(PendingAppend { taken, on_its_way: None });
    }
    let batches = intake.batches.of_table(intake.table);
    let on_its_way = Some(send(log, batches, intake.publication)?);
    Ok(PendingAppend { taken, on_its_way })
}

/// Like `take`, but returns the messages if they are many, or if the log's queue is full.
pub(super) fn take_now(
    log: &Log,
    mut intake: Box<Intake>,
) -> Result<std::result::Result<PendingAppend, Box<Intake>>> {
    if !intake.batches.is_small() {
        return Ok(Err(intake));
    }
    let taken = intake.finished()?;
    if taken.marks.is_empty() {
        return Ok(Ok(PendingAppend { taken, on_its_way: None }));
    }
    let batch = only(&mut intake.batches.of_table(intake.table), intake.publication)?;
    Ok(match log.send_now(batch)? {
        Some(pending) => Ok(PendingAppend { taken, on_its_way: Some(OnItsWay::One(pending)) }),
        None => Err(intake),
    })
}

/// Sends batches to the log: a single one without waiting, several as a chain, and waits until it is on the
/// disk.
pub(super) fn send(
    log: &Log,
    batches: impl ExactSizeIterator<Item = Result<Batch>>,
    publication: Option<Publication>,
) -> Result<OnItsWay> {
    let mut batches = batches;
    if batches.len() > 1 {
        let mut chain = log.begin()?;
        for batch in batches {
            chain.append(batch?)?;
        }
        return Ok(OnItsWay::All(chain.commit(publication)?));
    }
    Ok(OnItsWay::One(log.send(only(&mut batches, publication)?)?))
}

/// Returns the first batch, with its publication.
fn only(
    batches: &mut impl Iterator<Item = Result<Batch>>,
    publication: Option<Publication>,
) -> Result<Batch> {
    let batch = batches.next().transpose()?;
    let batch = batch.ok_or(log::Error::Invalid { reason: "it has no messages" })?;
    Ok(match publication {
        Some(publication) => batch.published(publication),
        None => batch,
    })
}
