//! The file behind a shared region: created here, or received from another process.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{FsWord, MemfdFlags, SealFlags};

use super::{HUGE_PAGE_BYTES, huge, mapped_bytes};
use crate::region::PAGE_BYTES;

/// The kind of file behind a shared region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    /// A file without a name in a `tmpfs` of the process's own that has huge pages.
    HugeTmpfs,
    /// A memfd, its length sealed.
    Memfd,
}

impl Backing {
    /// The name in messages and in Python.
    pub fn name(self) -> &'static str {
        match self {
            Backing::HugeTmpfs => "huge tmpfs",
            Backing::Memfd => "memfd",
        }
    }
}

/// Files of this kind of file system are memory; a memfd is one too.
const TMPFS: FsWord = 0x0102_1994;

/// A file of `bytes` zeros in whole pages, and the size of these.
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

/// The kind of `file`, or why it cannot be a region of `bytes`.
pub(super) fn recognise(file: &OwnedFd, bytes: usize) -> Result<(Backing, usize), String> {
    let look = || -> io::Result<_> {
        let seals = rustix::fs::fcntl_get_seals(file).unwrap_or(SealFlags::empty());
        let fs = rustix::fs::fstatfs(file)?;
        Ok((fs, rustix::fs::fstat(file)?.st_size, page_bytes(file)?, seals))
    };
    let (fs, has_bytes, page_bytes, seals) =
        look().map_err(|error| format!("cannot be looked at: {error}"))?;
    if fs.f_type != TMPFS {
        return Err("the descriptor is not that of shared memory".to_string());
    }
    // A limit of its own is what makes a file system run full.
    if fs.f_blocks != 0 {
        return Err(
            "lies in a file system that may run full, as /dev/shm does; hand over a memfd \
                    or a region"
                .to_string(),
        );
    }
    let has_bytes = u64::try_from(has_bytes).unwrap_or(0);
    if has_bytes < mapped_bytes(bytes) as u64 {
        return Err(format!(
            "the descriptor has {has_bytes} bytes, in whole pages {bytes} are asked for"
        ));
    }
    let is_memfd = seals.contains(SealFlags::SHRINK) || page_bytes == PAGE_BYTES;
    Ok((if is_memfd { Backing::Memfd } else { Backing::HugeTmpfs }, page_bytes))
}

/// The pages that a file of a `tmpfs` gets: it says so by its preferred block.
pub(super) fn page_bytes(file: &OwnedFd) -> io::Result<usize> {
    let block_bytes = rustix::fs::fstat(file)?.st_blksize;
    let is_huge = usize::try_from(block_bytes).is_ok_and(|bytes| bytes >= HUGE_PAGE_BYTES);
    Ok(if is_huge { HUGE_PAGE_BYTES } else { PAGE_BYTES })
}
