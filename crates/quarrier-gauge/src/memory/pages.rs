//! Memory on pages of a requested type.

use std::fs;
use std::ptr::NonNull;

use quarrier_core::meminfo::line_bytes;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::conditions::free_memory_bytes;
use crate::error::{Error, Result};

const HUGE_BYTES: usize = 2 << 20;

/// The number of NUMA nodes that a mask has room for: as many as any kernel supports.
const NODES_MOST: usize = 1024;

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

    /// Binds the memory to a NUMA node, before any page is touched. Returns whether the system agrees; a
    /// container may refuse it.
    pub(super) fn bind(&self, node: u32) -> bool {
        const WORD_BITS: usize = libc::c_ulong::BITS as usize;
        let mut mask = [0 as libc::c_ulong; NODES_MOST / WORD_BITS];
        let Some(word) = mask.get_mut(node as usize / WORD_BITS) else { return false };
        *word = 1 << (node as usize % WORD_BITS);
        // The kernel takes the number of bits plus one.
        let bits = NODES_MOST + 1;
        // SAFETY: the range is exactly the mapping, and a policy changes no byte; the mask has the
        // number of bits that the call names, and outlives it.
        let result = unsafe {
            libc::syscall(
                libc::SYS_mbind,
                self.mapping.as_ptr(),
                self.mapped_bytes,
                libc::MPOL_BIND,
                mask.as_ptr(),
                bits,
                0,
            )
        };
        result == 0
    }

    /// The share of the touched pages that are on this NUMA node, if the system reports it.
    pub(super) fn share_on(&self, node: u32) -> Option<f64> {
        let maps = fs::read_to_string("/proc/self/numa_maps").ok()?;
        share_on(node, self.start.as_ptr().addr(), &maps)
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

/// Returns the share of pages on `node` in the mapping that contains `address`: the last one that begins
/// there or before.
fn share_on(node: u32, address: usize, numa_maps: &str) -> Option<f64> {
    let start = |line: &str| usize::from_str_radix(line.split_whitespace().next()?, 16).ok();
    let starts = numa_maps.lines().filter_map(|line| Some((start(line)?, line)));
    let (_, line) =
        starts.filter(|(start, _)| *start <= address).max_by_key(|(start, _)| *start)?;
    let (mut here, mut all) = (0.0, 0.0);
    for field in line.split_whitespace() {
        let Some((name, count)) = field.strip_prefix('N').and_then(|rest| rest.split_once('='))
        else {
            continue;
        };
        let (Ok(number), Ok(count)) = (name.parse::<u32>(), count.parse::<u64>()) else { continue };
        all += count as f64;
        if number == node {
            here += count as f64;
        }
    }
    (all > 0.0).then(|| here / all)
}

#[cfg(test)]
mod tests {
    use super::share_on;

    #[test]
    fn pages_are_counted_by_node() {
        let maps = "55d0 default file=/bin/cat mapped=6 N0=6 kernelpagesize_kB=4\n\
                    7f00 bind:1 anon=512 dirty=512 N0=128 N1=384 kernelpagesize_kB=4\n\
                    7fff default stack anon=3 N0=3 kernelpagesize_kB=4\n\
                    8fff default\n";
        assert_eq!(share_on(1, 0x7f80, maps), Some(0.75));
        assert_eq!(share_on(0, 0x7f00, maps), Some(0.25));
        assert_eq!(share_on(2, 0x7f00, maps), Some(0.0));
        assert_eq!((share_on(0, 0x9000, maps), share_on(0, 0x10, maps)), (None, None));
    }
}
