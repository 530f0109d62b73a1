//! The workers, from source to source.

use std::io::Read;
use std::ops::Range;

use quarrier_core::source::Source;
use quarrier_core::threads;

use super::Load;
use super::batch::Batch;
use super::bytes::Bytes;
use super::claims::Claims;
use super::format::{FormatReader, Opening};
use super::reject::Origin;
use super::stream::Stream;
use crate::Result;
use crate::frame::{Chunk, Reader, Step, byte_order_mark};

/// All workers, and what they share from one source to the next.
pub(super) struct Crew<'l> {
    load: &'l Load<'l>,
    workers: Vec<Worker>,
    opening: Opening,
    names: Vec<Box<str>>,
    lines: Lines,
    bytes: u64,
}

/// What is left when all is done.
pub(super) struct Done {
    pub(super) batches: Vec<Batch>,
    /// What the last source's first bytes say.
    pub(super) opening: Opening,
    pub(super) names: Vec<Box<str>>,
    pub(super) bytes: u64,
    pub(super) lines: Lines,
}

/// How many lines of the same source started before each claim.
#[derive(Debug, Default)]
pub(super) struct Lines {
    before: Vec<u64>,
}

impl Lines {
    pub(super) fn before(&self, origin: Origin) -> u64 {
        self.before[origin.claim]
    }

    /// Adds the claims of another source, which come with their numbers in any order.
    fn add(&mut self, mut claims: Vec<(usize, u64)>) {
        claims.sort_unstable();
        let mut sum = 0;
        self.before.extend(claims.into_iter().map(|(_, lines)| {
            let before = sum;
            sum += lines;
            before
        }));
    }
}

/// Claims that a worker took, with the lines that started there.
type Account = Vec<(usize, u64)>;

impl<'l> Crew<'l> {
    pub(super) fn new(load: &'l Load<'l>) -> Self {
        let opening = Opening::default();
        let worker = |_| Worker {
            batch: load.batch(),
            reader: FormatReader::new(&load.format, &load.limits, &opening),
            bytes: Bytes::new(),
        };
        Crew {
            load,
            workers: (0..load.workers).map(worker).collect(),
            opening: opening.clone(),
            names: Vec::new(),
            lines: Lines::default(),
            bytes: 0,
        }
    }

    /// Whether workers can start anywhere in a source.
    pub(super) fn is_found_anywhere(&self) -> bool {
        self.workers.iter().all(|worker| worker.reader.is_found_anywhere())
    }

    pub(super) fn source(&mut self, source: &dyn Source) -> Result<()> {
        let load = self.load;
        let claims = Claims::new(source.length(), load.workers, load.packing);
        let first = self.begin(source.name());
        let accounts = each(&mut self.workers, |worker| {
            let mut account = Account::new();
            while let Some((own, number)) = claims.next() {
                load.check()?;
                worker.batch.begin(Origin { claim: first.claim + number, ..first });
                let messages = worker.batch.messages();
                let bytes = own.end - own.start;
                let lines = worker.claim(load, source, own).inspect_err(|_| claims.close())?;
                claims.learn(bytes, worker.batch.messages() - messages);
                account.push((number, lines));
            }
            Ok(account)
        })?;
        self.bytes += source.length();
        self.lines.add(accounts);
        Ok(())
    }

    pub(super) fn stream(&mut self, name: &str, reader: &mut (dyn Read + Send)) -> Result<()> {
        let load = self.load;
        let stream = Stream::new(name, reader, load.limits.message_bytes_max, load.packing);
        let first = self.begin(name);
        let accounts = each(&mut self.workers, |worker| {
            let mut account = Account::new();
            let mut bytes = Vec::new();
            while let Some(block) = stream.next(&worker.reader, &mut bytes)? {
                load.check()?;
                worker.batch.begin(Origin { claim: first.claim + block.number, ..first });
                let messages = worker.batch.messages();
                let mut chunk = block.chunk(&bytes);
                worker.batch.at(block.offset);
                worker.reader.read(&mut chunk, &mut worker.batch);
                worker.batch.end();
                stream.learn(bytes.len() as u64, worker.batch.messages() - messages);
                account.push((block.number, chunk.lines));
            }
            Ok(account)
        })?;
        self.bytes += stream.bytes();
        self.lines.add(accounts);
        Ok(())
    }

    /// Another source; the origin of its first claim.
    fn begin(&mut self, name: &str) -> Origin {
        self.names.push(name.into());
        Origin { source: self.names.len() - 1, claim: self.lines.before.len() }
    }

    pub(super) fn done(self) -> Done {
        let batches = self.workers.into_iter().map(|worker| worker.batch).collect();
        Done {
            batches,
            opening: self.opening,
            names: self.names,
            bytes: self.bytes,
            lines: self.lines,
        }
    }
}

/// Lets every worker work in a thread of its own; what all of them say, or the first error.
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
    /// Parses the messages that start in `own`; how many lines start there.
    fn claim(&mut self, load: &Load<'_>, source: &dyn Source, own: Range<u64>) -> Result<u64> {
        let Worker { batch, reader, bytes } = self;
        let Some(mut at) = first(reader, bytes, source, &own)? else { return Ok(0) };
        let mut state =
            Chunk { bytes: &[], at: 0, until: 0, is_end: false, is_inside: false, lines: 0 };
        loop {
            // A message may go on far beyond the claim.
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
        Ok(state.lines)
    }
}

/// Where in the bytes the first message of the claim starts; `None` where none does.
fn first(
    reader: &FormatReader,
    bytes: &mut Bytes,
    source: &dyn Source,
    own: &Range<u64>,
) -> Result<Option<usize>> {
    bytes.seek(own.start.saturating_sub(1));
    bytes.more(source, 0, own.end)?;
    if own.start == 0 {
        return Ok(Some(byte_order_mark(bytes.held())));
    }
    loop {
        if let Some(at) = reader.start(bytes.held(), 0) {
            return Ok((bytes.offset() + (at as u64) < own.end).then_some(at));
        }
        // What announces a message may stand across the border.
        let seen = bytes.held().len().saturating_sub(SEEN_AGAIN_BYTES);
        if bytes.offset() + seen as u64 >= own.end || bytes.is_at_end(source) {
            return Ok(None);
        }
        bytes.more(source, seen, own.end)?;
    }
}

const SEEN_AGAIN_BYTES: usize = 64;
