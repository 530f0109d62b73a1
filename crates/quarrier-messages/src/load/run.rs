//! The workers of a load, and the loop over sources.

use std::io::Read;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use memchr::memchr_iter;
use quarrier_core::source::Source;
use quarrier_core::threads;

use super::batch::Batch;
use super::bytes::Bytes;
use super::claims::Claims;
use super::format::{FormatReader, Opening};
use super::reject::Origin;
use super::stream::Stream;
use super::{Load, Loaded};
use crate::Result;
use crate::frame::{Chunk, Reader, Step, byte_order_mark};

/// Receives a piece of the messages before more are loaded.
pub(super) type Take<'t> = dyn FnMut(Loaded) -> Result<()> + 't;

/// The bytes of memory that all workers' messages take, and the limit.
struct Held {
    bytes: AtomicUsize,
    bytes_max: usize,
}

impl Held {
    fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > self.bytes_max
    }
}

/// All workers, and the state that they keep from one source to the next.
pub(super) struct Crew<'l> {
    load: &'l Load<'l>,
    held: Held,
    workers: Vec<Worker>,
    opening: Opening,
    names: Vec<Box<str>>,
    lines: Lines,
    bytes: u64,
    line_count: u64,
}

/// The number of lines of the same source that started before each claim.
#[derive(Debug, Default)]
pub(super) struct Lines {
    before: Vec<u64>,
}

impl Lines {
    pub(super) fn before(&self, origin: Origin) -> u64 {
        self.before[origin.claim]
    }

    /// Like [`before`](Self::before), for a claim by its index among those of all sources.
    pub(super) fn before_claim(&self, claim: usize) -> u64 {
        self.before.get(claim).copied().unwrap_or(0)
    }

    /// Adds consecutive claims, with their numbers in any order; `sum` lines precede them. Returns
    /// the number of lines up to their end.
    fn add(&mut self, mut claims: Account, mut sum: u64) -> u64 {
        claims.sort_unstable_by_key(|(number, _)| *number);
        self.before.extend(claims.into_iter().map(|(_, claim)| {
            let before = sum + claim.before;
            sum += claim.lines;
            before
        }));
        sum
    }
}

/// The claims of a worker, by their numbers.
type Account = Vec<(usize, ClaimLines)>;

/// The lines of a claim: those that start in it, or its line feeds if the format counts these.
#[derive(Debug, Clone, Copy, Default)]
struct ClaimLines {
    lines: u64,
    /// How many of them precede the first message that starts in the claim.
    before: u64,
}

impl<'l> Crew<'l> {
    /// Makes a crew that hands over its messages whenever they take more than `bytes_max` bytes.
    pub(super) fn new(load: &'l Load<'l>, bytes_max: usize) -> Self {
        let opening = Opening::default();
        let worker = |_| Worker {
            batch: load.batch(),
            reader: FormatReader::new(&load.format, &load.limits, &opening),
            bytes: Bytes::new(),
        };
        Crew {
            load,
            held: Held { bytes: AtomicUsize::new(0), bytes_max },
            workers: (0..load.planned_workers()).map(worker).collect(),
            opening: opening.clone(),
            names: Vec::new(),
            lines: Lines::default(),
            bytes: 0,
            line_count: 0,
        }
    }

    /// Whether workers can start at any offset of a source.
    pub(super) fn is_found_anywhere(&self) -> bool {
        self.workers.iter().all(|worker| worker.reader.is_found_anywhere())
    }

    /// Loads the messages that start in `range`.
    pub(super) fn source(
        &mut self,
        source: &dyn Source,
        range: Range<u64>,
        take: &mut Take<'_>,
    ) -> Result<()> {
        let load = self.load;
        let (workers, bytes_max) = (self.workers.len(), self.claim_bytes_max());
        self.bytes += range.end - range.start;
        let claims = Claims::new(range, workers, load.packing, bytes_max);
        let first = self.begin(source.name());
        let mut lines = 0;
        loop {
            let held = &self.held;
            let accounts = each(&mut self.workers, |worker| {
                let mut account = Account::new();
                while !held.is_full()
                    && let Some((own, number)) = claims.next()
                {
                    load.check()?;
                    worker.batch.begin(Origin { claim: first.claim + number, ..first });
                    let before = worker.before();
                    let bytes = own.end - own.start;
                    let read = worker.claim(load, source, own).inspect_err(|_| claims.close())?;
                    claims.learn(bytes, worker.learn(before, held));
                    account.push((number, read));
                }
                Ok(account)
            })?;
            lines = self.lines.add(accounts, lines);
            if claims.are_over() {
                break;
            }
            take(self.piece()?)?;
        }
        self.line_count += lines;
        Ok(())
    }

