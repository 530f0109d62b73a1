//! Bytes in memory with a place in a source: borrowed, mapped, or in a buffer of the pool; and
//! memory that processes share.

mod aligned;
mod freed;
mod guard;
mod large;
mod mapped;
mod pool;
mod relocations;
#[cfg(target_os = "linux")]
mod shared;

pub use aligned::{AlignedBuffer, HostMemory, PAGE_BYTES};
pub use freed::give_back_freed_memory;
pub use large::prefer_large_pages;
pub use mapped::MappedWindow;
pub use pool::{BufferPool, Lease};
pub use relocations::give_back_relocations;
#[cfg(target_os = "linux")]
pub use shared::{Backing, HUGE_PAGE_BYTES, SharedRegion};

/// Bytes of a source in memory, however they came there.
#[derive(Debug)]
pub enum Region<'a> {
    /// A slice of a source that is in memory as a whole.
    Borrowed(&'a [u8]),
    /// Pages of a file.
    Window(MappedWindow),
}

impl Region<'_> {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Region::Borrowed(bytes) => bytes,
            Region::Window(window) => window.bytes(),
        }
    }

    /// Whether bytes of this region could not be read since it was made and show as zeros
    /// instead: the file shrank or its disk failed. Such a region must be read again by
    /// [`Source::read_at`](crate::source::Source::read_at), which says why.
    pub fn is_torn(&self) -> bool {
        matches!(self, Region::Window(window) if window.is_torn())
    }
}
