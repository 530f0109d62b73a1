//! Reads the changes of a table: its durable messages after any mark.

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, MutexGuard, TryLockError};

use quarrier_core::sync::lock;

use super::steps::StepKey;
use super::{State, Store};
use crate::kept::changes::{Changes, ReadyChanges};
use crate::kept::index::Extent;
use crate::kept::snapshot::{Making, Snapshot};
use crate::log::{self, Growth, Log, LogState};
use crate::{Error, Result, Schema, Table};

/// Bytes of messages to parse at once, unless one batch has more.
const STEP_BYTES: u64 = 4 << 20;
/// Number of attempts to get the state without waiting: others hold it for microseconds, with few exceptions.
const LOCK_ATTEMPTS_MAX: usize = 32;

impl Store {
    /// Returns a handle for waiting until any table has new messages; None if the folder is open for reading
    /// only.
    pub fn growth(&self) -> Option<Growth> {
        self.log.as_ref().map(Log::growth)
    }

    /// Returns the state of the log; None if the folder is open for reading only.
    ///
    /// # Errors
    /// [`Error::Log`] if the folder cannot be listed.
    pub fn log_state(&self) -> Result<Option<LogState>> {
        Ok(self.log.as_ref().map(Log::state).transpose()?)
    }

    /// Returns all messages of a table, like [`Store::table`].
    ///
    /// # Errors
    /// As [`Store::table`].
    ///
    /// # Panics
    /// If a worker panics.
    pub fn whole(&self, name: &str, workers: usize, stop: &AtomicBool) -> Result<Changes> {
        loop {
            self.table(name, workers, stop)?;
            let state = lock(&self.state);
            let number = self.number(&state, name)?;
            // Meanwhile, more messages may have arrived, and a table of all of them may have been built. Or
            // retention may have removed some, or a rebuild the table.
            let listed = state.index.listed(number);
            let snapshot = state.snapshots.get(&number).filter(|it| it.gone == listed.gone);
            let Some(Snapshot { table, end, marked, .. }) = snapshot.cloned() else { continue };
            let (all, batches) = (listed.extents.as_slice(), listed.before(end));
            let mark = mark_before(all.get(batches), state.index.next_mark);
            if let Some(marked) = marked {
                return Ok(Changes::marked(table, marked, mark));
            }
            let extents = all.get(..batches).unwrap_or(all);
            return Changes::new(table, extents, mark).ok_or_else(|| self.uneven(name));
        }
    }

    /// Returns the messages of a table with marks above `after`, as many as are parsed at once; none if there
    /// are no new ones. Their columns are those of `schema`, widened if a value requires it. Batches are
    /// indivisible, so the first messages may have lower marks, and the last ones marks above `until`. For a
    /// table with a key, the result also has the rows that these messages replaced or removed.
    ///
    /// # Errors
    /// [`Error::Log`] with [`log::Error::Gone`] if retention removed the next messages; otherwise as
    /// [`Store::table`].
    ///
    /// # Panics
    /// If a worker panics.
    pub fn changes(
        &self,
        name: &str,
        (after, until): (u64, u64),
        schema: &Schema,
        stop: &AtomicBool,
    ) -> Result<Changes> {
        self.refresh();
        let (number, extents, step, end) = {
            let state = lock(&self.state);
            let number = self.number(&state, name)?;
            let from = self.first_of_changes(&state, number, after)?;
            let extents = some_from(state.index.extents(number), (from, until));
            let (Some(first), Some(last)) = (extents.first(), extents.last()) else {
                return Ok(nothing(schema, state.index.next_mark, until));
            };
            let bytes = extents.iter().map(Extent::message_bytes).sum();
            let key = StepKey { table: number, gone: state.index.gone(number), schema };
            let step = self.steps.claim(&key, first.marks.start..last.marks.end, bytes);
            // Later, retention may have removed the next messages, which must not be skipped.
            let end = end_of(&state, number, &step.marks()).min(until);
            if let Some(parsed) = step.ready() {
                return Ok(parsed.up_to(end));
            }
            // Another reader may have claimed other batches around the first one.
            let extents = batches_of(state.index.extents(number), &step.marks()).to_vec();
            (number, extents, step, end)
        };
        let parsed = step.parsed(|| self.parsed_changes((name, number), &extents, schema, stop))?;
        Ok(parsed.up_to(end))
    }

    /// Like [`Store::changes`], but only if another reader has parsed the messages, or if there are none: takes
    /// no time, and does not wait for other threads. None in all other cases, also for errors.
    pub fn changes_ready(
        &self,
        name: &str,
        (after, until): (u64, u64),
        schema: &Schema,
    ) -> Option<ReadyChanges> {
        let mut state = self.state_now()?;
        if let Some(log) = &self.log {
            self.take_placed(log, &mut state);
        }
        let number = self.number(&state, name).ok()?;
        let from = self.first_of_changes(&state, number, after).ok()?;
        let all = state.index.extents(number);
        let first = all.get(all.partition_point(|extent| extent.marks.end <= from));
        let Some(first) = first.filter(|first| first.marks.start <= until) else {
            let end = state.index.next_mark.saturating_sub(1).min(until);
            return Some(ReadyChanges::Nothing(end));
        };
        let key = StepKey { table: number, gone: state.index.gone(number), schema };
        let step = self.steps.find(&key, first.marks.start)?;
        let end = end_of(&state, number, &step.marks()).min(until);
        Some(ReadyChanges::Parsed(step.ready()?.up_to(end)))
    }

