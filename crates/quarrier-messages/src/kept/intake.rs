//! Gathers messages that arrive piece by piece, such as from a client, until they are complete; then checks
//! them, and appends all or none.
//!
//! ```text
//!  push ─→ spool (memory, then a file) ─→ checked, block by block ─→ one batch, or a chain of them
//! ```
//!
//! A chain blocks all other writers of the log until it ends, so it must not wait for a client.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_core::source::Source;

use super::blocks::{Checked, checked_by};
use super::definition::{Checker, Definition};
use super::encoding::encoding_of;
use super::load::Rest;
use super::resume::publisher;
use super::spool::Spool;
use super::store::Store;
use crate::load::{Block, Stream, decompressed};
use crate::log::{self, Batch, Committed, Encoding, Log, Pending, Publication};
use crate::{Error, Format, FormatReader, Limits, Opening, Packing, Reject, Result};

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
pub struct Intake(Spool);

impl Intake {
    pub(super) fn new(spool: Spool) -> Self {
        Intake(spool)
    }

    /// Appends bytes, which may end within a message.
    ///
    /// # Errors
    /// [`log::Error::Full`] or [`log::Error::Io`], if the bytes exceed their share of memory and cannot be
    /// written to disk.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.push(bytes).map_err(failed)
    }

    /// Returns whether `more` bytes fit in memory, so that taking them does not block.
    pub fn is_in_memory(&self, more: usize) -> bool {
        self.0.is_in_memory(more)
    }
}

fn failed(error: io::Error) -> Error {
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

/// Checks the gathered messages and sends them to the log. Returns once they are in the log's queue or, if
/// they take more than one batch, on the disk.
pub(super) fn take(
    (store, log): (&Store, &Log),
    (table, definition): (u32, Option<Arc<Definition>>),
    intake: &Intake,
    options: &IntakeOptions,
    stop: &AtomicBool,
) -> Result<PendingAppend> {
    let spool = &intake.0;
    let publication = options.publication.as_ref().map(|(name, sequence)| Publication {
        publisher: publisher(table, name, GENERATION),
        sequence: *sequence,
        source_offset: 0,
    });
    if decompressed(spool)?.is_some() {
        let reason = "they are compressed: send them uncompressed".to_string();
        return Err(Error::Store { place: spool.name().to_string(), reason });
    }
    let format = match &options.format {
        Some(format) => format.clone(),
        None => Format::of(spool)?,
    };
    // All messages must conform to the definition of a key.
    let keyed = definition.clone().filter(|definition| !definition.key().is_empty());
    let definition = keyed.or_else(|| options.definition.clone()).or(definition);
    let blocks = Blocks::checked(store, spool, (&format, definition.as_deref()), stop)?;
    let taken = AppendResult {
        marks: 0..blocks.messages,
        rejected: blocks.rejected,
        first: blocks.first.clone(),
        is_duplicate: false,
    };
    let is_refused = options.is_whole && blocks.rejected > 0;
    if blocks.messages == 0 || is_refused {
        return Ok(PendingAppend {
            taken: AppendResult { marks: 0..0, ..taken },
            on_its_way: None,
        });
    }
    let on_its_way = Some(blocks.send(log, table, publication)?);
    Ok(PendingAppend { taken, on_its_way })
}

/// Messages for the log, batch by batch.
struct Blocks {
    encoding: Encoding,
    payloads: Spool,
    /// The length and the number of messages of each batch.
    batches: Vec<(usize, u32)>,
    messages: u64,
    rejected: u64,
    first: Option<Reject>,
}

impl Blocks {
    fn checked(
        store: &Store,
        spool: &Spool,
        (format, definition): (&Format, Option<&Definition>),
        stop: &AtomicBool,
    ) -> Result<Blocks> {
        let encoding = encoding_of(format, spool.name())?;
        let limits = Limits { rejects_max: 1, ..Limits::default() };
        let opening = Opening::default();
        let batch_bytes = store.writer()?.batch_bytes(BATCH_BYTES);
        let packing = Packing { claim_bytes: batch_bytes, ..Packing::default() };
        let mut rest = Rest { source: spool, at: 0 };
        let name = spool.name();
        let bytes_max = limits.message_bytes_max;
        let stream = Stream::new(name, &mut rest, bytes_max, (packing, batch_bytes));
        let mut reader = FormatReader::new(format, &limits, &opening);
        let mut checker = definition.map(Checker::new);
        let mut blocks = Blocks {
            encoding,
            payloads: store.spool(),
            batches: Vec::new(),
            messages: 0,
            rejected: 0,
            first: None,
        };
        let (mut header, mut lines) = (None, 0);
        let mut bytes = Vec::new();
        while let Some(block) = stream.next(&reader, &mut bytes)? {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            let header = header.get_or_insert_with(|| opening.csv_header().unwrap_or_default());
            let both = (&block, std::mem::take(&mut bytes));
            let how = (encoding, header.as_slice());
            let checked = checked_by(checker.as_mut(), &mut reader, both, how, &limits);
            lines += blocks.add((&block, lines), checked)?;
        }
        Ok(blocks)
    }

    /// Adds a block, which `lines` lines precede; returns its own number of lines.
    fn add(&mut self, (block, lines): (&Block, u64), checked: Checked) -> Result<u64> {
        if let (None, Some(reject)) = (&self.first, checked.rejects.first()) {
            let place = (1 + lines + reject.line, block.offset + reject.at);
            self.first = Some(Reject::new("messages", place, reject.fault, &reject.bytes));
        }
        self.rejected += checked.rejected;
        if checked.messages > 0 {
            self.payloads.push(&checked.payload).map_err(failed)?;
            self.batches.push((checked.payload.len(), checked.messages));
            self.messages += u64::from(checked.messages);
        }
        Ok(checked.lines)
    }

    fn send(&self, log: &Log, table: u32, publication: Option<Publication>) -> Result<OnItsWay> {
        let mut offset = 0;
        let batches = self.batches.iter().map(|(bytes, messages)| -> Result<Batch> {
            let payload = self.payloads.bytes(offset, *bytes).map_err(failed)?;
            offset += *bytes as u64;
            Ok(Batch::new(table, self.encoding, *messages, payload)?)
        });
        send(log, batches, publication)
    }
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
    let batch = batches.next().transpose()?;
    let mut batch = batch.ok_or(log::Error::Invalid { reason: "it has no messages" })?;
    if let Some(publication) = publication {
        batch = batch.published(publication);
    }
    Ok(OnItsWay::One(log.send(batch)?))
}
