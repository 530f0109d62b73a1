//! Sources into the log: parsed by all workers, written by one.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_core::parallel::planned_workers;
use quarrier_core::source::Source;
use quarrier_core::threads;

use super::blocks::checked_by;
use super::definition::{Checker, Definition};
use super::encoding::encoding_of;
use super::order::{Done, Order};
use super::resume::{Start, begin};
use super::store::Store;
use crate::load::{Block, Stream};
use crate::log::{Batch, Encoding, Publication, Sealed};
use crate::{Format, FormatReader, Limits, Opening, Packing, Reject, Result};

/// How messages are loaded into a data folder.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LoadOptions {
    /// How they are written.
    pub format: Format,
    /// Threads that parse; 0: one a CPU.
    pub workers: usize,
    /// Bounds of what messages may ask for.
    pub limits: Limits,
    /// The level by which batches are compressed with Zstandard (3 is usual); None: not at all.
    pub compression: Option<i32>,
    /// Whether a source that was loaded before is loaded once more, from its start.
    pub is_again: bool,
    /// About how many bytes a batch has, at most half a segment. 1 MiB.
    pub batch_bytes: u64,
}

impl LoadOptions {
    /// Messages of `format`, parsed by all CPUs and not compressed.
    pub fn new(format: Format) -> Self {
        LoadOptions {
            format,
            workers: 0,
            limits: Limits::default(),
            compression: None,
            is_again: false,
            batch_bytes: 1 << 20,
        }
    }
}

/// Where messages come from.
pub enum Origin<'o> {
    /// Bytes that can be read again. What is compressed with gzip or Zstandard is decompressed.
    Source {
        /// The source.
        source: &'o dyn Source,
        /// What it is called at all times, such as its path: a load that was interrupted goes on
        /// where it was for the same name, if what was loaded still stands there. None: it never
        /// goes on.
        identity: Option<&'o str>,
    },
    /// Bytes that come once.
    Stream {
        /// The name in rejects and errors.
        name: &'o str,
        /// The bytes.
        reader: &'o mut (dyn Read + Send),
    },
}

/// What was done for a source so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// All before this offset of the source is on the disk.
    pub bytes: u64,
    /// Messages that are on the disk.
    pub messages: u64,
    /// Messages that were left out.
    pub rejected: u64,
}

/// Hears of a load while it runs, from any of its threads.
pub trait LoadWatch: Send {
    /// A message was left out; in the order of the source, at most [`Limits::rejects_max`] times.
    fn left_out(&mut self, reject: &Reject) {
        let _ = reject;
    }

    /// More is on the disk.
    fn progressed(&mut self, progress: &Progress) {
        let _ = progress;
    }
}

impl LoadWatch for () {}

/// What came of a source, all of it on the disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stored {
    /// Messages that this load appended.
    pub messages: u64,
    /// Messages that were left out.
    pub rejected: u64,
    /// Bytes that were read, after decompression.
    pub bytes: u64,
    /// Where this load began: all before had been loaded.
    pub start: u64,
    /// All before this offset of the source is on the disk.
    pub end: u64,
    /// From the first mark to the last one; other tables may have some between.
    pub marks: Range<u64>,
    /// Whether it was told to stop before the end.
    pub is_stopped: bool,
    /// Messages of those left out that were listed, or would have been.
    pub(super) rejected_listed: u64,
}

/// What all workers of a load share.
struct Shared<'l> {
    options: &'l LoadOptions,
    encoding: Encoding,
    table: u32,
    definition: Option<Arc<Definition>>,
    publisher: Option<u64>,
    opening: Opening,
    stream: Stream<'l>,
    order: Order<'l>,
    stop: &'l AtomicBool,
}

