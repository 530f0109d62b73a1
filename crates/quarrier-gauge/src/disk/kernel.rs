//! Queries the kernel for a file's file system, and for its share in the page cache.

use std::fs::File;
use std::io;
use std::ptr;

use rustix::mm::{MapFlags, ProtFlags};

/// Returns the share of the first `bytes` of the file, not 0, that is in the page cache.
pub(super) fn resident_share(file: &File, bytes: u64) -> io::Result<f64> {
    let length = usize::try_from(bytes).map_err(io::Error::other)?;
    let mut pages = vec![0u8; length.div_ceil(rustix::param::page_size())];
    // SAFETY: without MAP_FIXED, mmap places a new mapping where nothing is mapped. No Rust reference
    // to its bytes is created, so other processes may change the file.
    let start = unsafe {
        rustix::mm::mmap(ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, file, 0)?
    };
    // SAFETY: `start` is page-aligned and mapped for `length` bytes, and `pages` has room for one
    // byte for each of its pages.
    let answer = unsafe { libc::mincore(start, length, pages.as_mut_ptr()) };
    let error = io::Error::last_os_error();
    // SAFETY: `start` and `length` are those of the mapping above, and nothing refers to it any more.
    unsafe { rustix::mm::munmap(start, length)? };
    if answer != 0 {
        return Err(error);
    }
    let held = pages.iter().filter(|&&page| page & 1 == 1).count();
    Ok(held as f64 / pages.len() as f64)
}

/// Returns the name of a file's file system, or its number in the kernel.
pub(super) fn file_system(file: &File) -> String {
    /// From the kernel's `magic.h`, and from the sources of file systems outside it.
    const NAMES: [(u32, &str); 14] = [
        (0xef53, "ext4"),
        (0x5846_5342, "xfs"),
        (0x9123_683e, "btrfs"),
        (0xf2f5_2010, "f2fs"),
        (0x0102_1994, "tmpfs"),
        (0x8584_58f6, "ramfs"),
        (0x794c_7630, "overlayfs"),
        (0x2fc1_2fc1, "zfs"),
        (0xca45_1a4e, "bcachefs"),
        (0x6969, "nfs"),
        (0xff53_4d42, "cifs"),
        (0xfe53_4d42, "smb2"),
        (0x6573_5546, "fuse"),
        (0x4d44, "fat"),
    ];
    let Ok(answer) = rustix::fs::fstatfs(file) else { return "unknown".to_owned() };
    let magic = answer.f_type as u32;
    match NAMES.iter().find(|(number, _)| *number == magic) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("{magic:#x}"),
    }
}
