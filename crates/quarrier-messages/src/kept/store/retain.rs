//! Removes the messages of tables with retention, and the segments of the log that no table needs any longer.
//!
//! A table has the messages from its first mark on. First that mark is stored; from then on no process sees an
//! earlier message, in any order of crashes. Then the index is stored, which has the publishers of all batches.
//! Then segments are removed, the oldest first.

use quarrier_core::sync::lock;

use super::{State, Store};
use crate::kept::index_file;
use crate::kept::retained::{Bounds, Retained};
use crate::log::Retention;
use crate::{Error, Result};

/// The effect of applying retention.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetainResult {
    /// Number of messages that tables have lost.
    pub messages: u64,
    /// Number of segments removed from the log.
    pub segments: u64,
    /// The bytes of these segments.
    pub bytes: u64,
}

impl Store {
    /// Returns the bounds of a table.
    ///
    /// # Errors
    /// [`Error::Store`] if no table has this name.
    pub fn retention(&self, name: &str) -> Result<Retention> {
        let state = lock(&self.state);
        Ok(state.retained.bounds(self.number(&state, name)?).retention)
    }

    /// Bounds a table: [`Store::retain`] removes the messages that exceed the bounds, the oldest first, and with
    /// them their rows. It does so in steps of a sixteenth of the bound and in whole batches, so the oldest rows
    /// may be that much older. In a table with a key, a row goes away when its latest message does. Without
    /// bounds, the table keeps all messages.
    ///
    /// # Errors
    /// [`Error::Store`] if no table has this name; [`Error::Log`] if the disk is full or fails.
    pub fn set_retention(&self, name: &str, retention: Retention) -> Result<()> {
        self.writer()?;
        let mut state = lock(&self.state);
        let number = self.number(&state, name)?;
        let bounds = Bounds { retention, ..state.retained.bounds(number) };
        let mut retained = state.retained.clone();
        retained.set(number, bounds);
        self.put_retained(&mut state, retained)
    }

    /// Applies the bounds of all tables, and removes the segments of the log in which no table has messages.
    /// Never removes a segment that the stored index does not cover, the last segment, or a segment of a damaged
    /// log.
    ///
    /// # Errors
    /// [`Error::Store`] if the folder is open for reading only; [`Error::Log`] if the disk is full or fails.
    /// Tables are intact even then, and the next call continues.
    pub fn retain(&self) -> Result<RetainResult> {
        let _alone = lock(&self.retaining);
        let (log, mut result) = (self.writer()?, RetainResult::default());
        let needed = {
            let mut state = lock(&self.state);
            self.take_placed(log, &mut state);
            state.retained_at = state.appended_bytes;
            result.messages = self.cut(&mut state)?;
            let needed = state.index.oldest_mark();
            let is_next = !self.recovered.is_damaged() && log.is_any_before(needed)?;
            if !is_next {
                return Ok(result);
            }
            if state.retained.removed < needed {
                let mut retained = state.retained.clone();
                retained.removed = needed;
                self.put_retained(&mut state, retained)?;
            }
            if let Some(disk) = &self.disk {
                let disks = (disk.as_ref(), self.logs.as_ref());
                index_file::write(disks, &state.index, &log.publishers())?;
                state.indexed_bytes = state.index.stored_bytes;
            }
            needed
        };
        let all = Retention { bytes_max: Some(0), age_max: None };
        let removed = log.retain(all, needed)?;
        (result.segments, result.bytes) = (removed.segments, removed.bytes);
        Ok(result)
    }

    /// Moves the first marks of tables past the messages that exceed their bounds. Returns the number of these.
    fn cut(&self, state: &mut State) -> Result<u64> {
        let (now_us, next_mark) = (self.logs.now_us(), state.index.next_mark);
        let mut retained = state.retained.clone();
        let mut cuts = Vec::new();
        for (number, bounds) in state.retained.tables() {
            let extents = state.index.extents(number);
            let excess = bounds.excess(extents, now_us);
            if excess > 0 {
                let from = extents.get(excess).map_or(next_mark, |first| first.marks.start);
                retained.set(number, Bounds { from, ..bounds });
                cuts.push((number, excess));
            }
        }
        if cuts.is_empty() {
            return Ok(0);
        }
        self.put_retained(state, retained)?;
        let cut = |(number, excess)| state.index.forget_first(number, excess);
        let messages = cuts.into_iter().map(cut).sum();
        state.indexed_bytes = state.indexed_bytes.min(state.index.stored_bytes);
        Ok(messages)
    }

    /// Stores the retention of all tables.
    fn put_retained(&self, state: &mut State, retained: Retained) -> Result<()> {
        let disk = self.disk.as_ref().ok_or_else(|| Error::Store {
            place: self.place.clone(),
            reason: "is a segment, not a data folder, and has no retention".to_string(),
        })?;
        retained.write(disk.as_ref())?;
        state.retained = retained;
        Ok(())
    }

    /// Applies retention if enough was appended since the last time, for a long load.
    pub(super) fn retain_after(&self, bytes: u64) {
        let is_due = {
            let state = lock(&self.state);
            let has_bounds = state.retained.tables().next().is_some();
            has_bounds && state.appended_bytes - state.retained_at >= bytes
        };
        if is_due {
            // A failure does not affect the load, and the next call continues.
            let _ = self.retain();
        }
    }
}

impl State {
    /// Forgets batches that retention removed from their tables.
    pub(super) fn apply_retained(&mut self) {
        let retained = &self.retained;
        for (number, Bounds { from, .. }) in retained.tables() {
            let extents = self.index.extents(number);
            let gone = extents.partition_point(|extent| extent.marks.start < from);
            self.index.forget_first(number, gone);
        }
    }
}
