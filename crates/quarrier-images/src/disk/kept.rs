//! A cache of decompressed blocks.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use quarrier_core::sync::lock;

/// Maximum total size of cached blocks; at least one block is kept.
const KEPT_BYTES_MAX: usize = 8 << 20;

/// Blocks by their start, the most recent last. Reads of whole blocks bypass it.
#[derive(Default)]
pub(crate) struct BlockCache(Mutex<VecDeque<(u64, Arc<Vec<u8>>)>>);

impl BlockCache {
    /// The block that begins at `start`; calls `unpack` if it is not cached. The lock is not held
    /// meanwhile.
    pub(crate) fn block(
        &self,
        start: u64,
        unpack: impl FnOnce() -> io::Result<Vec<u8>>,
    ) -> io::Result<Arc<Vec<u8>>> {
        let held = lock(&self.0).iter().find(|(at, _)| *at == start).map(|(_, b)| Arc::clone(b));
        if let Some(block) = held {
            return Ok(block);
        }
        let block = Arc::new(unpack()?);
        let room = (KEPT_BYTES_MAX / block.len().max(1)).max(1);
        let mut kept = lock(&self.0);
        while kept.len() >= room {
            kept.pop_front();
        }
        kept.push_back((start, Arc::clone(&block)));
        Ok(block)
    }
}
