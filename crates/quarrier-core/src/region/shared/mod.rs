//! Unnamed memory that processes share.

mod file;
mod huge;
mod namespace;
mod room;

pub use file::Backing;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::{ChangingBytes, PAGE_BYTES};
use crate::error::{Error, Result};

/// Bytes of a huge page.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// The name of regions in errors, since they are unnamed.
const NAME: &str = "shared memory";

/// Zeroed memory that this process shares with its forks and with processes that receive the
/// descriptor.
///
/// It has no name in any file system, and disappears with the last process that holds it, however
/// that process ends. It is not in `/dev/shm`, so that file system's size limit does not apply.
///
/// Regions of 2 MiB and more use huge pages if the system allows it: in a private `tmpfs` that is
/// not attached to any folder. (256 MiB touched for the first time: 21 ms, 200 ms with pages of 4
/// KiB, which a memfd has on most systems.) Otherwise it is a memfd, sealed so that no holder can
/// change its length, and [`huge_pages_refused`](Self::huge_pages_refused) has the reason. Files of
/// a `tmpfs` cannot be sealed: a process that passes the descriptor on trusts the receiver not to
/// shrink it.
///
/// The system allocates pages on first touch. The free memory of the machine and its cgroup is checked once,
/// when a region is made; the check does not count memory that others take later, or that earlier regions
/// have not touched yet.
///
/// ```
/// use quarrier_core::region::SharedRegion;
///
/// let mut region = SharedRegion::new(1_000_000)?;
/// // SAFETY: nobody else has the region, its address or its descriptor.
/// let slice = unsafe { region.as_mut_slice() };
/// slice[999_999] = 1;
/// let mut last = [0; 2];
/// assert_eq!((region.bytes().copy_to(999_998, &mut last), last), (2, [0, 1]));
/// # Ok::<(), quarrier_core::Error>(())
/// ```
#[derive(Debug)]
pub struct SharedRegion {
    start: NonNull<u8>,
    bytes: usize,
    page_bytes: usize,
    backing: Backing,
    file: OwnedFd,
}

// SAFETY: this value owns the mapping, which is not tied to a thread, so another thread may use and unmap it.
unsafe impl Send for SharedRegion {}
// SAFETY: through `&self`, safe code only copies the bytes, as those that others may change. Slices, atomics
// and writes through the pointer are unsafe, and their users promise that none of them meets another.
unsafe impl Sync for SharedRegion {}

impl SharedRegion {
    /// Makes a region of `bytes` zeros.
    ///
    /// Costs about 0.1 ms; the first one of a process may fork a short-lived child to be allowed
    /// huge pages.
    ///
    /// # Errors
    /// [`Error::NoRoom`] if the machine, the process's cgroup or a limit of the process leaves less than
    /// `bytes`, [`Error::Io`] if the system refuses something else.
    pub fn new(bytes: usize) -> Result<Self> {
        room::check(bytes)?;
        let (file, backing, page_bytes) = file::make(bytes)
            .map_err(|error| Error::io(NAME, format!("make {bytes} bytes"), error))?;
        Self::map(file, bytes, backing, page_bytes)
    }

    /// Makes a region over the memory of another holder; `file` is a duplicate of its descriptor.
    ///
    /// # Errors
    /// [`Error::NotReadable`] if `file` is not shared memory of at least `bytes` bytes, or belongs to a file
    /// system that may run full, where a store would kill the process.
    ///
    /// # Safety
    /// While the region lives, no holder makes the file shorter.
    pub unsafe fn try_from_fd(file: OwnedFd, bytes: usize) -> Result<Self> {
        let (backing, page_bytes) = file::recognise(&file, bytes)
            .map_err(|reason| Error::NotReadable { source_name: NAME.to_string(), reason })?;
        Self::map(file, bytes, backing, page_bytes)
    }

    fn map(file: OwnedFd, bytes: usize, backing: Backing, page_bytes: usize) -> Result<Self> {
        let start = map_aligned(file.as_fd(), mapped_bytes(bytes), page_bytes)
            .map_err(|error| Error::io(NAME, format!("map {bytes} bytes"), error))?;
        Ok(SharedRegion { start, bytes, page_bytes, backing, file })
    }

