//! The part of the memory limit that tables may take.

use std::sync::atomic::{AtomicBool, Ordering};
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

/// The part of the limit that bytes of remote sources may take: one in this many.
const REMOTE_SHARE: usize = 8;

/// The bounds of that memory; the greater one is also the default without a limit.
const REMOTE_BYTES: (usize, usize) = (4 << 20, 256 << 20);

/// Accounts for the memory of an engine's tables.
#[derive(Debug)]
pub(crate) struct Room {
    taken: Mutex<MemoryReservation>,
    /// The maximum size of all tables together; `None` without a limit.
    bytes_max: Option<usize>,
    /// The maximum memory for bytes of remote sources; `None` without a limit.
    remote_bytes_max: Option<usize>,
    /// Whether that memory has been taken.
    is_remote_taken: AtomicBool,
}

impl Room {
    pub(crate) fn new(pool: &Arc<dyn MemoryPool>) -> Self {
        let taken = Mutex::new(MemoryConsumer::new("tables").register(pool));
        let limit = match pool.memory_limit() {
            MemoryLimit::Finite(limit) => Some(limit),
            _ => None,
        };
        let remote = |limit: usize| (limit / REMOTE_SHARE).clamp(REMOTE_BYTES.0, REMOTE_BYTES.1);
        Room {
            taken,
            bytes_max: limit.map(|limit| limit - (limit / 4 * 3).min(QUERY_BYTES_MAX)),
            remote_bytes_max: limit.map(remote),
            is_remote_taken: AtomicBool::new(false),
        }
    }

    /// The maximum memory for bytes of remote sources; `None` without a limit.
    pub(crate) fn remote_bytes_max(&self) -> Option<u64> {
        self.remote_bytes_max.map(|bytes| bytes as u64)
    }

    /// Takes that memory, when queries begin to read remote sources.
    pub(super) fn take_remote(&self) -> Result<()> {
        let Some(bytes) = self.remote_bytes_max else { return Ok(()) };
        if self.is_remote_taken.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let taken = self.take(bytes);
        if taken.is_err() {
            self.is_remote_taken.store(false, Ordering::Relaxed);
        }
        taken
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
