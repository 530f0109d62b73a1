//! The work that a thread does in the background for an open data folder: merges, retention and checkpoints.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_core::sync::lock;

use super::keyed::snapshot_of;
use super::retain::RetainResult;
use super::{State, Store};
use crate::Result;
use crate::kept::snapshot::{Making, Snapshot, is_in_pieces};

/// After this many attempts, new messages wait while the rows of a table with a key are merged.
const ATTEMPTS_MAX: usize = 3;

/// The background work that was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tended {
    /// Number of tables with fewer segments than before.
    pub merged: u64,
    /// The effect of retention.
    pub retained: RetainResult,
}

impl Store {
    /// Does the work that keeps an open folder fast and small: merges the small segments of tables that grew in
    /// small steps, without delaying requests, applies retention, and stores checkpoints that are due. To be
    /// called regularly, such as once a second, by one thread. After the first call, requests leave merges to
    /// that thread.
    ///
    /// # Errors
    /// As [`Store::table`] and [`Store::retain`]. Nothing is lost, and the next call tries again.
    ///
    /// # Panics
    /// If a worker panics.
    pub fn tend(&self, workers: usize, stop: &AtomicBool) -> Result<Tended> {
        self.is_tended.store(true, Ordering::Relaxed);
        let numbers: Vec<u32> = lock(&self.state).snapshots.keys().copied().collect();
        let mut tended = Tended::default();
        self.steps.drop_unused();
        for number in numbers {
            if stop.load(Ordering::Relaxed) {
                return Ok(tended);
            }
            tended.merged += u64::from(self.merge(number, workers, stop)?);
        }
        let is_bounded = lock(&self.state).retained.tables().next().is_some();
        if self.is_writable() {
            if is_bounded {
                tended.retained = self.retain()?;
            }
            self.store_index(Some(self.checkpoint_bytes))?;
        }
        Ok(tended)
    }

    /// Merges the small segments of a table as it was last requested, if they are many. Returns whether it did.
    /// The rows stay the same.
    fn merge(&self, number: u32, workers: usize, stop: &AtomicBool) -> Result<bool> {
        let cell = lock(&self.state).keyed.get(&number).cloned();
        if let Some(cell) = cell {
            return Ok(self.merge_keyed(number, &cell, workers));
        }
        let Some(snapshot) = lock(&self.state).snapshots.get(&number).cloned() else {
            return Ok(false);
        };
        if !is_in_pieces(&snapshot.table, false) {
            return Ok(false);
        }
        let mut merged = Snapshot { table: Arc::new(snapshot.table.repacked(workers)), ..snapshot };
        // Add messages that arrived during the merge.
        let name = lock(&self.state).catalog.name(number);
        let definition = self.definition_of(number);
        let schema = definition.as_ref().map(|definition| definition.schema());
        let (name, files) = (&self.named(&name), &self.files);
        let making =
            Making { name, files, workers, stop, schema: schema.as_ref(), is_tended: true };
        loop {
            let listed = {
                let mut state = lock(&self.state);
                let listed = state.index.listed(number);
                if put_merged(&mut state, number, &merged) {
                    return Ok(true);
                }
                listed
            };
            if listed.gone != merged.gone || stop.load(Ordering::Relaxed) {
                // Retention was faster; the next request makes another table.
                return Ok(false);
            }
            merged = making.table(Some(&merged), &listed)?;
        }
    }

    fn merge_keyed(&self, number: u32, cell: &super::KeyedCell, workers: usize) -> bool {
        for attempt in 1..=ATTEMPTS_MAX {
            let (table, at) = {
                let held = lock(cell);
                let Some(keyed) = held.as_ref().filter(|it| it.is_in_pieces(false)) else {
                    return false;
                };
                (keyed.marked().clone(), (keyed.from(), keyed.end()))
            };
            let merged = (attempt < ATTEMPTS_MAX).then(|| table.repacked(workers));
            let mut held = lock(cell);
            let Some(keyed) = held.as_mut() else { return false };
            let merged = match merged {
                Some(merged) if at == (keyed.from(), keyed.end()) => merged,
                // Messages arrived during the merge.
                Some(_) => continue,
                None => keyed.marked().repacked(workers),
            };
            keyed.merged(merged);
            let mut state = lock(&self.state);
            let gone = state.index.listed(number).gone;
            put_merged(&mut state, number, &snapshot_of(keyed, gone));
            return true;
        }
        false
    }
}

/// Replaces the snapshot of a table by a merged one. Returns false if the merged one lacks messages.
fn put_merged(state: &mut State, number: u32, merged: &Snapshot) -> bool {
    let newest = state.snapshots.get_mut(&number);
    let newest = newest.filter(|it| it.gone == merged.gone && it.end <= merged.end);
    newest.map(|newest| *newest = merged.clone()).is_some()
}