    pub(super) fn stream(
        &mut self,
        name: &str,
        reader: &mut (dyn Read + Send),
        take: &mut Take<'_>,
    ) -> Result<()> {
        let load = self.load;
        let packing = (load.packing, self.claim_bytes_max());
        let stream = Stream::new(name, reader, load.limits.message_bytes_max, packing);
        let first = self.begin(name);
        let mut lines = 0;
        loop {
            let held = &self.held;
            let accounts = each(&mut self.workers, |worker| {
                let mut account = Account::new();
                let mut bytes = Vec::new();
                while !held.is_full()
                    && let Some(block) = stream.next(&worker.reader, &mut bytes)?
                {
                    load.check()?;
                    worker.batch.begin(Origin { claim: first.claim + block.number, ..first });
                    let before = worker.before();
                    let mut chunk = block.chunk(&bytes);
                    worker.batch.at(block.offset);
                    worker.reader.read(&mut chunk, &mut worker.batch);
                    worker.batch.end();
                    stream.learn(bytes.len() as u64, worker.learn(before, held));
                    account.push((block.number, ClaimLines { lines: chunk.lines, before: 0 }));
                }
                Ok(account)
            })?;
            lines = self.lines.add(accounts, lines);
            // The last piece may be empty.
            if !self.held.is_full() {
                break;
            }
            take(self.piece()?)?;
        }
        self.bytes += stream.bytes();
        self.line_count += lines;
        Ok(())
    }

    /// Limits the bytes to read at once, so that messages exceed the memory limit only a little.
    fn claim_bytes_max(&self) -> u64 {
        (self.held.bytes_max / 2 / self.workers.len().max(1)).max(CLAIM_BYTES_MIN) as u64
    }

    /// Returns the messages of all workers so far.
    fn piece(&mut self) -> Result<Loaded> {
        let load = self.load;
        self.held.bytes = AtomicUsize::new(0);
        let opening = &self.opening;
        let batch = |worker: &mut Worker| {
            // The old reader has the numbers of fields in the earlier rows.
            worker.reader = FormatReader::new(&load.format, &load.limits, opening);
            std::mem::replace(&mut worker.batch, load.batch())
        };
        let batches = self.workers.iter_mut().map(batch).collect();
        load.assembled(batches, &self.opening, (&self.names, &self.lines))
    }

    /// Begins another source; returns the origin of its first claim.
    fn begin(&mut self, name: &str) -> Origin {
        self.names.push(name.into());
        Origin { source: self.names.len() - 1, claim: self.lines.before.len() }
    }

    /// Returns the remaining messages.
    pub(super) fn done(mut self) -> Result<Loaded> {
        let loaded = self.piece()?;
        Ok(Loaded { bytes: self.bytes, lines: self.line_count, ..loaded })
    }
}

/// Smaller claims cost more than they gain.
const CLAIM_BYTES_MIN: usize = 1 << 20;

/// Runs every worker on its own thread; returns all results, or the first error.
fn each(
    workers: &mut [Worker],
    work: impl Fn(&mut Worker) -> Result<Account> + Sync,
) -> Result<Account> {
    let mut all = Account::new();
    for account in threads::team(workers, work) {
        all.extend(account?);
    }
    Ok(all)
}

/// One thread's reader and rows.
struct Worker {
    batch: Batch,
    reader: FormatReader,
    bytes: Bytes,
}

