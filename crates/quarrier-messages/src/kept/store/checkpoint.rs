//! What is stored of a data folder beside its log, and when: columns of tables, and where batches lie.

use quarrier_core::sync::lock;

use super::Store;
use crate::kept::columns::ColumnFiles;
use crate::kept::index::Extent;
use crate::kept::index_file;
use crate::kept::load::{LoadWatch, Progress};
use crate::kept::snapshot::Snapshot;
use crate::{Reject, Result};

/// Bytes of messages that are parsed in a few tens of milliseconds.
pub(super) const CHECKPOINT_BYTES: u64 = 64 << 20;
/// The index is stored anew when so much of what it has has come: one in so many parts.
const INDEX_SHARE: u64 = 4;

impl Store {
    /// Stores the columns of a table whenever so many bytes of its messages have come since, and a quarter of
    /// what is stored; and where batches lie when so many bytes of the log have. 64 MiB if this is not called.
    #[must_use]
    pub fn checkpoint_every(mut self, bytes: u64) -> Store {
        self.checkpoint_bytes = bytes;
        self
    }

    /// Stores the columns of a table, if so many bytes of messages have come, or any, and this process may.
    pub(super) fn store(
        &self,
        number: u32,
        snapshot: &Snapshot,
        extents: &[Extent],
        every: Option<u64>,
    ) -> crate::log::Result<()> {
        let Some(columns) = self.columns.as_ref().filter(|_| self.is_writable()) else {
            return Ok(());
        };
        let Some(extents) = extents.get(..snapshot.batches) else { return Ok(()) };
        match columns.is_due(number, extents, every) {
            true => columns.write(number, snapshot, extents),
            false => Ok(()),
        }
    }

    /// Stores the columns of all tables that were asked for and have grown since, and where all batches lie:
    /// whoever opens the folder next reads and parses only what came after.
    ///
    /// # Errors
    /// [`Error::Log`](crate::Error::Log) where there is no room, or the system refuses. What was stored before is still there.
    pub fn checkpoint(&self) -> Result<()> {
        self.store_all(None)?;
        self.store_index(None)
    }

    pub(super) fn store_all(&self, every: Option<u64>) -> Result<()> {
        let made: Vec<(u32, Snapshot, Vec<Extent>)> = {
            let state = lock(&self.state);
            let extents = |number: &u32| state.index.extents(*number).to_vec();
            let snapshots = state.snapshots.iter();
            snapshots.map(|(number, it)| (*number, it.clone(), extents(number))).collect()
        };
        for (number, snapshot, extents) in made {
            self.store(number, &snapshot, &extents, every)?;
        }
        Ok(())
    }

    /// What people should know of what was stored and is not used, since the last call: each line once.
    pub fn take_notices(&self) -> Vec<String> {
        let mut notices = std::mem::take(&mut *lock(&self.notices));
        notices.extend(self.columns.iter().flat_map(ColumnFiles::take_notices));
        notices
    }

    /// Stores where all batches lie, if so many bytes of the log have come since, and a share of all; or any,
    /// where nothing is given. A log that is damaged is read whole by everybody, who say so.
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
        // Also where it fails: not at once again.
        state.indexed_bytes = all;
        let disks = (disk.as_ref(), self.logs.as_ref());
        Ok(index_file::write(disks, &state.index, &log.publishers())?)
    }
}

/// Stores where batches lie while a long load goes on.
pub(super) struct Indexing<'i> {
    pub(super) store: &'i Store,
    pub(super) watch: &'i mut dyn LoadWatch,
}

impl LoadWatch for Indexing<'_> {
    fn left_out(&mut self, reject: &Reject) {
        self.watch.left_out(reject);
    }

    fn progressed(&mut self, progress: &Progress) {
        // A load is none the worse for an index that could not be stored.
        let _ = self.store.store_index(Some(self.store.checkpoint_bytes));
        self.watch.progressed(progress);
    }
}
