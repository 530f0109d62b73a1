//! The kernel: parses and evaluates the messages of a chunk, and formats those that match.

use std::sync::{Arc, Mutex};

use memchr::memchr_iter;
use quarrier_core::pipeline::{self, Emitter, Kernel, Need};
use quarrier_core::sync::{into_inner, lock};
use quarrier_filter::Sieve;
use quarrier_messages::build::{KindFinder, Row};
use quarrier_messages::frame::{Chunk, Reader, Rejected, Taker};
use quarrier_messages::{Format, FormatReader, HiddenColumns, Kind, Limits, Opening, Schema};

use super::conditions::{Misfits, Rebinding, Rebound, Stage};
use super::hidden::{HiddenNames, PlacedMessage};
use super::rejects::Reject;
use super::show::{OutputKind, Shower, Shown};

/// State that all workers of one source share.
pub(super) struct Setup {
    pub(super) format: Format,
    pub(super) limits: Limits,
    /// The opening state of the source, and the start of its first message.
    pub(super) opening: Opening,
    pub(super) first: usize,
    pub(super) sieve: Sieve,
    pub(super) rebinding: Rebinding,
    pub(super) output_kind: OutputKind,
    pub(super) hidden: HiddenNames,
    /// Whether to list every rejected message, instead of counting them and keeping the first.
    pub(super) lists_rejects: bool,
}

impl Setup {
    /// A reader of the source's messages.
    pub(super) fn reader(&self) -> FormatReader {
        FormatReader::new(&self.format, &self.limits, &self.opening)
    }
}

/// The pool of idle workers.
pub(super) struct FilterKernel<'s> {
    pub(super) setup: &'s Setup,
    idle: Mutex<Vec<Worker<'s>>>,
}

/// The result of a chunk, or of a message that crosses a border.
#[derive(Debug, Default)]
pub(super) struct ChunkOutput {
    /// The proven or probable start of the first message in the chunk; the bytes before it belong to the
    /// preceding chunk. The end of the chunk if no message starts in it.
    pub(super) head: usize,
    /// The start of a message that does not end in the chunk.
    pub(super) tail: usize,
    /// Whether the chunk ends inside a message that is too long and was rejected.
    pub(super) is_inside: bool,
    /// The number of lines that start from `head` to `tail`.
    pub(super) lines: u64,
    /// The number of parsed messages.
    pub(super) messages: u64,
    /// The number of matches of each condition.
    pub(super) counts: Vec<u64>,
    /// The ranges of matching messages, unless only their number is requested.
    pub(super) spans: Vec<(u32, u32)>,
    /// The condition that is true for each range, if requested.
    pub(super) matches: Vec<u32>,
    /// The matching messages as rows.
    pub(super) shown: Shown,
    pub(super) rejects: Vec<Reject>,
    pub(super) rejected: u64,
    /// Values of another type than their column: each column and type once.
    pub(super) misfits: Vec<Misfit>,
    /// A condition whose evaluation failed, with the message's position; it ends the run.
    pub(super) broken: Option<Broken>,
}

/// A value of another type than its column in the sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Misfit {
    /// The start of its message in the current bytes.
    pub(super) at: usize,
    pub(super) line: u64,
    /// The column in the schema that the conditions are bound to.
    pub(super) column: usize,
    /// The type that holds this value and all before it.
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) struct Broken {
    pub(super) at: usize,
    pub(super) line: u64,
    pub(super) condition: usize,
    pub(super) fault: quarrier_filter::Fault,
}

impl ChunkOutput {
    /// Clears the output, and keeps its memory.
    pub(super) fn clear(&mut self) {
        let (spans, mut counts) =
            (std::mem::take(&mut self.spans), std::mem::take(&mut self.counts));
        counts.clear();
        *self = ChunkOutput { spans, counts, ..ChunkOutput::default() };
        self.spans.clear();
    }
}

impl<'s> FilterKernel<'s> {
    pub(super) fn new(setup: &'s Setup) -> Self {
        FilterKernel { setup, idle: Mutex::default() }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Worker<'s>>> {
        lock(&self.idle)
    }

    /// Returns all workers at the end of the run.
    pub(super) fn into_workers(self) -> Vec<Worker<'s>> {
        into_inner(self.idle)
    }
}