    /// Returns the bytes of the messages of a table with marks above `after`, in whole batches.
    ///
    /// # Errors
    /// [`Error::Store`] if no table has this name.
    pub fn bytes_after(&self, name: &str, after: u64) -> Result<u64> {
        self.refresh();
        let state = lock(&self.state);
        let all = state.index.extents(self.number(&state, name)?);
        let first = all.partition_point(|extent| extent.marks.end <= after.saturating_add(1));
        Ok(all[first..].iter().map(Extent::message_bytes).sum())
    }

    /// Locks the state unless another thread holds it for long, such as to apply retention.
    fn state_now(&self) -> Option<MutexGuard<'_, State>> {
        for _ in 0..LOCK_ATTEMPTS_MAX {
            match self.state.try_lock() {
                Ok(state) => return Some(state),
                Err(TryLockError::Poisoned(state)) => return Some(state.into_inner()),
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            }
        }
        None
    }

    /// Returns the mark of the first message after a mark, if the table still has all of them.
    fn first_of_changes(&self, state: &State, number: u32, after: u64) -> Result<u64> {
        let (from, oldest) = (after.saturating_add(1), self.first_mark(state, number));
        match from < oldest {
            true => Err(Error::Log(log::Error::Gone { mark: from, oldest })),
            false => Ok(from),
        }
    }

    /// Parses the messages of a step.
    fn parsed_changes(
        &self,
        (name, number): (&str, u32),
        extents: &[Extent],
        schema: &Schema,
        stop: &AtomicBool,
    ) -> Result<Changes> {
        let end = extents.last().map_or(0, |last| last.marks.end.saturating_sub(1));
        if let Some(definition) = self.keyed_definition(number) {
            return self.keyed_changes((name, number, &definition), (extents, end), stop);
        }
        let (place, files) = (&self.named(name), &self.files);
        let making =
            Making { name: place, files, workers: 1, stop, schema: Some(schema), is_tended: false };
        let table = Arc::new(making.parsed(extents)?);
        Changes::new(table, extents, end).ok_or_else(|| self.uneven(name))
    }

    /// Returns the last mark before the messages of a table that were committed at `time_us`, in microseconds
    /// since 1970, or later.
    ///
    /// # Errors
    /// As [`Store::table`].
    pub fn mark_before(&self, name: &str, time_us: i64) -> Result<u64> {
        self.refresh();
        let state = lock(&self.state);
        let all = state.index.extents(self.number(&state, name)?);
        // Commit times never go back.
        let first = all.partition_point(|extent| extent.time_us < time_us);
        Ok(mark_before(all.get(first), state.index.next_mark))
    }

    fn uneven(&self, name: &str) -> Error {
        let reason = "batches have other messages than their headers say; 'quarrier reindex' looks \
                      through the log";
        Error::Store { place: self.named(name), reason: reason.to_string() }
    }
}

/// Returns the batches with marks from `from` on: as many as are parsed at once, and none after `until`.
fn some_from(all: &[Extent], (from, until): (u64, u64)) -> &[Extent] {
    let all = &all[all.partition_point(|extent| extent.marks.end <= from)..];
    let mut bytes = 0;
    let is_in = |extent: &&Extent| {
        let is_first = bytes == 0;
        bytes += extent.message_bytes();
        extent.marks.start <= until && (is_first || bytes <= STEP_BYTES)
    };
    &all[..all.iter().take_while(is_in).count()]
}

/// Returns the batches of a step.
fn batches_of<'e>(all: &'e [Extent], marks: &Range<u64>) -> &'e [Extent] {
    let first = all.partition_point(|extent| extent.marks.start < marks.start);
    let end = all.partition_point(|extent| extent.marks.end <= marks.end);
    all.get(first..end).unwrap_or_default()
}

/// Returns the last mark before the batch that follows a step.
fn end_of(state: &State, number: u32, marks: &Range<u64>) -> u64 {
    let all = state.index.extents(number);
    let next = all.get(all.partition_point(|extent| extent.marks.end <= marks.end));
    mark_before(next, state.index.next_mark).max(marks.end.saturating_sub(1))
}

/// Returns changes without messages, complete up to the mark before `next_mark`, or up to `until`.
fn nothing(schema: &Schema, next_mark: u64, until: u64) -> Changes {
    let table = Table::assemble_as(schema, Vec::new(), 1);
    Changes::listed(table, Vec::new(), next_mark.saturating_sub(1).min(until))
}

/// Returns the last mark before a batch; without one, the last mark of all.
fn mark_before(next: Option<&Extent>, next_mark: u64) -> u64 {
    next.map_or(next_mark, |extent| extent.marks.start).saturating_sub(1)
}
