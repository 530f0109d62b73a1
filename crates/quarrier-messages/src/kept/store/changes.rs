//! Reads the changes of a table: its durable messages after any mark.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_core::sync::lock;

use super::Store;
use crate::kept::changes::Changes;
use crate::kept::index::Extent;
use crate::kept::snapshot::{Making, Snapshot};
use crate::log::{self, Growth, Log, LogState};
use crate::{Error, Result, Schema};

/// Bytes of messages to parse at once, unless one batch has more.
const STEP_BYTES: u64 = 4 << 20;

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
        let from = after.saturating_add(1);
        let (number, extents, mark) = {
            let state = lock(&self.state);
            let number = self.number(&state, name)?;
            let oldest = self.first_mark(&state, number);
            if from < oldest {
                return Err(Error::Log(log::Error::Gone { mark: from, oldest }));
            }
            let all = state.index.extents(number);
            let first = all.partition_point(|extent| extent.marks.end <= from);
            let all = &all[first..];
            let mut bytes = 0;
            let is_in = |extent: &&Extent| {
                let is_first = bytes == 0;
                bytes += extent.message_bytes();
                extent.marks.start <= until && (is_first || bytes <= STEP_BYTES)
            };
            let extents: Vec<Extent> = all.iter().take_while(is_in).cloned().collect();
            let mark = mark_before(all.get(extents.len()), state.index.next_mark);
            (number, extents, mark.min(until))
        };
        if let Some(definition) = self.keyed_definition(number) {
            return self.keyed_changes((name, number, &definition), (&extents, mark), stop);
        }
        let (place, files) = (&self.named(name), &self.files);
        let making =
            Making { name: place, files, workers: 1, stop, schema: Some(schema), is_tended: false };
        let table = Arc::new(making.parsed(&extents)?);
        Changes::new(table, &extents, mark).ok_or_else(|| self.uneven(name))
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

/// Returns the last mark before a batch; without one, the last mark of all.
fn mark_before(next: Option<&Extent>, next_mark: u64) -> u64 {
    next.map_or(next_mark, |extent| extent.marks.start).saturating_sub(1)
}
