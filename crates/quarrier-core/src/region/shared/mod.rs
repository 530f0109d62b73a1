//! Memory that processes share, without a name anywhere.

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

use super::PAGE_BYTES;
use crate::error::{Error, Result};

/// Bytes of a huge page.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// How errors call a region, which has no name.
const NAME: &str = "shared memory";

/// Zeroed memory that this process shares with those it forks and those it hands the
/// descriptor to.
///
/// It has no name in any file system, and disappears with the last process that holds it, however that
/// ends. It is not in `/dev/shm`, so the size of that does not matter.
///
/// Regions of 2 MiB and more lie on huge pages where the system lets them: in a `tmpfs` of the
/// process's own, mounted nowhere. (256 MiB touched for the first time: 21 ms, 200 ms with pages
/// of 4 KiB, which a memfd has on most systems.) Otherwise it is a memfd, sealed so
/// that no holder can change its length, and [`huge_pages_refused`](Self::huge_pages_refused)
/// has the reason. Files of a `tmpfs` cannot be sealed: a process that passes the descriptor on trusts
/// the receiver not to shrink it.
///
/// Pages are taken from the system when they are touched first. What the machine and its cgroup
/// have left is asked once, when a region is made; memory that others take later, or that
/// earlier regions have not touched yet, is not in that.
///
/// ```
/// use quarrier_core::region::SharedRegion;
///
/// let mut region = SharedRegion::new(1_000_000)?;
/// region.as_mut_slice()[999_999] = 1;
/// assert_eq!(region.as_slice().iter().map(|&byte| u32::from(byte)).sum::<u32>(), 1);
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

// SAFETY: the mapping is memory that this value owns; nothing is tied to a thread.
unsafe impl Send for SharedRegion {}
// SAFETY: shared access is by `&[u8]`, by atomics, or by pointers whose users answer for it.
unsafe impl Sync for SharedRegion {}

impl SharedRegion {
    /// Makes a region of `bytes` zeros.
    ///
    /// Costs about 0.1 ms; the first one of a process may fork a short-lived child to be allowed
    /// huge pages.
    ///
    /// # Errors
    /// [`Error::NoRoom`] when the machine, the process's cgroup or a limit of the process leaves
    /// less than `bytes`, [`Error::Io`] when the system refuses something else.
    pub fn new(bytes: usize) -> Result<Self> {
        room::check(bytes)?;
        let (file, backing, page_bytes) = file::make(bytes)
            .map_err(|error| Error::io(NAME, format!("make {bytes} bytes"), error))?;
        Self::map(file, bytes, backing, page_bytes)
    }