impl Kernel for FilterKernel<'_> {
    type Output = ChunkOutput;

    fn need(&self) -> Need {
        Need::default()
    }

    fn work(&self, chunk: &pipeline::Chunk<'_>, emit: &mut Emitter<'_, ChunkOutput>) {
        let idle = self.idle().pop();
        let mut worker = idle.unwrap_or_else(|| Worker::new(self.setup));
        worker.chunk(chunk, emit.output());
        self.idle().push(worker);
    }
}

/// One thread's parser and conditions.
pub(super) struct Worker<'s> {
    setup: &'s Setup,
    reader: FormatReader,
    state: State<'s>,
}

struct State<'s> {
    setup: &'s Setup,
    /// The columns and lists that the sieve is bound to.
    stage: Arc<Stage>,
    sieve: Sieve,
    /// The conditions that are true for a message.
    found: Vec<u32>,
    shower: Option<Shower>,
    again: Vec<ReboundConditions>,
}

/// Conditions bound to other column types, with a parser for them.
struct ReboundConditions {
    stage: usize,
    misfits: Misfits,
    reader: FormatReader,
    sieve: Sieve,
    rebound: Arc<Rebound>,
}

/// How far into a hole to search for the start of a message.
const HOLE_SEEN_BYTES: usize = 4 << 10;

/// Maximum number of misfit sets for which a worker keeps a parser.
const AGAIN_MAX: usize = 16;

impl<'s> Worker<'s> {
    pub(super) fn new(setup: &'s Setup) -> Self {
        let reader = setup.reader();
        let shower = Shower::new(&setup.output_kind, setup.reader());
        let stage = setup.rebinding.stage();
        let state = State {
            setup,
            sieve: stage.sieve.clone(),
            stage,
            found: Vec::new(),
            shower,
            again: Vec::new(),
        };
        Worker { setup, reader, state }
    }

    /// Gives the conditions columns for all elements of lists that any worker has seen so far. Returns whether
    /// that changed the numbers of columns.
    pub(super) fn catch_up(&mut self) -> bool {
        let stage = self.setup.rebinding.stage();
        if stage.number == self.state.stage.number {
            return false;
        }
        let mut sieve = stage.sieve.clone();
        sieve.inherit_seen(&self.state.sieve);
        // The parser refers to the sieve's columns by number.
        self.reader = self.setup.reader();
        (self.state.sieve, self.state.stage) = (sieve, stage);
        self.state.again.clear();
        true
    }

    /// The conditions, which receive the fields of messages.
    #[inline(always)]
    pub(super) fn row(&mut self) -> &mut Sieve {
        &mut self.state.sieve
    }

    /// Whether the conditions need the lengths of lists.
    pub(super) fn takes_list_ends(&self) -> bool {
        self.state.sieve.takes_list_ends()
    }

    /// The columns that the conditions are bound to.
    pub(super) fn schema(&self) -> &Schema {
        &self.state.stage.schema
    }

    /// Evaluates one message, whose fields the conditions have received.
    #[inline(always)]
    pub(super) fn evaluate(&mut self, message: &[u8], found: &mut ChunkOutput) {
        let mut sift = Sift {
            state: &mut self.state,
            found,
            data: message,
            is_end: true,
            unreadable: (0, &[]),
            counted: (0, 0),
            line_feeds: (0, 0),
        };
        sift.commit(message, 0, 0);
    }

    /// Takes the messages that start and end in a chunk.
    fn chunk(&mut self, chunk: &pipeline::Chunk<'_>, found: &mut ChunkOutput) {
        let data = chunk.data;
        if self.setup.hidden.are_in_order() {
            // The sink, which sees chunks in order, reads them instead.
            (found.head, found.tail) = (data.len(), data.len());
            return;
        }
        // If no message begins in the first zeros of a hole, none begins in the rest.
        let seen = if chunk.is_hole { &data[..data.len().min(HOLE_SEEN_BYTES)] } else { data };
        let start = match self.reader.is_found_anywhere() {
            _ if chunk.at_start => Some(self.setup.first.min(data.len())),
            true => self.reader.start(seen, 0),
            // The sink, which orders the chunks, corrects a wrong guess.
            false => self.reader.guess(seen),
        };
        found.head = start.unwrap_or(data.len());
        found.tail = found.head;
        if start.is_some() {
            self.take(chunk, (found.head, 0), (false, false), found);
        }
    }

