//! Writes checkpoints of a data folder: the columns of tables, and the index of batches.

use quarrier_core::sync::lock;

use super::Store;
use crate::kept::columns::ColumnFiles;
use crate::kept::index::Listed;
use crate::kept::index_file;
use crate::kept::load::{LoadWatch, Progress};
use crate::kept::snapshot::Snapshot;
use crate::{Reject, Result};

/// The default of [`Store::checkpoint_every`]. Parsing this many bytes of messages takes a few tens of
/// milliseconds.
pub(super) const CHECKPOINT_BYTES: u64 = 64 << 20;
/// The index is rewritten when the bytes of new batches reach this fraction (1/4) of those that it covers.
const INDEX_SHARE: u64 = 4;

impl Store {
    /// Sets when columns and index are stored: the columns of a table whenever `bytes` bytes of its messages
    /// are new, and at least a quarter of the stored ones; the index when as many bytes of the log are new.
    /// The default is 64 MiB.
    #[must_use]
    pub fn checkpoint_every(mut self, bytes: u64) -> Store {
        self.checkpoint_bytes = bytes;
        self
    }

    /// Stores the columns of a table if this process may write and at least `every` bytes of messages are
    /// new; with None, any.
    pub(super) fn store(
        &self,
        number: u32,
        snapshot: &Snapshot,
        listed: &Listed,
        every: Option<u64>,
    ) -> crate::log::Result<()> {
        let Some(columns) = self.columns.as_ref().filter(|_| self.is_writable()) else {
            return Ok(());
        };
        let extents = listed.extents.get(..listed.before(snapshot.end)).unwrap_or_default();
        // Retention may have removed messages since the snapshot.
        match snapshot.gone == listed.gone && columns.is_due(number, extents, every) {
            true => columns.write(number, snapshot, listed),
            false => Ok(()),
        }
    }

    /// Stores the columns of all tables that were requested and have grown since, and the index of all
    /// batches. The next process that opens the folder then reads and parses only newer messages.
    ///
    /// # Errors
    /// [`Error::Log`](crate::Error::Log) if there is no space, or if the system reports an error. The earlier
    /// checkpoint then remains.
    pub fn checkpoint(&self) -> Result<()> {
        self.store_all(None)?;
        self.store_index(None)
    }

    pub(super) fn store_all(&self, every: Option<u64>) -> Result<()> {
        let made: Vec<(u32, Snapshot, Listed)> = {
            let state = lock(&self.state);
            let listed = |number: &u32| state.index.listed(*number);
            let snapshots = state.snapshots.iter();
            snapshots.map(|(number, it)| (*number, it.clone(), listed(number))).collect()
        };
        for (number, snapshot, listed) in made {
            self.store(number, &snapshot, &listed, every)?;
        }
        Ok(())
    }

    /// Returns notices since the last call about stored state that is not used, one line each.
    pub fn take_notices(&self) -> Vec<String> {
        let mut notices = std::mem::take(&mut *lock(&self.notices));
        notices.extend(self.columns.iter().flat_map(ColumnFiles::take_notices));
        notices
    }

    /// Stores the index of all batches if at least `every` bytes of the log are new, and a share of all; with
    /// None, if any are. Stores nothing for a damaged log, so that every process reads it whole and reports
    /// the damage.
    pub(super) fn store_index(&self, every: Option<u64>) -> Result<()> {
        let (Some(log), Some(disk)) = (&self.log, &self.disk) else { return Ok(()) };
        if self.recovered.is_damaged() {
            return Ok(());
        }
        let mut state = lock(&self.state);
        self.take_placed(log, &mut state);
        let (all, stored) = (state.index.stored_bytes, state.indexed_bytes);
        let more = all.saturating_sub(stored);
        if more == 0 || every.is_some_and(|every| more < every.max(stored / INDEX_SHARE)) {
            return Ok(());
        }
        // Do not retry at once, even if it fails.
        state.indexed_bytes = all;
        let disks = (disk.as_ref(), self.logs.as_ref());
        Ok(index_file::write(disks, &state.index, &log.publishers())?)
    }
}

/// Stores the index during a long load.
pub(super) struct Indexing<'i> {
    pub(super) store: &'i Store,
    pub(super) watch: &'i mut dyn LoadWatch,
}

impl LoadWatch for Indexing<'_> {
    fn rejected(&mut self, reject: &Reject) {
        self.watch.rejected(reject);
    }

    fn progressed(&mut self, progress: &Progress) {
        // A failure to store the index does not affect the load.
        let _ = self.store.store_index(Some(self.store.checkpoint_bytes));
        self.store.retain_after(self.store.checkpoint_bytes);
        self.watch.progressed(progress);
    }
}
