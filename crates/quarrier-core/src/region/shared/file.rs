//! The file of a shared region: created here, or received from another process.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{FsWord, MemfdFlags, SealFlags};

use super::{HUGE_PAGE_BYTES, huge, mapped_bytes};
use crate::region::PAGE_BYTES;

/// The type of file that backs a shared region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    /// An unnamed file in the process's private `tmpfs`, which has huge pages.
    HugeTmpfs,
    /// A memfd with a sealed length.
    Memfd,
}

impl Backing {
    /// Returns the name in messages and in Python.
    pub fn name(self) -> &'static str {
        match self {
            Backing::HugeTmpfs => "huge tmpfs",
            Backing::Memfd => "memfd",
        }
    }
}

/// The magic number of `tmpfs`, which also backs memfds.
const TMPFS: FsWord = 0x0102_1994;

/// Creates a file of `bytes` zeros, in whole pages; also returns its type and page size.
pub(super) fn make(bytes: usize) -> io::Result<(OwnedFd, Backing, usize)> {
    if bytes >= HUGE_PAGE_BYTES
        && let Some(file) = huge::file()
    {
        rustix::fs::ftruncate(&file, mapped_bytes(bytes) as u64)?;
        return Ok((file, Backing::HugeTmpfs, HUGE_PAGE_BYTES));
    }
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create(c"quarrier", flags)?;
    rustix::fs::ftruncate(&file, mapped_bytes(bytes) as u64)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    let page_bytes = page_bytes(&file)?;
    Ok((file, Backing::Memfd, page_bytes))
}

/// Determines the backing of `file` and its page size, or the reason why it cannot be a region of
/// `bytes`.
pub(super) fn recognise(file: &OwnedFd, bytes: usize) -> Result<(Backing, usize), String> {
    let look = || -> io::Result<_> {
        let seals = rustix::fs::fcntl_get_seals(file).unwrap_or(SealFlags::empty());
        let fs = rustix::fs::fstatfs(file)?;
        Ok((fs, rustix::fs::fstat(file)?.st_size, page_bytes(file)?, seals))
    };
    let (fs, has_bytes, page_bytes, seals) =
        look().map_err(|error| format!("cannot be examined: {error}"))?;
    if fs.f_type != TMPFS {
        return Err("the descriptor is not that of shared memory".to_string());
    }
    // Only a file system with its own size limit can become full.
    if fs.f_blocks != 0 {
        return Err("is in a file system that may become full, like /dev/shm; pass a memfd \
                    or a region"
            .to_string());
    }
    let has_bytes = u64::try_from(has_bytes).unwrap_or(0);
    if has_bytes < mapped_bytes(bytes) as u64 {
        return Err(format!(
            "the descriptor has {has_bytes} bytes, in whole pages {bytes} are requested"
        ));
    }
    let is_memfd = seals.contains(SealFlags::SHRINK) || page_bytes == PAGE_BYTES;
    Ok((if is_memfd { Backing::Memfd } else { Backing::HugeTmpfs }, page_bytes))
}

/// Returns the page size of a `tmpfs` file, which is its preferred block size.
pub(super) fn page_bytes(file: &OwnedFd) -> io::Result<usize> {
    let block_bytes = rustix::fs::fstat(file)?.st_blksize;
    let is_huge = usize::try_from(block_bytes).is_ok_and(|bytes| bytes >= HUGE_PAGE_BYTES);
    Ok(if is_huge { HUGE_PAGE_BYTES } else { PAGE_BYTES })
}