    /// Reads the messages of a chunk from `at` on, which may lie inside a message that is too long,
    /// including the last one if the source ends there. If messages are read in order, `line_feeds`
    /// precede the chunk in the source.
    pub(super) fn take(
        &mut self,
        chunk: &pipeline::Chunk<'_>,
        (at, line_feeds): (usize, u64),
        (is_inside, is_end): (bool, bool),
        found: &mut ChunkOutput,
    ) {
        self.catch_up();
        let data = chunk.data;
        found.counts.resize(self.setup.sieve.conditions(), 0);
        let mut messages =
            Chunk { bytes: data, at, until: data.len(), is_end, is_inside, lines: 0 };
        let mut sift = Sift {
            state: &mut self.state,
            found,
            data,
            is_end,
            unreadable: (chunk.offset, chunk.unreadable),
            counted: (at, 0),
            line_feeds: (0, line_feeds),
        };
        sift.state.sieve.clear();
        self.reader.read(&mut messages, &mut sift);
        if let Some(shower) = &mut self.state.shower {
            shower.finish(&mut found.shown);
        }
        (found.tail, found.is_inside, found.lines) =
            (messages.at, messages.is_inside, messages.lines);
    }

    /// Whether any message had this column of the schema, with or without a value.
    pub(super) fn has_seen(&self, column: usize) -> bool {
        self.state.sieve.has_seen(column)
    }

    /// Whether any formatted message had a field of this name.
    pub(super) fn has_shown(&self, name: &str) -> bool {
        self.state.shower.as_ref().is_some_and(|shower| shower.has_seen(name))
    }

    /// The fields of all messages with their types, in a run that infers types.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (&str, &KindFinder)> {
        self.state.shower.iter().flat_map(Shower::kinds)
    }

    /// Fields that have no column in the rows.
    pub(super) fn fields_left_out(&self) -> Vec<String> {
        self.state.shower.as_ref().map(Shower::left_out).unwrap_or_default()
    }
}

/// The reject reason of a message near bad sectors.
const UNREADABLE: &str = "part of it could not be read";

/// Receives messages from the parser.
struct Sift<'w, 's, 'c> {
    state: &'w mut State<'s>,
    found: &'w mut ChunkOutput,
    data: &'c [u8],
    is_end: bool,
    /// The chunk's offset, and the unreadable ranges of the source.
    unreadable: (u64, &'c [std::ops::Range<u64>]),
    /// An offset, and the number of lines that end before it.
    counted: (usize, u64),
    /// An offset, and the number of line feeds before it in the source, if messages are read in order.
    line_feeds: (usize, u64),
}

impl Taker for Sift<'_, '_, '_> {
    type Row = Sieve;

    #[inline(always)]
    fn row(&mut self) -> &mut Sieve {
        &mut self.state.sieve
    }

    #[inline(always)]
    fn commit(&mut self, message: &[u8], _at: usize, _line: u64) {
        self.found.messages += 1;
        if !self.state.setup.hidden.tested.is_none() {
            let placed = self.placed(message);
            placed.put(self.state.setup.hidden.tested, &mut self.state.sieve);
        }
        self.state.sieve.complete();
        if self.state.sieve.fits() && self.unreadable.1.is_empty() {
            match self.found.counts.as_mut_slice() {
                [count] => match self.state.sieve.is_true(0) {
                    Ok(false) => {}
                    Ok(true) => {
                        *count += 1;
                        self.matched(message);
                    }
                    Err(fault) => self.broken(message, 0, fault),
                },
                _ => self.each(message),
            }
        } else {
            self.unusual(message);
        }
        self.state.sieve.clear();
    }

    #[cold]
    fn reject(&mut self, reject: Rejected<'_>) {
        self.state.sieve.clear();
        self.found.rejected += 1;
        if self.keeps_reject() {
            let reason = match self.is_unreadable(reject.at, reject.bytes.len()) {
                true => UNREADABLE.to_string(),
                false => reject.fault.to_string(),
            };
            let (at, line, bytes) = (reject.at, reject.line, self.excerpt(reject.bytes));
            self.found.rejects.push(Reject { at, line, reason, bytes });
        }
    }
}

