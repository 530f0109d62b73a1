//! Loads sources into the log: all workers parse, one thread writes.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_core::parallel::planned_workers;
use quarrier_core::source::Source;
use quarrier_core::threads;

use super::blocks::{Checked, checked_by, observed};
use super::definition::{Checker, Definition};
use super::encoding::{encoding_of, format_of, is_apart};
use super::observe::{FieldPairs, LoadSample, Observer, ObserverWorker};
use super::order::{Done, Order};
use super::resume::{Start, begin};
use super::store::Store;
use crate::load::{Block, Stream};
use crate::log::{Batch, Encoding, Publication, Sealed};
use crate::{Format, FormatReader, Limits, Opening, Packing, Reject, Result};

/// Options for loading messages into a data folder.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LoadOptions {
    /// The format of the messages.
    pub format: Format,
    /// Number of threads that parse; 0: one per CPU.
    pub workers: usize,
    /// Limits on messages.
    pub limits: Limits,
    /// The Zstandard level for batches (3 is usual); None: no compression.
    pub compression: Option<i32>,
    /// Whether to load a source again from its start, even if it was loaded before.
    pub is_again: bool,
    /// Approximate length of a batch in bytes, at most half a segment. 1 MiB.
    pub batch_bytes: u64,
}

impl LoadOptions {
    /// Makes options for messages of `format`, parsed by all CPUs and not compressed.
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

/// The origin of messages.
pub enum Origin<'o> {
    /// Bytes that can be read again. Bytes compressed with gzip or Zstandard are decompressed.
    Source {
        /// The source.
        source: &'o dyn Source,
        /// Its permanent name, such as its path: a load resumes an interrupted one with the same name, if the
        /// source still has the messages that were loaded. None: a load never resumes.
        identity: Option<&'o str>,
    },
    /// Bytes that can be read only once.
    Stream {
        /// The name in rejects and errors.
        name: &'o str,
        /// The bytes.
        reader: &'o mut (dyn Read + Send),
    },
}

/// The progress of loading a source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Everything before this offset of the source is on the disk.
    pub bytes: u64,
    /// Number of messages on the disk.
    pub messages: u64,
    /// Number of rejected messages.
    pub rejected: u64,
}

/// Observes a running load, from any of its threads.
pub trait LoadWatch: Send {
    /// A message was rejected. Called in the order of the source, at most [`Limits::rejects_max`] times.
    fn rejected(&mut self, reject: &Reject) {
        let _ = reject;
    }

    /// More of the source is on the disk.
    fn progressed(&mut self, progress: &Progress) {
        let _ = progress;
    }
}

impl LoadWatch for () {}

/// The result of loading a source, all of it on the disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stored {
    /// Number of messages that this load appended.
    pub messages: u64,
    /// Number of rejected messages.
    pub rejected: u64,
    /// Bytes read, after decompression.
    pub bytes: u64,
    /// The offset where this load began: everything before it had been loaded.
    pub start: u64,
    /// Everything before this offset of the source is on the disk.
    pub end: u64,
    /// The range from the first mark to the last one; it may include marks of other tables.
    pub marks: Range<u64>,
    /// Whether the load was stopped before the end.
    pub is_stopped: bool,
    /// Number of rejected messages in the blocks' lists; at most [`Limits::rejects_max`] were reported.
    pub(super) rejected_listed: u64,
}

/// State that all workers of a load share.
struct Shared<'l, O> {
    name: &'l str,
    observer: &'l O,
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

/// Loads a source into the table with this number. Before an error, `watch` learns what was acknowledged.
pub(super) fn load<O: Observer>(
    store: &Store,
    table: u32,
    origin: Origin<'_>,
    options: &LoadOptions,
    stop: &AtomicBool,
    (watch, observer): (&mut dyn LoadWatch, &O),
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
    let shared = Shared {
        name: &name,
        observer,
        options,
        encoding,
        table,
        definition,
        publisher,
        opening,
        stream,
        order,
        stop,
    };
    threads::team(0..workers, |_| shared.work());
    let (mut stored, done) = shared.order.finish();
    done?;
    stored.start = start.offset;
    stored.end = stored.end.max(start.offset);
    stored.is_stopped = stop.load(Ordering::Relaxed);
    Ok(stored)
}

