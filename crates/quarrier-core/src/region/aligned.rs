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

/// Memory of this process that another component allocated, such as the driver of a GPU, which
/// copies faster from its own memory.
///
/// # Safety
///
/// At `start` there are `bytes` initialised bytes, aligned to [`PAGE_BYTES`]. `start` and `bytes`
/// never change, and only the owner of the value accesses the bytes while it lives.
pub unsafe trait HostMemory: Send + Sync {
    /// Returns the address of the first byte.
    fn start(&self) -> NonNull<u8>;

    /// Returns the number of bytes.
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

// SAFETY: this value owns its memory, as a `Box<[u8]>` does; the owner of lent memory is `Send`.
unsafe impl Send for AlignedBuffer {}
// SAFETY: a shared reference only gives `&[u8]`; the owner of lent memory is `Sync`.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// Allocates `bytes` zeroed bytes (at least one page).
    ///
    /// # Panics
    /// When `bytes` exceeds the address space.
    pub fn new(bytes: usize) -> Self {
        let layout = Self::layout(bytes);
        // SAFETY: the layout's size is at least a page, so it is not 0.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        AlignedBuffer { start, bytes, lent: None }
    }

    /// Allocates `count` adjacent buffers of `bytes` zeroed bytes each. If they take 1 MiB or more
    /// in all, they lie on large pages where the system has them.
    ///
    /// A direct read then has one physical range, instead of a range per page, which some devices
    /// split into several requests: reads of 1 MiB, one after the other, ran at 1.3 to 2.1 GB/s
    /// instead of 0.8 to 0.9 (a virtio disk that takes 254 segments).
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
        // SAFETY: `index` is below `count`, and the row has at least `count * each` bytes, so the
        // pointer stays within its allocation.
        let start = |index: usize| unsafe { row.start.add(index * each) };
        (0..count)
            .map(|index| Place { start: start(index), bytes, _row: Arc::clone(&row) })
            .map(|place| Self::lent(Box::new(place)))
            .collect()
    }

    /// Makes a buffer of borrowed memory, with its current contents.
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
        // SAFETY: the layout's size is not 0: it is `row_bytes`, at least `LARGE_PAGE_BYTES / 2`.
        let start = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        // SAFETY: `alloc` just returned `bytes` bytes at `start`; only this function has the
        // pointer, and it has written nothing there yet.
        unsafe { give_pages_back(start.as_ptr(), bytes) };
        // Comes before the first touch, which allocates the pages.
        prefer_large_pages(start.as_ptr(), bytes);
        // SAFETY: `start` is valid for writing `bytes` bytes: `alloc` just returned it for this
        // size.
        unsafe { start.write_bytes(0, bytes) };
        Row { start, layout }
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        // SAFETY: `new` allocated `start` with this layout. Each place holds the row by an `Arc`,
        // so no place is left, and the row is freed once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

// SAFETY: the row owns its allocation, and only its places give access to it.
unsafe impl Send for Row {}
// SAFETY: the row itself gives no access to its bytes.
unsafe impl Sync for Row {}

/// A buffer's part of a row.
struct Place {
    start: NonNull<u8>,
    bytes: usize,
    _row: Arc<Row>,
}

// SAFETY: only this place gives access to its part of the row, as a `Box<[u8]>` does.
unsafe impl Send for Place {}
// SAFETY: a shared reference to a place gives no access to its bytes, only their address.
unsafe impl Sync for Place {}

// SAFETY: `Row::new` zeroed the row, and the `Arc` keeps it alive as long as the place. Places
// begin at multiples of `each`, a multiple of `PAGE_BYTES` and at least `bytes`, in a row aligned
// to `LARGE_PAGE_BYTES`: they are aligned and do not overlap. `start` and `bytes` never change.
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
        // SAFETY: `start` points to `bytes` initialised bytes, which `new` zeroed or `HostMemory`
        // guarantees, and which stay allocated while `self` or `lent` lives. Writing needs `&mut
        // self`, which the slice's lifetime excludes. A `u8` is aligned anywhere.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: `start` points to `bytes` initialised bytes, which `new` zeroed or `HostMemory`
        // guarantees, and which stay allocated while `self` or `lent` lives. `&mut self` lives as
        // long as the slice, so there is no other reference. A `u8` is aligned anywhere.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        if self.lent.is_none() {
            // SAFETY: memory that is not lent comes from `new`, which allocated it with the layout
            // of the same `bytes`, and it is freed once, here.
            unsafe { dealloc(self.start.as_ptr(), Self::layout(self.bytes)) }
        }
    }
}
