//! The trial file: it lies in the caller's folder, where nobody ever sees it.
//!
//! The file is created without a name (`O_TMPFILE`) or loses it at once, so its space is freed however
//! the process ends. It is only created in folders, so nothing is ever written to a device.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use quarrier_core::region::AlignedBuffer;
use quarrier_core::scratch::nameless;
use rustix::fs::{Advice, FallocateFlags, OFlags};
use rustix::process::Resource;

use super::content::{Content, SECTOR_BYTES};
use super::kernel::{file_system, resident_share};
use crate::error::{Error, Result};

/// Space left free on the disk, in bytes.
const SPARE_BYTES: u64 = 64 << 20;
/// Bytes per write while the file is created.
const CHUNK_BYTES: usize = 4 << 20;
/// The smallest blocks that devices support.
const DIRECT_BLOCKS: [usize; 4] = [512, 1024, 4096, 65_536];

/// A file of random bytes without a name. It disappears when this is dropped and when the process ends,
/// in any way.
pub struct TrialFile {
    file: File,
    folder: String,
    bytes: u64,
    content: Content,
    /// The smallest block that `O_DIRECT` can read; `None` if the file system does not support it.
    direct_bytes: Option<usize>,
    generation: u8,
}

impl TrialFile {
    /// Creates a file of `bytes`, a multiple of 4096, in `folder`, and fills it with random bytes,
    /// which are on disk when this returns. It takes as long as the disk needs to write them.
    ///
    /// # Errors
    /// If `folder` does not exist or its disk lacks the space, the system refuses, or `stop` is set.
    pub fn make(folder: &Path, bytes: u64, stop: &AtomicBool) -> Result<TrialFile> {
        let mut made = TrialFile::lay_out(folder, bytes, SECTOR_BYTES)?;
        made.fill(stop)?;
        made.direct_bytes = made.least_direct();
        Ok(made)
    }

    /// Creates a file of `bytes`, which have no defined contents, for writes that are aligned to
    /// `unit_bytes`, a power of two of sectors. [`TrialFile::keep_written`] must be called before reads.
    ///
    /// # Errors
    /// If `folder` does not exist or its disk lacks the space, or the system refuses.
    pub(super) fn make_empty(folder: &Path, bytes: u64, unit_bytes: usize) -> Result<TrialFile> {
        let mut made = TrialFile::lay_out(folder, bytes, unit_bytes)?;
        // Where space cannot be reserved, the file is still empty.
        made.set_length(bytes)?;
        // Reads of bytes that were never written tell nothing about the page cache.
        let start = AlignedBuffer::new(DIRECT_BLOCKS[3].min(bytes as usize));
        made.file.write_all_at(&start, 0).map_err(|error| made.failed("write at 0", error))?;
        made.file.sync_data().map_err(|error| made.failed("write it to the disk", error))?;
        made.advise(Advice::DontNeed);
        made.direct_bytes = made.least_direct();
        Ok(made)
    }

    fn lay_out(folder: &Path, bytes: u64, unit_bytes: usize) -> Result<TrialFile> {
        let name = folder.display().to_string();
        if bytes == 0 || !bytes.is_multiple_of(4096) {
            return Err(Error::BadRequest(format!("{bytes} bytes: not a multiple of 4096")));
        }
        if !folder.is_dir() {
            return Err(Error::BadRequest(format!(
                "{name} is not a folder; name one on the disk to measure; nothing is written to \
                 devices"
            )));
        }
        has_room(folder, &name, bytes)?;
        let file =
            nameless(folder).map_err(|error| Error::io(&name, "make a file there", error))?;
        reserve(&file, &name, bytes)?;
        Ok(TrialFile {
            file,
            folder: name,
            bytes,
            content: Content::new(bytes, unit_bytes, seed()),
            direct_bytes: None,
            generation: 0,
        })
    }

    /// Shortens the file to its start that has been written, and returns the new length in bytes.
    pub(super) fn keep_written(&mut self) -> Result<u64> {
        let written = self.content.written_bytes();
        self.set_length(written)?;
        self.bytes = written;
        Ok(written)
    }

    fn set_length(&self, bytes: u64) -> Result<()> {
        self.file.set_len(bytes).map_err(|error| self.failed("set its length", error))
    }

    /// The length of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The file itself, for tests that damage it.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The smallest block that `O_DIRECT` reads here; `None` if the file system does not support it.
    pub fn direct_bytes(&self) -> Option<usize> {
        self.direct_bytes
    }

    pub(super) fn content(&self) -> &Content {
        &self.content
    }

    /// Returns a new number for later writes.
    pub(super) fn next_generation(&mut self) -> u8 {
        self.generation = self.generation.wrapping_add(1);
        self.generation
    }

    /// Turns `O_DIRECT` on or off.
    pub(super) fn set_direct(&self, direct: bool) -> Result<()> {
        let flags = if direct { OFlags::DIRECT } else { OFlags::empty() };
        rustix::fs::fcntl_setfl(&self.file, flags)
            .map_err(|error| self.failed("switch O_DIRECT", error.into()))
    }

    /// Advises the kernel about the order of reads, which controls its readahead.
    pub(super) fn advise(&self, advice: Advice) {
        // Readahead is only an optimisation, so ignore a file system that refuses.
        let _ = rustix::fs::fadvise(&self.file, 0, None, advice);
    }