    /// Returns the bytes, which other holders, and readers of a feed, may change meanwhile.
    pub fn bytes(&self) -> ChangingBytes<'_> {
        // SAFETY: `start` points to `bytes` mapped bytes of one mapping, which stay mapped while `self` is
        // borrowed.
        unsafe { ChangingBytes::new(self.start.as_ptr(), self.bytes) }
    }

    /// Returns the bytes in place.
    ///
    /// # Safety
    /// While the slice lives, nobody writes to its bytes: no holder of the descriptor, in this process or
    /// another, nobody through [`as_ptr`](Self::as_ptr) or a [`counter`](Self::counter), and no reader of the
    /// feed that the region belongs to.
    pub unsafe fn as_slice(&self) -> &[u8] {
        // SAFETY: `start` is not null, and points to `bytes` mapped bytes, which are initialised since a file
        // begins with zeros. The caller promises that nobody writes to them while the slice lives.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    /// Returns the bytes for writing. Workers fill `chunks_mut` of the slice.
    ///
    /// # Safety
    /// While the slice lives, nobody else reads or writes its bytes, in all the ways that
    /// [`as_slice`](Self::as_slice) names.
    pub unsafe fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: `start` is not null, and points to `bytes` mapped and initialised bytes. The caller promises
        // that nobody else accesses them while the slice lives.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// Returns the address of the first byte: a multiple of [`page_bytes`](Self::page_bytes).
    ///
    /// Code that writes through it must ensure that no slice of those bytes is alive.
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns the requested length in bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Returns whether the region has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Returns the size of its pages in bytes: [`PAGE_BYTES`] or [`HUGE_PAGE_BYTES`]. If workers touch pages
    /// first, it pays that no two of them share a huge page.
    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Returns the kind of file that the memory belongs to.
    pub fn backing(&self) -> Backing {
        self.backing
    }

    /// Returns why this process has no regions on huge pages; `None` if it has some, or did not try yet.
    pub fn huge_pages_refused() -> Option<&'static str> {
        huge::refused()
    }

    /// Returns the eight bytes at `offset` as a counter that all holders share.
    ///
    /// # Errors
    /// [`Error::BadPlan`] if `offset` is not divisible by 8 or fewer than eight bytes follow.
    ///
    /// # Safety
    /// While the counter is used, no slice of these bytes lives, in any holder.
    pub unsafe fn counter(&self, offset: usize) -> Result<&AtomicU64> {
        let fits = offset.checked_add(8).is_some_and(|end| end <= self.bytes);
        if !fits || !offset.is_multiple_of(8) {
            return Err(Error::BadPlan(format!(
                "there is no counter at byte {offset} of {} bytes of shared memory; an offset is \
                 divisible by 8",
                self.bytes
            )));
        }
        // SAFETY: the eight bytes lie within the mapping, and the address is aligned to 8, as checked above,
        // since the mapping begins at a page. They stay mapped while `self` is borrowed. The caller promises
        // that no slice of them lives, so all holders access them atomically.
        Ok(unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(offset).cast()) })
    }

    /// Allocates the pages of `bytes` bytes from `offset` on now, rather than one by one on first
    /// touch; with 4 KiB pages this takes a quarter less time. Does nothing if the system does not
    /// support it.
    pub fn populate(&self, offset: usize, bytes: usize) {
        let first = offset.min(self.bytes) / PAGE_BYTES * PAGE_BYTES;
        let last = offset.saturating_add(bytes).min(self.bytes);
        if first < last {
            // SAFETY: the range lies within the mapping, begins at a page, and populating changes no byte. If
            // the system refuses, the pages are allocated on first touch.
            let _ = unsafe {
                rustix::mm::madvise(
                    self.start.as_ptr().add(first).cast(),
                    last - first,
                    Advice::LinuxPopulateWrite,
                )
            };
        }
    }
}