/// Loads a source into the table of this number. What was acknowledged before an error is told, too.
pub(super) fn load(
    store: &Store,
    table: u32,
    origin: Origin<'_>,
    options: &LoadOptions,
    stop: &AtomicBool,
    watch: &mut dyn LoadWatch,
) -> Result<Stored> {
    let name = match &origin {
        Origin::Source { source, .. } => source.name().to_string(),
        Origin::Stream { name, .. } => (*name).to_string(),
    };
    let encoding = encoding_of(&options.format, &name)?;
    let log = store.writer()?;
    let opening = Opening::default();
    let workers = planned_workers(options.workers);
    let (mut plain, start): (Box<dyn Read + Send + '_>, Start) = match origin {
        Origin::Source { source, identity } => {
            begin(store, (table, encoding), (source, identity), options, &opening)?
        }
        Origin::Stream { name, reader } => {
            let plain = crate::load::decompressed_stream(name, Box::new(reader), stop)?;
            (plain, Start::default())
        }
    };
    let batch_bytes = log.batch_bytes(options.batch_bytes);
    let packing = Packing { claim_bytes: batch_bytes, ..Packing::default() };
    let message_bytes_max = options.limits.message_bytes_max;
    let stream = Stream::new(&name, &mut plain, message_bytes_max, (packing, batch_bytes));
    let place = (start.sequence, start.lines);
    let order = Order::new((log, &name, &options.limits), place, workers, watch);
    let publisher = start.publisher;
    let stream = stream.beginning_at(start.offset);
    let definition = store.definition_of(table);
    let shared =
        Shared { options, encoding, table, definition, publisher, opening, stream, order, stop };
    threads::team(0..workers, |_| shared.work());
    let (mut stored, done) = shared.order.finish();
    done?;
    stored.start = start.offset;
    stored.end = stored.end.max(start.offset);
    stored.is_stopped = stop.load(Ordering::Relaxed);
    Ok(stored)
}

impl Shared<'_> {
    fn work(&self) {
        let _fails = FailOnPanic(&self.order);
        let options = self.options;
        let mut reader = FormatReader::new(&options.format, &options.limits, &self.opening);
        let mut checker = self.definition.as_deref().map(Checker::new);
        let mut header = None;
        while !self.order.is_over() && !self.stop.load(Ordering::Relaxed) {
            let mut bytes = Vec::new();
            match self.stream.next(&reader, &mut bytes) {
                Ok(Some(block)) => {
                    let header: &Vec<u8> =
                        header.get_or_insert_with(|| self.opening.csv_header().unwrap_or_default());
                    let number = block.number;
                    match self.done((&mut reader, checker.as_mut()), (&block, bytes), header) {
                        Ok(done) => self.order.put(number, done),
                        Err(error) => return self.order.fail(error),
                    }
                }
                Ok(None) => return,
                // A stream that was waited for fails otherwise.
                Err(_) if self.stop.load(Ordering::Relaxed) => return,
                Err(error) => return self.order.fail(error),
            }
        }
    }

    fn done(
        &self,
        (reader, checker): (&mut FormatReader, Option<&mut Checker<'_>>),
        (block, bytes): (&Block, Vec<u8>),
        header: &[u8],
    ) -> Result<Done> {
        let range = block.offset..block.offset + bytes.len() as u64;
        let how = (self.encoding, header);
        let limits = &self.options.limits;
        let mut checked = checked_by(checker, reader, (block, bytes), how, limits);
        let payload = std::mem::take(&mut checked.payload);
        if checked.messages == 0 {
            return Ok(Done { bytes: range, checked, sealed: None });
        }
        let mut batch = Batch::new(self.table, self.encoding, checked.messages, payload)?;
        if let Some(level) = self.options.compression {
            batch = batch.compressed(level)?;
        }
        if let Some(publisher) = self.publisher {
            let sequence = range.start + 1;
            batch = batch.published(Publication { publisher, sequence, source_offset: range.end });
        }
        Ok(Done { bytes: range, checked, sealed: Some(Sealed::of(batch, 0)) })
    }
}

/// Where a worker panics, nobody waits for its block without end.
struct FailOnPanic<'f, 'o>(&'f Order<'o>);

impl Drop for FailOnPanic<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(crate::Error::Cancelled);
        }
    }
}

/// A source from an offset on.
pub(super) struct Rest<'s> {
    pub(super) source: &'s dyn Source,
    pub(super) at: u64,
}

impl Read for Rest<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read_at(self.at, buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}