impl Sift<'_, '_, '_> {
    /// The offset of a message in the data.
    fn place(&self, message: &[u8]) -> usize {
        message.as_ptr() as usize - self.data.as_ptr() as usize
    }

    /// The message with its position. Calls must be in rising order.
    #[cold]
    fn placed<'m>(&mut self, message: &'m [u8]) -> PlacedMessage<'m> {
        let at = self.place(message);
        let mut line = 0;
        if self.state.setup.hidden.are_in_order() {
            let (from, before) = self.line_feeds;
            line = before + memchr_iter(b'\n', &self.data[from.min(at)..at]).count() as u64;
            self.line_feeds = (at, line);
        }
        PlacedMessage { line: line + 1, offset: self.unreadable.0 + at as u64, bytes: message }
    }

    fn matched(&mut self, message: &[u8]) {
        if self.found.broken.is_some() || self.state.setup.output_kind == OutputKind::Count {
            return;
        }
        let at = self.place(message);
        let shown = self.state.setup.hidden.shown;
        let placed = (!shown.is_none()).then(|| (shown, self.placed(message)));
        if let Some(shower) = &mut self.state.shower
            && let Err(reason) =
                shower.show((self.data, at, self.is_end), placed, &mut self.found.shown)
        {
            self.found.counts.iter_mut().for_each(|count| *count -= 1);
            return self.left_out(message, reason);
        }
        if self.state.setup.output_kind == OutputKind::Kinds {
            return;
        }
        if self.state.setup.output_kind == OutputKind::Matches {
            self.found.matches.push(0);
        }
        self.found.spans.push((at as u32, (at + message.len()) as u32));
    }

    /// Evaluates several conditions.
    fn each(&mut self, message: &[u8]) {
        let is_wanted = self.state.setup.output_kind == OutputKind::Matches
            && self.found.counts.len() > 1
            && self.found.broken.is_none();
        let at = self.place(message);
        let span = (at as u32, (at + message.len()) as u32);
        let State { sieve, found, .. } = &mut *self.state;
        if let Err((condition, fault)) = sieve.all_true(found) {
            return self.broken(message, condition, fault);
        }
        for condition in found {
            self.found.counts[*condition as usize] += 1;
            if is_wanted {
                self.found.spans.push(span);
                self.found.matches.push(*condition);
            }
        }
    }

    #[cold]
    fn broken(&mut self, message: &[u8], condition: usize, fault: quarrier_filter::Fault) {
        if self.found.broken.is_none() {
            let at = self.place(message);
            let line = self.line(at);
            self.found.broken = Some(Broken { at, line, condition, fault });
        }
    }

    /// Whether some of the bytes at `at` could not be read from the source.
    fn is_unreadable(&self, at: usize, length: usize) -> bool {
        let start = self.unreadable.0 + at as u64;
        let end = start + length as u64;
        self.unreadable.1.iter().any(|range| range.start < end && start < range.end)
    }

    /// Handles a message that has values of unexpected types or is near bytes that were not read.
    #[cold]
    fn unusual(&mut self, message: &[u8]) {
        if self.is_unreadable(self.place(message), message.len()) {
            return self.left_out(message, UNREADABLE.to_string());
        }
        if self.state.sieve.fits() {
            return self.evaluated(message);
        }
        let at = self.place(message);
        let stage = match self.state.sieve.beyond() {
            [] => Arc::clone(&self.state.stage),
            beyond => match self.state.setup.rebinding.with_elements(beyond) {
                Ok(stage) => stage,
                Err(error) => {
                    let fault = quarrier_filter::Fault::Argument { reason: error.to_string() };
                    return self.broken(message, 0, fault);
                }
            },
        };
        let tested = self.state.setup.hidden.tested;
        let placed = (!tested.is_none()).then(|| (tested, self.placed(message)));
        let misfits = misfits_of(&self.state.sieve);
        self.read_again((&stage, misfits.clone()), at, placed);
        // Elements that had no column may not fit either.
        let mut more = misfits_of(&self.state.again[0].sieve);
        if !more.is_empty() {
            more.extend(misfits);
            more.sort_by_key(|misfit| misfit.0);
            more.dedup_by_key(|misfit| misfit.0);
            self.read_again((&stage, more), at, placed);
        }
        let rebound = Arc::clone(&self.state.again[0].rebound);
        self.note_misfits(at, &rebound);
        std::mem::swap(&mut self.state.sieve, &mut self.state.again[0].sieve);
        self.evaluated(message);
        std::mem::swap(&mut self.state.sieve, &mut self.state.again[0].sieve);
    }

    /// Records the misfitting values for the sink: whether the conditions may continue depends on all
    /// earlier messages.
    fn note_misfits(&mut self, at: usize, rebound: &Rebound) {
        for nth in 0..self.state.again[0].misfits.len() {
            let (column, kind) = self.state.again[0].misfits[nth];
            // If numbers are only compared with constants, the number of decimals does not matter.
            let kind = match kind {
                Kind::Decimal { .. } if !rebound.sieve.is_held(column) => Kind::Integer,
                kind => kind,
            };
            let mut known = self.found.misfits.iter();
            if !known.any(|known| (known.column, known.kind) == (column, kind)) {
                let line = self.line(at);
                self.found.misfits.push(Misfit { at, line, column, kind });
            }
        }
    }

    fn evaluated(&mut self, message: &[u8]) {
        let before = self.found.counts.first().copied();
        self.each(message);
        if let [count] = self.found.counts.as_slice()
            && Some(*count) != before
        {
            self.matched(message);
        }
    }

    /// Reads the message at `at` again with conditions bound to its types. These conditions move to
    /// the front of `again`.
    fn read_again(
        &mut self,
        (stage, misfits): (&Stage, Misfits),
        at: usize,
        placed: Option<(HiddenColumns, PlacedMessage<'_>)>,
    ) {
        let all = &mut self.state.again;
        let known =
            |again: &ReboundConditions| again.stage == stage.number && again.misfits == misfits;
        match all.iter().position(known) {
            Some(at) => all.swap(0, at),
            None => {
                all.truncate(AGAIN_MAX - 1);
                let setup = self.state.setup;
                let rebound = setup.rebinding.rebound(stage, &misfits);
                let (stage, reader, sieve) = (stage.number, setup.reader(), rebound.sieve.clone());
                all.insert(0, ReboundConditions { stage, misfits, reader, sieve, rebound });
            }
        }
        let again = &mut all[0];
        again.sieve.clear();
        read_one(&mut again.reader, self.data, at, self.is_end, &mut again.sieve);
        if let Some((tested, placed)) = placed {
            placed.put(tested, &mut again.sieve);
        }
        again.sieve.complete();
    }

    fn keeps_reject(&self) -> bool {
        self.state.setup.lists_rejects || self.found.rejects.is_empty()
    }

    /// Rejects a message that parsed correctly.
    fn left_out(&mut self, message: &[u8], reason: String) {
        self.found.messages -= 1;
        self.found.rejected += 1;
        if self.keeps_reject() {
            let at = self.place(message);
            let (line, bytes) = (self.line(at), self.excerpt(message));
            self.found.rejects.push(Reject { at, line, reason, bytes });
        }
    }

    fn excerpt(&self, message: &[u8]) -> Box<[u8]> {
        message[..message.len().min(self.state.setup.limits.reject_bytes_max)].into()
    }

    /// The number of lines in the data that start before the one at `at`. Calls must be in rising
    /// order.
    fn line(&mut self, at: usize) -> u64 {
        let (from, lines) = self.counted;
        let lines = lines + memchr_iter(b'\n', &self.data[from.min(at)..at]).count() as u64;
        self.counted = (at, lines);
        lines
    }
}

/// The columns that do not fit a row, each once.
fn misfits_of(sieve: &Sieve) -> Misfits {
    let mut misfits = sieve.misfits().to_vec();
    misfits.sort_unstable_by_key(|misfit| misfit.0);
    misfits.dedup_by_key(|misfit| misfit.0);
    misfits
}

/// Reads the message at `at` once more.
pub(super) fn read_one<R: quarrier_messages::build::Row>(
    reader: &mut FormatReader,
    data: &[u8],
    at: usize,
    is_end: bool,
    row: &mut R,
) {
    let mut chunk = Chunk { bytes: data, at, until: at + 1, is_end, is_inside: false, lines: 0 };
    reader.read(&mut chunk, &mut One { row });
}

/// Takes one message that is known to be valid.
struct One<'r, R> {
    row: &'r mut R,
}

impl<R: quarrier_messages::build::Row> Taker for One<'_, R> {
    type Row = R;

    fn row(&mut self) -> &mut R {
        self.row
    }

    fn commit(&mut self, _message: &[u8], _at: usize, _line: u64) {}

    fn reject(&mut self, _reject: Rejected<'_>) {}
}
