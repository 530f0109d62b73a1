//! The place for compressed files that have to be unpacked to be read at any offset.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_core::scratch::ScratchFile;

/// Maximum size of a part of a compressed file that is held in memory; a file with a longer one is read
/// sequentially, or unpacked.
pub(crate) const PART_BYTES_MAX: u64 = 128 << 20;

/// The folder in which compressed files are unpacked, into temporary files without a name, if they
/// could otherwise only be read sequentially.
#[derive(Debug, Clone)]
pub struct ScratchFolder {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    part_bytes_max: u64,
    spare_bytes: Option<u64>,
}

impl ScratchFolder {
    /// Creates a value for the folder `path`. Once `stop` is true, unpacking ends with an error.
    #[must_use]
    pub fn new(path: &Path, stop: &Arc<AtomicBool>) -> Self {
        let (path, stop) = (path.to_path_buf(), Arc::clone(stop));
        ScratchFolder { path, stop, part_bytes_max: PART_BYTES_MAX, spare_bytes: None }
    }

    /// Holds parts of compressed files of up to `bytes` bytes in memory, instead of 128 MiB; files with
    /// longer ones are unpacked.
    #[must_use]
    pub fn part_bytes_max(mut self, bytes: u64) -> Self {
        self.part_bytes_max = bytes;
        self
    }

    /// Leaves `bytes` free on the disk, instead of one GiB or, on a disk of less than 16 GiB, a sixteenth.
    #[must_use]
    pub fn spare_bytes(mut self, bytes: u64) -> Self {
        self.spare_bytes = Some(bytes);
        self
    }

    pub(crate) fn longest_part_bytes(&self) -> u64 {
        self.part_bytes_max
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn file(&self) -> io::Result<ScratchFile> {
        let file = ScratchFile::create(&self.path)?;
        Ok(match self.spare_bytes {
            Some(bytes) => file.sparing(bytes),
            None => file,
        })
    }
}