    /// A region over the memory of another holder, whose descriptor `file` is a duplicate of.
    ///
    /// # Errors
    /// [`Error::NotReadable`] when `file` is not shared memory of at least `bytes` bytes, or of
    /// a file system that may run full, where a store would kill the process.
    ///
    /// # Safety
    /// As long as the region lives, no holder makes the file shorter; and while a slice of the
    /// region lives, no holder writes to its bytes.
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

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `start` points to `bytes` mapped bytes, zeros to begin with. That nobody writes
        // to them meanwhile is what `counter`, `as_ptr`, `as_fd` and `try_from_fd` ask for.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    /// The bytes, to be written to. `chunks_mut` of it are what workers fill.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`, and `&mut self` makes the access exclusive here.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// The address of the first byte: a multiple of [`page_bytes`](Self::page_bytes).
    ///
    /// Code that writes through it must ensure that no slice of those bytes is alive.
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.start
    }

    /// The requested length in bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether the region has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The size of its pages in bytes: [`PAGE_BYTES`] or [`HUGE_PAGE_BYTES`]. Where workers
    /// touch them first, it pays that no huge page is shared by two of them.
    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// The kind of file that the memory belongs to.
    pub fn backing(&self) -> Backing {
        self.backing
    }

    /// Why this process has no regions on huge pages; `None` where it has, or did not try yet.
    pub fn huge_pages_refused() -> Option<&'static str> {
        huge::refused()
    }

    /// The eight bytes at `offset` as a counter that all holders share.
    ///
    /// # Errors
    /// [`Error::BadPlan`] if `offset` is not divisible by 8 or fewer than eight bytes follow.
    ///
    /// # Safety
    /// As long as the counter is used, no slice of these bytes lives, in any holder.
    pub unsafe fn counter(&self, offset: usize) -> Result<&AtomicU64> {
        let fits = offset.checked_add(8).is_some_and(|end| end <= self.bytes);
        if !fits || !offset.is_multiple_of(8) {
            return Err(Error::BadPlan(format!(
                "there is no counter at byte {offset} of {} bytes of shared memory; an offset is \
                 divisible by 8",
                self.bytes
            )));
        }
        // SAFETY: the address lies within the mapping and is aligned, as checked above, for the
        // mapping begins at a page; other holders use atomics too, as the caller promises.
        Ok(unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(offset).cast()) })
    }

    /// Takes the pages of `bytes` bytes from `offset` on from the system now, rather than one by
    /// one when they are touched: with pages of 4 KiB that takes three quarters of the time. Does
    /// nothing where the system cannot.
    pub fn populate(&self, offset: usize, bytes: usize) {
        let first = offset.min(self.bytes) / PAGE_BYTES * PAGE_BYTES;
        let last = offset.saturating_add(bytes).min(self.bytes);
        if first < last {
            // SAFETY: the range lies within the mapping, and populating changes no byte. A refusal
            // leaves the pages to be had when they are touched.
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

/// The descriptor, for others to map. Whoever writes to its memory sees to it that no slice of
/// those bytes lives here.
impl AsFd for SharedRegion {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for SharedRegion {
    fn drop(&mut self) {
        // SAFETY: mapped in `map` with this length; no slice of it outlives `self`.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), mapped_bytes(self.bytes)) };
    }
}

/// The bytes to map for a region of `bytes`: whole pages, at least one.
fn mapped_bytes(bytes: usize) -> usize {
    bytes.max(1).next_multiple_of(PAGE_BYTES)
}

/// Maps `bytes` of `file` at a multiple of `align_bytes`, as huge pages need it; spreads large mappings
/// so that their addresses differ modulo [`SPREAD_BYTES`].
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
        // Addresses may be limited.
        _ => {
            let (reserved, total) = reserve(bytes, align_bytes)?;
            let before = reserved.addr().next_multiple_of(align_bytes) - reserved.addr();
            (reserved, total, reserved.wrapping_byte_add(before))
        }
    };
    // SAFETY: `start..start + bytes` lies in the reservation, which nobody else knows of.
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
            // SAFETY: what the reservation has beyond the mapping, in whole pages.
            let _ = unsafe { rustix::mm::munmap(reserved.wrapping_byte_add(from), length) };
        }
    }
    NonNull::new(mapped?.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

/// Arrays that are read and written side by side must not be this far apart, or a multiple of it: AMD's
/// processors distinguish lines of the first cache by 28 bits of their addresses, so that the same
/// index of the second array evicts that of the first. (Two arrays of 256 MiB into a third: 74 ms,
/// elsewhere 37.) Regions of a round size, one after the other, are exactly so far apart.
const SPREAD_BYTES: usize = 256 << 20;
const SPREAD_PLACES: usize = SPREAD_BYTES / HUGE_PAGE_BYTES;
/// Odd, so that all places come.
const SPREAD_STEP: usize = 37;
/// Large regions that this process has mapped.
static LARGE_ONES: AtomicUsize = AtomicUsize::new(0);

/// Addresses for `bytes` at any multiple of `align_bytes`, and how many they are.
fn reserve(bytes: usize, align_bytes: usize) -> io::Result<(*mut libc::c_void, usize)> {
    let total = bytes.checked_add(align_bytes - PAGE_BYTES).ok_or(io::ErrorKind::OutOfMemory)?;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a fresh reservation at an address of the kernel's choice aliases nothing of ours.
    let reserved = unsafe {
        rustix::mm::mmap_anonymous(std::ptr::null_mut(), total, ProtFlags::empty(), flags)?
    };
    Ok((reserved, total))
}
