//! A page-aligned buffer.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use super::large::{LARGE_PAGE_BYTES, give_pages_back, prefer_large_pages};

/// Alignment of buffers, windows and chunk starts, in bytes. `pread` from the page cache is
/// several times slower into or from addresses that are not aligned (measured on Zen 4:
/// 2.6 GB/s where file offset and buffer differ modulo 64, 15 GB/s where both are aligned).
pub const PAGE_BYTES: usize = 4096;

/// Memory of this process that another component allocated, such as the driver of a GPU, which copies
/// faster from its own.
///
/// # Safety
///
/// From `start` on there are `bytes` initialised bytes, aligned to [`PAGE_BYTES`], always the same
/// ones, which only the owner of the value reads or writes while it lives.
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
    /// The owner of the memory, if it is borrowed.
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

    /// `count` buffers of `bytes` zeroed bytes each, side by side: on large pages where the system
    /// has them, and together take 1 MiB and more.
    ///
    /// A request past the page cache then is of one piece in memory, where it would be of a piece a
    /// page, and of several requests for some devices: reads of 1 MiB, one after the other, went at
    /// 1.3 to 2.1 GB/s instead of 0.8 to 0.9 (a virtio disk that takes 254 pieces).
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn side_by_side(count: usize, bytes: usize) -> Vec<Self> {
        let each = bytes.max(1).next_multiple_of(PAGE_BYTES);
        let row_bytes = each.checked_mul(count).filter(|bytes| *bytes >= LARGE_PAGE_BYTES / 2);
        let Some(row_bytes) = row_bytes.and_then(|b| b.checked_next_multiple_of(LARGE_PAGE_BYTES))
        else {
            return (0..count).map(|_| Self::new(bytes)).collect();
        };
        let row = Arc::new(Row::new(row_bytes));
        // SAFETY: a place of the row, which has `count` times `each` bytes or more.
        let start = |index: usize| unsafe { row.start.add(index * each) };
        (0..count)
            .map(|index| Place { start: start(index), bytes, _row: Arc::clone(&row) })
            .map(|place| Self::lent(Box::new(place)))
            .collect()
    }

    /// A buffer in borrowed memory, with its current contents.
    pub fn lent(memory: Box<dyn HostMemory>) -> Self {
        AlignedBuffer { start: memory.start(), bytes: memory.bytes(), lent: Some(memory) }
    }

    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes.max(PAGE_BYTES), PAGE_BYTES)
            .expect("a buffer fits the address space")
    }
}

/// Zeroed memory for several buffers.
struct Row {
    start: NonNull<u8>,
    layout: Layout,
}

impl Row {
    fn new(bytes: usize) -> Row {
        let layout = Layout::from_size_align(bytes, LARGE_PAGE_BYTES)
            .expect("buffers fit the address space");
        // SAFETY: the layout has a size.
        let start = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        // SAFETY: so many bytes were allocated, and nobody has written to them.
        unsafe { give_pages_back(start.as_ptr(), bytes) };
        // Before the first touch, which makes the pages.
        prefer_large_pages(start.as_ptr(), bytes);
        // SAFETY: so many bytes were allocated.
        unsafe { start.write_bytes(0, bytes) };
        Row { start, layout }
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with the same layout; the last place is gone.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

// SAFETY: the row is memory of its own, which only its places lead to.
unsafe impl Send for Row {}
// SAFETY: the row itself gives no access.
unsafe impl Sync for Row {}

/// A buffer's part of a row.
struct Place {
    start: NonNull<u8>,
    bytes: usize,
    _row: Arc<Row>,
}

// SAFETY: a place is memory that it alone leads to, as a `Box<[u8]>` does.
unsafe impl Send for Place {}
// SAFETY: it gives no access by itself.
unsafe impl Sync for Place {}

// SAFETY: the row was zeroed and lives as long as its places, which do not overlap and begin on whole
// pages.
unsafe impl HostMemory for Place {
    fn start(&self) -> NonNull<u8> {
        self.start
    }

    fn bytes(&self) -> usize {
        self.bytes
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