impl Worker {
    /// Returns the number of messages and the bytes of memory so far.
    fn before(&self) -> (u64, usize) {
        (self.batch.messages(), self.batch.nbytes())
    }

    /// Records the messages since `before`; returns their number.
    fn learn(&self, (messages, bytes): (u64, usize), held: &Held) -> u64 {
        let more = self.batch.nbytes().saturating_sub(bytes);
        held.bytes.fetch_add(more, Ordering::Relaxed);
        self.batch.messages() - messages
    }

    /// Parses the messages that start in `own`; returns the number of lines there.
    fn claim(
        &mut self,
        load: &Load<'_>,
        source: &dyn Source,
        own: Range<u64>,
    ) -> Result<ClaimLines> {
        let Worker { batch, reader, bytes } = self;
        let (first, before) = first(reader, bytes, source, &own)?;
        let Some(mut at) = first else { return Ok(ClaimLines { lines: before, before }) };
        let mut state =
            Chunk { bytes: &[], at: 0, until: 0, is_end: false, is_inside: false, lines: 0 };
        loop {
            // A message may extend far beyond the claim.
            load.check()?;
            let end = bytes.offset() + bytes.held().len() as u64;
            let mut chunk = Chunk {
                bytes: bytes.held(),
                at,
                until: usize::try_from(own.end.saturating_sub(bytes.offset()))
                    .unwrap_or(usize::MAX),
                is_end: end == source.length(),
                ..state
            };
            batch.at(bytes.offset());
            let step = reader.read(&mut chunk, batch);
            at = chunk.at;
            state = Chunk { bytes: &[], ..chunk };
            if (step == Step::Done && at as u64 + bytes.offset() >= own.end) || state.is_end {
                break;
            }
            bytes.more(source, at, own.end)?;
            at = 0;
        }
        batch.end();
        // The last message may extend beyond the claim. Its line feeds there belong to the next
        // claim.
        let beyond = match reader.counts_line_feeds() {
            true => line_feeds(bytes, own.end..bytes.offset() + at as u64),
            false => 0,
        };
        Ok(ClaimLines { lines: before + state.lines.saturating_sub(beyond), before })
    }
}

/// Counts the line feeds in a range of the source, as far as `bytes` holds it.
fn line_feeds(bytes: &Bytes, range: Range<u64>) -> u64 {
    let place = |offset: u64| {
        let place = usize::try_from(offset.saturating_sub(bytes.offset())).unwrap_or(usize::MAX);
        place.min(bytes.held().len())
    };
    let (from, to) = (place(range.start), place(range.end));
    memchr_iter(b'\n', bytes.held().get(from..to).unwrap_or_default()).count() as u64
}

/// Returns the offset in the bytes of the claim's first message, `None` if it has none, and the number
/// of line feeds of the claim before it if the format counts these.
fn first(
    reader: &FormatReader,
    bytes: &mut Bytes,
    source: &dyn Source,
    own: &Range<u64>,
) -> Result<(Option<usize>, u64)> {
    bytes.seek(own.start.saturating_sub(1));
    bytes.more(source, 0, own.end)?;
    if own.start == 0 {
        return Ok((Some(byte_order_mark(bytes.held())), 0));
    }
    let (mut counted, mut lines) = (own.start, 0);
    let mut count_to = |bytes: &Bytes, end: u64| {
        if reader.counts_line_feeds() {
            lines += line_feeds(bytes, counted..end.min(own.end));
            counted = end;
        }
        lines
    };
    loop {
        if let Some(at) = reader.start(bytes.held(), 0) {
            let place = bytes.offset() + at as u64;
            return Ok(((place < own.end).then_some(at), count_to(bytes, place)));
        }
        // The bytes that mark the start of a message may span two reads.
        let seen = bytes.held().len().saturating_sub(SEEN_AGAIN_BYTES);
        if bytes.offset() + seen as u64 >= own.end || bytes.is_at_end(source) {
            return Ok((None, count_to(bytes, own.end)));
        }
        count_to(bytes, bytes.offset() + seen as u64);
        bytes.more(source, seen, own.end)?;
    }
}

const SEEN_AGAIN_BYTES: usize = 64;