impl<O: Observer> Shared<'_, O> {
    fn work(&self) {
        let _fails = FailOnPanic(&self.order);
        let options = self.options;
        let mut reader = FormatReader::new(&options.format, &options.limits, &self.opening);
        let mut checker = self.definition.as_deref().map(Checker::new);
        let mut header = None;
        let mut observing: Option<Observing<O::Worker<'_>>> = None;
        while !self.order.is_over() && !self.stop.load(Ordering::Relaxed) {
            let mut bytes = Vec::new();
            match self.stream.next(&reader, &mut bytes) {
                Ok(Some(block)) => {
                    let header: &Vec<u8> =
                        header.get_or_insert_with(|| self.opening.csv_header().unwrap_or_default());
                    let number = block.number;
                    if observing.is_none() {
                        let messages = bytes.get(block.at()..).unwrap_or_default();
                        observing = Some(self.observing(messages, header));
                    }
                    if observing.as_mut().is_some_and(Observing::begin) {
                        reader = FormatReader::new(&options.format, &options.limits, &self.opening);
                    }
                    let judges = (checker.as_mut(), observing.as_mut());
                    match self.done(&mut reader, judges, (&block, bytes), header) {
                        Ok(done) => self.order.put(number, done),
                        Err(error) => return self.order.fail(error),
                    }
                }
                Ok(None) => return,
                // A stopped stream fails to read, which is not an error of the load.
                Err(_) if self.stop.load(Ordering::Relaxed) => return,
                Err(error) => return self.order.fail(error),
            }
        }
    }

    /// Makes the observer of a worker, whose first block has these messages.
    fn observing(&self, messages: &[u8], header: &[u8]) -> Observing<O::Worker<'_>> {
        let LoadOptions { format, limits, .. } = self.options;
        let of_log = match format {
            Format::Csv(_) => format_of(self.encoding, header),
            _ => None,
        };
        let format = of_log.as_ref().unwrap_or(format);
        let sample = LoadSample { name: self.name, format, limits, header, messages };
        let worker = match is_apart(self.encoding) {
            // The fields of such a message depend on the elements around it.
            true => None,
            false => self.observer.worker(&sample),
        };
        Observing { worker, fields: FieldPairs::default() }
    }

    fn done(
        &self,
        reader: &mut FormatReader,
        (checker, observing): Judges<'_, '_, O::Worker<'_>>,
        (block, bytes): (&Block, Vec<u8>),
        header: &[u8],
    ) -> Result<Done> {
        let range = block.offset..block.offset + bytes.len() as u64;
        let how = (self.encoding, header);
        let limits = &self.options.limits;
        let both = (block, bytes);
        let mut checked: Checked = match observing {
            Some(Observing { worker: Some(worker), fields }) => {
                observed((checker, fields), worker, reader, both, how, limits)
            }
            _ => checked_by(checker, reader, both, how, limits),
        };
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

/// The observer of a worker's messages, if it observes them, and the fields that it shares with the checker.
struct Observing<W> {
    worker: Option<W>,
    fields: FieldPairs,
}

impl<W: ObserverWorker> Observing<W> {
    /// Begins a block. Returns whether the ids of fields changed.
    fn begin(&mut self) -> bool {
        let is_changed = self.worker.as_mut().is_some_and(ObserverWorker::begin);
        if is_changed {
            self.fields = FieldPairs::default();
        }
        is_changed
    }
}

/// The checker and the observer of a worker's messages.
type Judges<'j, 'd, W> = (Option<&'j mut Checker<'d>>, Option<&'j mut Observing<W>>);

/// If a worker panics, ends the load, so that the others do not wait for its block forever.
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