/// Lends the descriptor, for others to map. A holder that writes to the memory ensures that no slice of those
/// bytes lives here.
impl AsFd for SharedRegion {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for SharedRegion {
    fn drop(&mut self) {
        // SAFETY: `map` mapped this range with this length, and no slice of it outlives `self`.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), mapped_bytes(self.bytes)) };
    }
}

/// Returns the bytes to map for a region of `bytes`: whole pages, at least one.
fn mapped_bytes(bytes: usize) -> usize {
    bytes.max(1).next_multiple_of(PAGE_BYTES)
}

/// Maps `bytes` of `file` at a multiple of `align_bytes`, as huge pages require; spreads large mappings so
/// that their addresses differ modulo [`SPREAD_BYTES`].
fn map_aligned(file: BorrowedFd<'_>, bytes: usize, align_bytes: usize) -> io::Result<NonNull<u8>> {
    let is_large = bytes >= HUGE_PAGE_BYTES;
    let spread = is_large.then(|| reserve(bytes, SPREAD_BYTES));
    let (reserved, total, start) = match spread {
        Some(Ok((reserved, total))) => {
            let place = LARGE_ONES.fetch_add(1, Ordering::Relaxed) % SPREAD_PLACES * SPREAD_STEP;
            let wanted = place % SPREAD_PLACES * HUGE_PAGE_BYTES;
            let before = wanted.wrapping_sub(reserved.addr()) % SPREAD_BYTES;
            (reserved, total, reserved.wrapping_byte_add(before))
        }
        // The address space may be limited: try a smaller reservation.
        _ => {
            let (reserved, total) = reserve(bytes, align_bytes)?;
            let before = reserved.addr().next_multiple_of(align_bytes) - reserved.addr();
            (reserved, total, reserved.wrapping_byte_add(before))
        }
    };
    // SAFETY: `start..start + bytes` lies in the reservation, to which nobody else has the address,
    // so `MAP_FIXED` replaces no memory in use. `file` is an open descriptor.
    let mapped = unsafe {
        rustix::mm::mmap(
            start,
            bytes,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED | MapFlags::FIXED,
            file,
            0,
        )
    };
    let before = start.addr() - reserved.addr();
    let keeps = if mapped.is_ok() { (before, bytes) } else { (total, 0) };
    let after = keeps.0 + keeps.1;
    for (from, length) in [(0, keeps.0), (after, total - after)] {
        if length > 0 {
            // SAFETY: the ranges are whole pages of the reservation outside the mapping, and no
            // reference to them exists.
            let _ = unsafe { rustix::mm::munmap(reserved.wrapping_byte_add(from), length) };
        }
    }
    NonNull::new(mapped?.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

/// Arrays that are read and written side by side must not be a multiple of this distance apart: AMD
/// processors index the first-level cache by 28 bits of the address, so an element of the second
/// array evicts the cache line with the same index of the first. (Two arrays of 256 MiB into a
/// third: 74 ms, elsewhere 37.) Consecutive regions of a round size would be exactly that far
/// apart.
const SPREAD_BYTES: usize = 256 << 20;
const SPREAD_PLACES: usize = SPREAD_BYTES / HUGE_PAGE_BYTES;
/// Odd, so that the steps visit every position.
const SPREAD_STEP: usize = 37;
/// Number of large regions that this process has mapped.
static LARGE_ONES: AtomicUsize = AtomicUsize::new(0);

/// Reserves enough addresses to place `bytes` at any multiple of `align_bytes`; returns their start
/// and number.
fn reserve(bytes: usize, align_bytes: usize) -> io::Result<(*mut libc::c_void, usize)> {
    let total = bytes.checked_add(align_bytes - PAGE_BYTES).ok_or(io::ErrorKind::OutOfMemory)?;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a null hint lets the kernel choose free addresses, so the mapping aliases no memory
    // of ours.
    let reserved = unsafe {
        rustix::mm::mmap_anonymous(std::ptr::null_mut(), total, ProtFlags::empty(), flags)?
    };
    Ok((reserved, total))
}
