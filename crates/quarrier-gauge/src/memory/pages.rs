//! Memory on pages of a requested type.

use std::fs;
use std::ptr::NonNull;

use quarrier_core::meminfo::line_bytes;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::conditions::free_memory_bytes;
use crate::error::{Error, Result};

const HUGE_BYTES: usize = 2 << 20;

/// The note of a reading that requested huge pages and did not get them.
pub(super) const NO_HUGE_PAGES: &str = "no huge pages here: small ones";

/// A type of page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PageKind {
    /// Ordinary pages, usually of 4 KiB.
    Small,
    /// Pages of 2 MiB, if the system provides them.
    Huge,
}

impl PageKind {
    /// Both types.
    pub const ALL: [PageKind; 2] = [PageKind::Small, PageKind::Huge];

    /// The value of a reading's parameter.
    pub fn name(self) -> &'static str {
        match self {
            PageKind::Small => "small",
            PageKind::Huge => "huge",
        }
    }

    /// Parses the parameter's value.
    pub fn of(name: &str) -> Option<PageKind> {
        PageKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A mapping, which is unmapped when this is dropped.
pub(super) struct Pages {
    start: NonNull<u8>,
    bytes: usize,
    mapping: NonNull<u8>,
    mapped_bytes: usize,
}

// SAFETY: this value alone owns the mapping, and neither depends on a thread.
unsafe impl Send for Pages {}

impl Pages {
    /// Maps `bytes` bytes that begin on a page boundary of either type.
    pub(super) fn new(bytes: usize, kind: PageKind) -> Result<Pages> {
        let mapped_bytes = bytes.next_multiple_of(HUGE_BYTES) + HUGE_BYTES;
        let left_bytes = free_memory_bytes();
        if left_bytes > 0 && bytes as u64 > left_bytes {
            let asked_bytes = bytes as u64;
            return Err(Error::NoRoom { subject: "memory".to_owned(), asked_bytes, left_bytes });
        }
        let refused = |error: rustix::io::Errno| {
            Error::io("memory", format!("map {mapped_bytes} bytes"), error.into())
        };
        // SAFETY: without MAP_FIXED, mmap places a new mapping where nothing is mapped.
        let mapped = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                mapped_bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }
        .map_err(refused)?;
        let null = || refused(rustix::io::Errno::NOMEM);
        let mapping = NonNull::new(mapped.cast::<u8>()).ok_or_else(null)?;
        let to_huge =
            mapping.as_ptr().addr().next_multiple_of(HUGE_BYTES) - mapping.as_ptr().addr();
        // SAFETY: `to_huge` is less than HUGE_BYTES, and the mapping is longer than HUGE_BYTES.
        let start = unsafe { mapping.add(to_huge) };
        let pages = Pages { start, bytes, mapping, mapped_bytes };
        pages.advise(kind);
        Ok(pages)
    }

    /// Requests a type of page, before any page is touched. The system may provide another;
    /// [`Pages::kind`] returns which.
    fn advise(&self, kind: PageKind) {
        let advice = match kind {
            PageKind::Small => Advice::LinuxNoHugepage,
            PageKind::Huge => Advice::LinuxHugepage,
        };
        // SAFETY: the range is exactly the mapping, and this advice changes no byte.
        let _ = unsafe { madvise(self.mapping.as_ptr().cast(), self.mapped_bytes, advice) };
    }

    /// The first byte.
    pub(super) fn as_mut_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// All bytes as integers.
    pub(super) fn words(&mut self) -> &mut [u64] {
        // SAFETY: `bytes` bytes from `start` are mapped, and zeros at first; `start` lies on a page
        // boundary, and any bits are a `u64`. The borrow of `self` lasts as long as the slice, so
        // that no other slice exists.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.bytes / 8) }
    }

    /// The type of most of its pages. Call it after they were touched.
    pub(super) fn kind(&self) -> PageKind {
        let huge = huge_bytes_at(self.start.as_ptr().addr()).unwrap_or(0);
        if huge >= self.bytes / 10 * 9 && huge > 0 { PageKind::Huge } else { PageKind::Small }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the range is exactly the mapping, which this value owns, and no borrow outlives
        // it.
        let _ = unsafe { munmap(self.mapping.as_ptr().cast(), self.mapped_bytes) };
    }
}

/// Returns the bytes on huge pages of the mapping that contains `address`.
fn huge_bytes_at(address: usize) -> Option<usize> {
    let maps = fs::read_to_string("/proc/self/smaps").ok()?;
    let mut inside = false;
    for line in maps.lines() {
        if let Some((start, end)) = range(line) {
            inside = (start..end).contains(&address);
        } else if inside && let Some(bytes) = line_bytes(line, "AnonHugePages") {
            return usize::try_from(bytes).ok();
        }
    }
    None
}

/// Parses `7f00-7f80 rw-p …` as a range of addresses.
fn range(line: &str) -> Option<(usize, usize)> {
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
}
