//! The end of the pipeline: joins messages that cross chunk borders, counts, and writes everything in
//! the order of the source.

use std::io;
use std::ops::ControlFlow;

use memchr::memchr_iter;
use quarrier_core::pipeline::{self, Sink};
use quarrier_messages::Kind;
use quarrier_messages::frame::Reader;

use super::again::{self, Printed, RereadReason};
use super::conditions::named_kind;
use super::rejects::{List, SourceRejects};
use super::watch::{Rows, Watch};
use super::worker::{Broken, ChunkOutput, Setup, Worker};
use crate::Error;

/// Counts over all sources.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    /// The number of matches of each condition.
    pub(super) counts: Vec<u64>,
    pub(super) messages: u64,
    pub(super) rejected: u64,
    pub(super) limit: u64,
}

impl Tally {
    pub(super) fn is_full(&self) -> bool {
        self.counts.first().is_some_and(|&count| count >= self.limit)
    }
}

/// Why a source's run ended early.
pub(super) enum Ended {
    /// The output was closed.
    Output(io::Error),
    /// The run failed, for this reason.
    Failed(Error),
    /// The conditions must be bound to the column types of all messages, and the run must start again.
    Again(RereadReason),
}

/// Receives the results of workers, in order.
pub(super) struct Drain<'d, 's> {
    pub(super) name: &'d str,
    pub(super) tally: &'d mut Tally,
    pub(super) watch: &'d mut dyn Watch,
    pub(super) list: &'d mut Option<List>,
    pub(super) source_rejects: SourceRejects,
    pub(super) ended: Option<Ended>,
    /// The output for this source so far.
    pub(super) printed: Printed,
    /// The output of an earlier run, which must not be repeated.
    earlier: Printed,
    setup: &'s Setup,
    /// For each column of the schema, the type that its first misfitting value needs.
    kinds: Vec<Option<Kind>>,
    /// Reads messages that cross chunk borders.
    worker: Worker<'s>,
    /// Whether messages can be found from any offset, instead of read in order.
    is_found_anywhere: bool,
    /// Whether the lines of messages are counted by their line feeds.
    counts_line_feeds: bool,
    message_bytes_max: usize,
    /// The start of the source's first message.
    first: usize,
    found: ChunkOutput,
    /// The bytes of an incomplete message.
    carry: Vec<u8>,
    /// Unreadable ranges near the carry.
    unreadable: Vec<std::ops::Range<u64>>,
    /// The offset of the carry in the source.
    offset: u64,
    /// The number of lines that start before the carry.
    lines: u64,
    /// The number of line feeds before the carry, if messages are read in order.
    line_feeds: u64,
    is_inside: bool,
}

impl<'d, 's> Drain<'d, 's> {
    pub(super) fn new(
        name: &'d str,
        setup: &'s Setup,
        watch: &'d mut dyn Watch,
        (tally, list): (&'d mut Tally, &'d mut Option<List>),
        earlier: Printed,
    ) -> Self {
        Drain {
            name,
            tally,
            watch,
            list,
            source_rejects: SourceRejects::default(),
            ended: None,
            printed: Printed::default(),
            earlier,
            setup,
            kinds: Vec::new(),
            worker: Worker::new(setup),
            is_found_anywhere: setup.reader().is_found_anywhere() && !setup.hidden.are_in_order(),
            counts_line_feeds: setup.reader().counts_line_feeds(),
            message_bytes_max: setup.limits.message_bytes_max,
            first: setup.first,
            found: ChunkOutput::default(),
            carry: Vec::new(),
            unreadable: Vec::new(),
            offset: 0,
            lines: 0,
            line_feeds: 0,
            is_inside: false,
        }
    }

    /// The offset of the first byte that belongs to no message read so far.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Ends the source: the remaining bytes are its last message.
    pub(super) fn finish(&mut self) {
        self.watch.end();
        if self.ended.is_none() && !self.tally.is_full() {
            let _ = self.mend(true);
        }
        if self.ended.is_none() && self.printed.rows < self.earlier.rows {
            self.ended = Some(Ended::Failed(again::differs(self.name)));
        }
    }

    /// Resets the state after a run that ended early.
    pub(super) fn clear(&mut self) {
        self.watch.end();
    }

