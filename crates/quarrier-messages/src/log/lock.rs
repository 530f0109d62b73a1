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
pub(super) struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Takes the lock of `folder`.
    ///
    /// # Errors
    /// [`Error::Locked`] if another writer holds it, [`Error::Io`].
    pub(super) fn take(folder: &Path) -> Result<Self> {
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
        Ok(FolderLock { _file: file })
    }
}
