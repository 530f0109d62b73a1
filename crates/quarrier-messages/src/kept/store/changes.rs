//! Who follows a table: its messages as far as they are durable, from any mark on.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_core::sync::lock;

use super::Store;
use crate::kept::changes::Changes;
use crate::kept::index::Extent;
use crate::kept::snapshot::Making;
use crate::log::{self, Growth, Log};
use crate::{Error, Result, Schema};

/// Messages of so many bytes are parsed at once, or one batch of more.
const STEP_BYTES: u64 = 4 << 20;

impl Store {
    /// For whoever waits for messages to come, in whatever table; None where it is open for reading only.
    pub fn growth(&self) -> Option<Growth> {
        self.log.as_ref().map(Log::growth)
    }

    /// All messages of a table, as [`Store::table`] has them.
    ///
    /// # Errors
    /// As [`Store::table`].
    ///
    /// # Panics
    /// When a worker panics.
    pub fn whole(&self, name: &str, workers: usize, stop: &AtomicBool) -> Result<Changes> {
        let table = self.table(name, workers, stop)?;
        let state = lock(&self.state);
        let number = self.number(&state, name)?;
        let all = state.index.extents(number);
        // While it was made, more may have come, and another table of all that.
        let snapshot = state.snapshots.get(&number);
        let (table, batches) = match snapshot {
            Some(snapshot) => (Arc::clone(&snapshot.table), snapshot.batches),
            None => (table, all.len()),
        };
        let mark = mark_before(all.get(batches), state.index.next_mark);
        if let Some(marked) = snapshot.and_then(|snapshot| snapshot.marked.as_ref()) {
            return Ok(Changes::marked(table, Arc::clone(marked), mark));
        }
        let extents = all.get(..batches).unwrap_or(all);
        Changes::new(table, extents, mark).ok_or_else(|| self.uneven(name))
    }

    /// The messages of a table with marks above `after`, as many as are parsed at once: none where nothing
    /// has come. Their columns are those of `schema`, wider where a value asks for it. Batches count as a
    /// whole, so the first messages may have lower marks, and the last ones marks above `until`. Of a table
    /// with a key, there are also the rows that these messages replaced or removed.
    ///
    /// # Errors
    /// [`Error::Log`] with [`log::Error::Gone`] where retention removed what comes next; else as
    /// [`Store::table`].
    ///
    /// # Panics
    /// When a worker panics.
    pub fn changes(
        &self,
        name: &str,
        (after, until): (u64, u64),
        schema: &Schema,
        stop: &AtomicBool,
    ) -> Result<Changes> {
        self.refresh();
        let from = after.saturating_add(1);
        if let Some(oldest) = self.recovered.oldest_mark.filter(|oldest| from < *oldest) {
            return Err(Error::Log(log::Error::Gone { mark: from, oldest }));
        }
        let (number, extents, mark) = {
            let state = lock(&self.state);
            let number = self.number(&state, name)?;
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
        let making = Making { name: place, files, workers: 1, stop, schema: Some(schema) };
        let table = Arc::new(making.parsed(&extents)?);
        Changes::new(table, &extents, mark).ok_or_else(|| self.uneven(name))
    }

    /// The last mark before the messages of a table that were committed at a time, in microseconds since
    /// 1970, or later.
    ///
    /// # Errors
    /// As [`Store::table`].
    pub fn mark_before(&self, name: &str, time_us: i64) -> Result<u64> {
        self.refresh();
        let state = lock(&self.state);
        let all = state.index.extents(self.number(&state, name)?);
        // Times of commits never go back.
        let first = all.partition_point(|extent| extent.time_us < time_us);
        Ok(mark_before(all.get(first), state.index.next_mark))
    }

    fn uneven(&self, name: &str) -> Error {
        let reason = "batches have other messages than their headers say; 'quarrier reindex' looks \
                      through the log";
        Error::Kept { place: self.named(name), reason: reason.to_string() }
    }
}

/// The last mark before a batch, or before the next message of all.
fn mark_before(next: Option<&Extent>, next_mark: u64) -> u64 {
    next.map_or(next_mark, |extent| extent.marks.start).saturating_sub(1)
}