    /// Asks the kernel to drop the file's pages from the page cache, and returns the share that is
    /// still cached.
    pub(super) fn forget(&self) -> Result<f64> {
        self.file.sync_data().map_err(|error| self.failed("write it to the disk", error))?;
        self.advise(Advice::DontNeed);
        resident_share(&self.file, self.bytes)
            .map_err(|error| self.failed("ask which pages are cached", error))
    }

    /// Reads the whole file into the page cache and compares it. Returns the share that is then cached.
    pub(super) fn warm(&self, stop: &AtomicBool) -> Result<f64> {
        self.set_direct(false)?;
        let mut buffer = AlignedBuffer::new(CHUNK_BYTES);
        self.each_chunk(stop, |offset, part| {
            let bytes = &mut buffer[..part];
            self.file
                .read_exact_at(bytes, offset)
                .map_err(|error| self.failed(&format!("read at {offset}"), error))?;
            self.compare(offset, bytes)
        })?;
        resident_share(&self.file, self.bytes)
            .map_err(|error| self.failed("ask which pages are cached", error))
    }

    /// The name of the file system, or its number in the kernel.
    pub fn file_system(&self) -> String {
        file_system(&self.file)
    }

    /// Compares every byte read at `offset`.
    pub(super) fn compare(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        match self.content.first_wrong(offset, bytes) {
            None => Ok(()),
            Some(at) => Err(self.wrong(at)),
        }
    }

    /// Compares a stamp of each page read at `offset`.
    pub(super) fn compare_hastily(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        match self.content.first_wrong_hastily(offset, bytes) {
            None => Ok(()),
            Some(at) => Err(self.wrong(at)),
        }
    }

    /// Compares one stamp of the bytes read at `offset`, in a sector that depends on `turn`.
    pub(super) fn compare_stamp(&self, offset: u64, bytes: &[u8], turn: usize) -> Result<()> {
        let at = turn % (bytes.len() / SECTOR_BYTES).max(1) * SECTOR_BYTES;
        self.compare_hastily(offset + at as u64, &bytes[at..bytes.len().min(at + SECTOR_BYTES)])
    }

    /// Makes the error for a byte that differs from the written one.
    pub(super) fn wrong(&self, at: u64) -> Error {
        let reason = format!("byte {at} of the trial file differs from the byte written there");
        Error::wrong(format!("disk at {}", self.folder), reason)
    }

    /// Makes the error for an operation that the system refused.
    pub(super) fn failed(&self, what: &str, error: io::Error) -> Error {
        Error::io(format!("trial file in {}", self.folder), what, error)
    }

    fn fill(&mut self, stop: &AtomicBool) -> Result<()> {
        let mut buffer = AlignedBuffer::new(CHUNK_BYTES);
        self.each_chunk(stop, |offset, part| {
            let bytes = &mut buffer[..part];
            self.content.write(offset, 0, bytes, None);
            self.file.write_all_at(bytes, offset).map_err(|error| match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    no_room(&self.folder, self.bytes, offset)
                }
                _ => self.failed(&format!("write at {offset}"), error),
            })
        })?;
        self.forget().map(|_| ())
    }

    fn each_chunk(
        &self,
        stop: &AtomicBool,
        mut work: impl FnMut(u64, usize) -> Result<()>,
    ) -> Result<()> {
        for offset in (0..self.bytes).step_by(CHUNK_BYTES) {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            work(offset, (self.bytes - offset).min(CHUNK_BYTES as u64) as usize)?;
        }
        Ok(())
    }

    /// Some file systems accept the flag but still read through the page cache, where the bytes then
    /// turn up.
    fn least_direct(&self) -> Option<usize> {
        self.set_direct(true).ok()?;
        let mut buffer = AlignedBuffer::new(DIRECT_BLOCKS[3]);
        let least = DIRECT_BLOCKS
            .into_iter()
            .filter(|&block| block as u64 <= self.bytes)
            .find(|&block| self.file.read_exact_at(&mut buffer[..block], 0).is_ok());
        self.set_direct(false).ok()?;
        let held = resident_share(&self.file, SECTOR_BYTES as u64).ok()?;
        least.filter(|_| held == 0.0)
    }
}

/// The free space on the disk of `folder`, and the largest file that the process may write.
pub(super) fn room(folder: &Path) -> Result<(u64, u64)> {
    let room = rustix::fs::statvfs(folder).map_err(|error| {
        Error::io(folder.display().to_string(), "ask for its free room", error.into())
    })?;
    let limit = rustix::process::getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
    Ok((room.f_bavail.saturating_mul(room.f_frsize), limit))
}

fn has_room(folder: &Path, name: &str, bytes: u64) -> Result<()> {
    let (free, limit) = room(folder)?;
    if free < bytes.saturating_add(SPARE_BYTES) {
        return Err(no_room(name, bytes + SPARE_BYTES, free));
    }
    if limit < bytes {
        return Err(no_room(&format!("{name} (file size limit of the process)"), bytes, limit));
    }
    Ok(())
}

fn no_room(folder: &str, asked_bytes: u64, left_bytes: u64) -> Error {
    Error::NoRoom { subject: format!("trial file in {folder}"), asked_bytes, left_bytes }
}

/// Reserves the space, so that writes cannot run out of it.
fn reserve(file: &File, name: &str, bytes: u64) -> Result<()> {
    use rustix::io::Errno;
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(()),
        Err(Errno::NOSPC | Errno::DQUOT) => Err(no_room(name, bytes, 0)),
        Err(error) => Err(Error::io(name, "reserve room there", error.into())),
    }
}

/// A new seed for each run, so that no storage has seen the bytes before.
fn seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    now as u64 ^ (u64::from(std::process::id()) << 40)
}
