//! A page-aligned buffer.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Alignment of buffers, windows and chunk starts, in bytes. `pread` from the page cache is
/// several times slower into or from addresses that are not aligned (measured on Zen 4:
/// 2.6 GB/s where file offset and buffer differ modulo 64, 15 GB/s where both are aligned).
pub const PAGE_BYTES: usize = 4096;

/// Memory of this process that somebody else allocated, such as the driver of a GPU, which copies
/// faster from its own.
///
/// # Safety
/// From `start` on there are `bytes` initialised bytes, aligned to [`PAGE_BYTES`], always the same
/// ones, which nobody but the owner of the value reads or writes while it lives.
pub unsafe trait HostMemory: Send + Sync {
    /// The first byte.
    fn start(&self) -> NonNull<u8>;

    /// How many there are.
    fn bytes(&self) -> usize;
}

/// Zeroed memory of fixed size, aligned to [`PAGE_BYTES`], as `O_DIRECT` needs it.
pub struct AlignedBuffer {
    start: NonNull<u8>,
    bytes: usize,
    /// Whose memory it is, where it is not our own.
    lent: Option<Box<dyn HostMemory>>,
}

impl std::fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AlignedBuffer({} bytes)", self.bytes)
    }
}

// SAFETY: the buffer owns its memory, as a `Box<[u8]>` does.
unsafe impl Send for AlignedBuffer {}
// SAFETY: shared access is only through `&[u8]`.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// Allocates `bytes` zeroed bytes (at least one page).
    ///
    /// # Panics
    /// When `bytes` exceeds the address space.
    pub fn new(bytes: usize) -> Self {
        let layout = Self::layout(bytes);
        // SAFETY: the layout has a size of at least one page.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        AlignedBuffer { start, bytes, lent: None }
    }

    /// A buffer in somebody else's memory, as it is.
    pub fn lent(memory: Box<dyn HostMemory>) -> Self {
        AlignedBuffer { start: memory.start(), bytes: memory.bytes(), lent: Some(memory) }
    }

    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes.max(PAGE_BYTES), PAGE_BYTES)
            .expect("a buffer fits the address space")
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start` points to `bytes` initialised bytes that this or what it holds owns.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        if self.lent.is_none() {
            // SAFETY: allocated in `new` with the same layout, and not freed before.
            unsafe { dealloc(self.start.as_ptr(), Self::layout(self.bytes)) }
        }
    }
}
