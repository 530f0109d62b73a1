//! Limits a data folder to one writer.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::error::{Error, Result};

/// The lock file. It remains when its holder ends: only the lock on it counts, which the system releases even
/// for a killed process.
const NAME: &str = "lock";

/// The exclusive right to write to a data folder, held until it is dropped.
#[derive(Debug)]
pub(crate) struct FolderLock {
    file: File,
    /// The process that took it: its forked children have no right to release it.
    process: u32,
}

impl FolderLock {
    /// Takes the lock of `folder`.
    ///
    /// # Errors
    /// [`Error::Locked`] if another writer holds it, [`Error::Io`].
    pub(crate) fn take(folder: &Path) -> Result<Self> {
        let place = folder.join(NAME);
        let path = place.display().to_string();
        let fail = |what, error: std::io::Error| Error::io(&path, what, error);
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut file = rustix::fs::open(&place, flags, Mode::from(0o666))
            .map(File::from)
            .map_err(|error| fail("open the lock", error.into()))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => {
                let mut text = String::new();
                let _ = file.take(32).read_to_string(&mut text);
                return Err(Error::Locked { path, pid: text.trim().parse().ok() });
            }
            locked => locked.map_err(|error| fail("take the lock", error.into()))?,
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(|error| fail("write to the lock", error))?;
        Ok(FolderLock { file, process: std::process::id() })
    }
}

impl Drop for FolderLock {
    /// Releases the lock, rather than only closing the file: until its `exec`, a child that another
    /// thread starts at this moment has a copy of the descriptor, which would keep the lock.
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // If that fails, the system releases the lock when the last copy is closed.
            let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_released_lock_can_be_taken_while_a_child_still_has_the_descriptor() {
        let folder = tempfile::tempdir().unwrap();
        let lock = FolderLock::take(folder.path()).unwrap();
        // Shares the lock, as the copy in a child between `fork` and `exec` does.
        let of_child = lock.file.try_clone().unwrap();
        assert!(matches!(FolderLock::take(folder.path()), Err(Error::Locked { .. })));
        drop(lock);
        let again = FolderLock::take(folder.path()).unwrap();
        drop(of_child);
        assert!(matches!(FolderLock::take(folder.path()), Err(Error::Locked { .. })));
        drop(again);
    }

    #[test]
    fn a_forked_child_does_not_release_the_lock_of_its_parent() {
        let folder = tempfile::tempdir().unwrap();
        let lock = FolderLock::take(folder.path()).unwrap();
        let file = lock.file.try_clone().unwrap();
        drop(FolderLock { file, process: lock.process + 1 });
        assert!(matches!(FolderLock::take(folder.path()), Err(Error::Locked { .. })));
    }
}
