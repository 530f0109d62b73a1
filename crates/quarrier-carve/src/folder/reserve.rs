//! Reserves disk space for the reports, so that they can be written to a full disk.

use std::fs::File;
use std::io;

use super::place::{Place, RESERVE};

/// Minimum growth of the reserve in bytes.
const STEP_BYTES: u64 = 256 << 10;

/// A file as large as the reports will be.
pub(super) struct Reserve {
    file: File,
    needed_bytes: u64,
    held_bytes: u64,
}

impl Reserve {
    pub(super) fn new(place: &Place) -> io::Result<Self> {
        let file = place.create_in_state(RESERVE)?;
        Ok(Reserve { file, needed_bytes: 16 << 10, held_bytes: 0 })
    }

    /// Reserves `bytes` more.
    ///
    /// # Errors
    /// If the disk has no space for them.
    pub(super) fn grow(&mut self, bytes: u64) -> io::Result<()> {
        self.needed_bytes += bytes;
        if self.needed_bytes > self.held_bytes {
            let wanted = self.needed_bytes + STEP_BYTES;
            // The disk may have space for the bytes needed, if not for the whole step.
            hold(&self.file, wanted)
                .map(|()| self.held_bytes = wanted)
                .or_else(|_| hold(&self.file, self.needed_bytes))?;
            self.held_bytes = self.held_bytes.max(self.needed_bytes);
        }
        Ok(())
    }

    /// Frees the reserved space.
    pub(super) fn release(&mut self, place: &Place) {
        let _ = self.file.set_len(0);
        place.remove_in_state(RESERVE);
        self.held_bytes = u64::MAX;
    }
}

/// Lets the file system reserve `bytes` for `file`; does nothing if it cannot.
#[cfg(target_os = "linux")]
fn hold(file: &File, bytes: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
        held => held.map_err(io::Error::from),
    }
}

/// Lets the file system reserve `bytes` for `file`; does nothing if it cannot.
#[cfg(not(target_os = "linux"))]
fn hold(_: &File, _: u64) -> io::Result<()> {
    Ok(())
}
