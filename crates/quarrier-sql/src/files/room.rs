//! Memory that tables have, of what statements may take in all.

use std::sync::{Arc, Mutex};

use datafusion::common::Result;
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use quarrier_core::sync::lock;

/// Memory reserved from tables for queries. Three quarters of a small limit.
const QUERY_BYTES_MAX: usize = 256 << 20;

/// Pieces of files for which there is no room have so much at least.
const PIECE_BYTES_MIN: usize = 4 << 20;

/// Memory for the tables of an engine.
#[derive(Debug)]
pub(crate) struct Room {
    taken: Mutex<MemoryReservation>,
    /// The maximum size of all tables together; `None` without a limit.
    bytes_max: Option<usize>,
}

impl Room {
    pub(crate) fn new(pool: &Arc<dyn MemoryPool>) -> Self {
        let taken = Mutex::new(MemoryConsumer::new("tables").register(pool));
        let bytes_max = match pool.memory_limit() {
            MemoryLimit::Finite(limit) => Some(limit - (limit / 4 * 3).min(QUERY_BYTES_MAX)),
            _ => None,
        };
        Room { taken, bytes_max }
    }

    /// How much memory a table may take that is loaded now; none: any.
    pub(super) fn left(&self) -> Option<usize> {
        let left = self.bytes_max?.saturating_sub(lock(&self.taken).size());
        Some(left.max(PIECE_BYTES_MIN))
    }

    /// Takes memory for a table.
    pub(crate) fn take(&self, bytes: usize) -> Result<()> {
        lock(&self.taken).try_grow(bytes)
    }

    /// Returns memory that a table no longer takes.
    pub(crate) fn give_back(&self, bytes: usize) {
        let taken = lock(&self.taken);
        taken.shrink(bytes.min(taken.size()));
    }
}
