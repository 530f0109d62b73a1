//! The part of the memory limit that tables may take.

use std::sync::{Arc, Mutex};

use datafusion::common::Result;
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use quarrier_core::sync::lock;

/// Bytes reserved for queries. Three quarters of the limit if that is less.
const QUERY_BYTES_MAX: usize = 256 << 20;

/// Minimum piece size for files loaded in pieces, even if the memory for tables is used up.
const PIECE_BYTES_MIN: usize = 4 << 20;

/// Accounts for the memory of an engine's tables.
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

    /// The bytes that the next table may take; `None` without a limit.
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