    /// Returns the worker that reads messages across borders.
    pub(super) fn into_worker(self) -> Worker<'s> {
        self.worker
    }

    /// Takes the bytes before the first message that starts in a chunk.
    fn head(&mut self, chunk: &pipeline::Chunk<'_>, head: usize) -> ControlFlow<()> {
        let has_start = head < chunk.data.len();
        if self.is_inside && self.is_found_anywhere {
            // The bytes continue a message that is too long.
            if self.counts_line_feeds {
                self.lines += memchr_iter(b'\n', &chunk.data[..head]).count() as u64;
            }
            self.is_inside = !has_start;
            self.offset = chunk.offset + head as u64;
            return ControlFlow::Continue(());
        }
        self.carry_on(chunk, 0..head);
        let is_over = has_start && self.is_found_anywhere;
        if is_over || !self.is_found_anywhere || self.carry.len() > self.message_bytes_max {
            return self.mend(is_over);
        }
        ControlFlow::Continue(())
    }

    /// Whether a message can start at this offset, before which everything was read. Always true if
    /// messages can be found from any offset.
    fn is_border(&self, offset: u64) -> bool {
        self.is_found_anywhere || self.offset == offset && self.carry.is_empty() && !self.is_inside
    }

    /// Skips a hole inside a message that is too long: zeros never end it.
    fn passes_over(&mut self, chunk: &pipeline::Chunk<'_>) -> bool {
        let is_passed = chunk.is_hole && self.is_inside && self.carry.is_empty();
        if is_passed {
            self.offset = chunk.offset + chunk.data.len() as u64;
        }
        is_passed
    }

    fn carry_on(&mut self, chunk: &pipeline::Chunk<'_>, range: std::ops::Range<usize>) {
        self.carry.extend_from_slice(&chunk.data[range]);
        self.unreadable.extend_from_slice(chunk.unreadable);
    }

    /// Reads the messages in the carry, including the last one if it `is_over`.
    fn mend(&mut self, is_over: bool) -> ControlFlow<()> {
        if self.carry.is_empty() {
            return ControlFlow::Continue(());
        }
        let carry = std::mem::take(&mut self.carry);
        let mut found = std::mem::take(&mut self.found);
        let at = if self.offset == 0 { self.first.min(carry.len()) } else { 0 };
        // The line feeds of a header.
        self.lines += memchr_iter(b'\n', &carry[..at]).count() as u64;
        let unreadable = std::mem::take(&mut self.unreadable);
        let (offset, unreadable) = (self.offset, unreadable.as_slice());
        let place = pipeline::Chunk { offset, unreadable, ..pipeline::Chunk::whole(&carry) };
        self.worker.take(&place, (at, self.line_feeds), (self.is_inside, is_over), &mut found);
        let flow = self.emit(offset, &carry, &found);
        let rest = if found.is_inside || is_over { carry.len() } else { found.tail };
        self.offset += rest as u64;
        if self.setup.hidden.are_in_order() {
            self.line_feeds += memchr_iter(b'\n', &carry[..rest]).count() as u64;
        }
        self.is_inside = found.is_inside && !is_over;
        self.carry = carry;
        self.carry.drain(..rest);
        self.carry.shrink_to(4 << 20);
        found.clear();
        self.found = found;
        flow
    }

    /// Emits complete messages when the stream has no more bytes for now.
    fn hand_on(&mut self) -> ControlFlow<()> {
        if !(self.is_inside && self.is_found_anywhere) {
            self.mend(false)?;
        }
        match self.watch.pause() {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => self.end(Ended::Output(error)),
        }
    }

    /// Counts and writes the matches in `data`, which starts at `offset`.
    fn emit(&mut self, offset: u64, data: &[u8], found: &ChunkOutput) -> ControlFlow<()> {
        let room = self.tally.limit.saturating_sub(self.tally.counts.first().copied().unwrap_or(0));
        let is_cut = found.counts.first().is_some_and(|&count| count >= room);
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let cut_at = found.spans.get(room.wrapping_sub(1)).filter(|_| is_cut);
        let end = cut_at.map_or(usize::MAX, |&(_, end)| end as usize);
        if let Some(again) = self.contradiction(found, end, offset) {
            return self.end(Ended::Again(again));
        }
        let rejects = match found.spans.get(room.wrapping_sub(1)) {
            Some(&(_, end)) if is_cut => {
                let count = found.rejects.partition_point(|reject| reject.at < end as usize);
                &found.rejects[..count]
            }
            _ => &found.rejects[..],
        };
        if let Err(error) =
            self.source_rejects.add(self.name, (offset, self.lines), rejects, self.list)
        {
            return self.end(Ended::Failed(error));
        }
        self.source_rejects.count += found.rejected;
        self.tally.rejected += found.rejected;
        self.source_rejects.messages += found.messages + found.rejected;
        self.tally.messages += found.messages;
        for (sum, count) in self.tally.counts.iter_mut().zip(&found.counts) {
            *sum = sum.saturating_add(*count).min(self.tally.limit);
        }
        let rows = found.spans.len().min(room);
        let Some(known) = self.printed.add(&self.earlier, offset, &found.spans[..rows]) else {
            return self.end(Ended::Failed(again::differs(self.name)));
        };
        if known < rows
            && let Err(error) =
                self.watch.rows(&Rows::new(self.name, (offset, data), found, known..rows))
        {
            return self.end(Ended::Output(error));
        }
        if let Some(broken) = found.broken.as_ref().filter(|_| !is_cut) {
            let error = self.error_of(broken, offset);
            return self.end(Ended::Failed(error));
        }
        self.lines += found.lines;
        if self.tally.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Finds a value, before `end`, whose type changes the meaning of the conditions for earlier
    /// messages. The conditions must then be bound to the column's type over all messages.
    fn contradiction(
        &mut self,
        found: &ChunkOutput,
        end: usize,
        offset: u64,
    ) -> Option<RereadReason> {
        let rebinding = &self.setup.rebinding;
        if found.misfits.is_empty() {
            return None;
        }
        let stage = rebinding.stage();
        self.kinds.resize(stage.schema.fields.len(), None);
        for misfit in found.misfits.iter().filter(|misfit| misfit.at < end) {
            let field = &stage.schema.fields[misfit.column];
            let known = &mut self.kinds[misfit.column];
            let before = match (*known, field.kind) {
                // All values so far were NULL, whose type does not matter.
                (None, Kind::Null) => {
                    *known = Some(misfit.kind);
                    let bound = rebinding.rebound(&stage, &vec![(misfit.column, misfit.kind)]);
                    if !bound.is_wrong {
                        continue;
                    }
                    Kind::Null
                }
                (Some(known), Kind::Null) if known == misfit.kind => continue,
                (Some(known), Kind::Null) => known,
                (_, kind) => kind,
            };
            let said = format!(
                "{}: line {}, byte {}: '{}' is {} here, and was {} before",
                self.name,
                self.lines + misfit.line + 1,
                offset + misfit.at as u64,
                field.name.split('\0').next().unwrap_or_default(),
                named_kind(misfit.kind),
                named_kind(before)
            );
            return Some(RereadReason { said, printed: self.printed });
        }
        None
    }

    fn error_of(&self, broken: &Broken, offset: u64) -> Error {
        Error::NoValue {
            name: self.name.to_string(),
            line: self.lines + broken.line + 1,
            offset: offset + broken.at as u64,
            condition: (self.tally.counts.len() > 1).then_some(broken.condition),
            fault: broken.fault.clone(),
        }
    }

    fn end(&mut self, ended: Ended) -> ControlFlow<()> {
        self.ended = Some(ended);
        ControlFlow::Break(())
    }
}

impl Sink<ChunkOutput> for Drain<'_, '_> {
    fn take(&mut self, chunk: &pipeline::Chunk<'_>, found: &mut ChunkOutput) -> ControlFlow<()> {
        self.watch.advance(chunk.offset + chunk.own.end as u64);
        if self.passes_over(chunk) {
            found.clear();
            return ControlFlow::Continue(());
        }
        self.head(chunk, found.head)?;
        if found.head < chunk.data.len() && !self.is_border(chunk.offset + found.head as u64) {
            // A message that began earlier extends into the chunk, so the matches found in the chunk
            // are void.
            self.carry_on(chunk, found.head..chunk.data.len());
            self.mend(false)?;
        } else if found.head < chunk.data.len() {
            self.emit(chunk.offset, chunk.data, found)?;
            self.is_inside = found.is_inside;
            let tail = if found.is_inside { chunk.data.len() } else { found.tail };
            self.offset = chunk.offset + tail as u64;
            self.carry_on(chunk, tail..chunk.data.len());
        }
        found.clear();
        if chunk.at_pause { self.hand_on() } else { ControlFlow::Continue(()) }
    }
}
