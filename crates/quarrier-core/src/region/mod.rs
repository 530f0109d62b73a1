//! Memory regions of a source: borrowed, mapped, or in a pooled buffer; memory that others may
//! change; and memory shared between processes.

mod aligned;
mod changing;
mod freed;
mod guard;
mod large;
mod mapped;
mod pool;
mod relocations;
#[cfg(target_os = "linux")]
mod shared;

pub use aligned::{AlignedBuffer, HostMemory, PAGE_BYTES};
pub use changing::{AsData, ChangingBytes};
pub use freed::{fit_address_space, give_back_freed_memory, stay_small};
pub use large::prefer_large_pages;
pub use mapped::MappedWindow;
pub use pool::{BufferPool, Lease};
pub use relocations::give_back_relocations;
#[cfg(target_os = "linux")]
pub use shared::{Backing, HUGE_PAGE_BYTES, SharedRegion};

/// Bytes of a source in memory, by how they got there.
#[derive(Debug)]
pub enum Region<'a> {
    /// A slice of a source that lies in memory.
    Borrowed(&'a [u8]),
    /// Bytes that others may write to.
    Changing(ChangingBytes<'a>),
    /// Pages of a file, which others may write to.
    Window(MappedWindow),
}

impl<'a> Region<'a> {
    /// Returns the region in a form that may be shown; bytes that others may change need a promise.
    pub fn shown(self, promise: Option<AsData>) -> Option<Shown<'a>> {
        match (self, promise) {
            (Region::Borrowed(bytes), _) => Some(Shown::Steady(bytes)),
            (region, Some(promise)) => Some(Shown::Changing(region, promise)),
            (_, None) => None,
        }
    }

    /// Returns the bytes, for code that treats them as data only.
    pub fn as_data(&self, promise: AsData) -> &[u8] {
        match self {
            Region::Borrowed(bytes) => bytes,
            Region::Changing(bytes) => bytes.as_data(promise),
            Region::Window(window) => window.bytes().as_data(promise),
        }
    }

    /// Whether bytes of this region became unreadable since it was made and show as zeros: the file
    /// shrank or its disk failed. Read such a region again by
    /// [`Source::read_at`](crate::source::Source::read_at), which reports the cause.
    pub fn is_torn(&self) -> bool {
        matches!(self, Region::Window(window) if window.is_torn())
    }
}

/// A [`Region`] that may be shown in place.
#[derive(Debug)]
pub enum Shown<'a> {
    /// Bytes that stay the same.
    Steady(&'a [u8]),
    /// Others may change the bytes, and the reader promised to tolerate that.
    Changing(Region<'a>, AsData),
}

impl Shown<'_> {
    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Shown::Steady(bytes) => bytes,
            Shown::Changing(region, promise) => region.as_data(*promise),
        }
    }

    /// As [`Region::is_torn`].
    #[inline]
    pub fn is_torn(&self) -> bool {
        matches!(self, Shown::Changing(region, _) if region.is_torn())
    }
}
