//! A remote object that is read twice and fetched once.

use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use quarrier_core::scratch::ScratchFile;
use quarrier_core::source::Source;
use quarrier_core::sync::lock;
use quarrier_remote::{Error as RemoteError, RemoteSource};

/// An object whose bytes, as far as it is read in order, are kept in a temporary file for further reads. If the disk
/// has no space for them, they are fetched again.
pub(super) struct Spooled {
    object: RemoteSource,
    file: Option<ScratchFile>,
    /// Whether more bytes are kept; one thread at a time appends.
    is_growing: Mutex<bool>,
    stop: Arc<AtomicBool>,
    /// The first error of the object. Further reads of bytes that are not kept fail at once.
    failed: Mutex<Option<RemoteError>>,
}

impl Spooled {
    /// Begins to keep bytes in a file in `folder`.
    pub(super) fn new(object: RemoteSource, folder: &Path, stop: &Arc<AtomicBool>) -> Self {
        object.announce(0..object.length());
        let file = ScratchFile::create(folder).ok();
        let (is_growing, failed) = (Mutex::new(true), Mutex::default());
        Spooled { object, file, is_growing, stop: Arc::clone(stop), failed }
    }

    /// The first error of the object.
    pub(super) fn error(&self) -> Option<RemoteError> {
        lock(&self.failed).clone()
    }

    pub(super) fn object(&self) -> &RemoteSource {
        &self.object
    }

    fn fetch(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let refused = |error: RemoteError| io::Error::other(error);
        if let Some(error) = self.error() {
            return Err(refused(error));
        }
        self.object.read_unless(offset, buffer, &self.stop).map_err(|error| {
            lock(&self.failed).get_or_insert(error.clone());
            refused(error)
        })
    }

    /// Keeps bytes that follow those in the file.
    fn keep(&self, file: &ScratchFile, offset: u64, bytes: &[u8]) {
        let mut is_growing = lock(&self.is_growing);
        if *is_growing && offset == file.length() {
            *is_growing = file.append(bytes).is_ok();
        }
    }
}

impl Source for Spooled {
    fn name(&self) -> &str {
        self.object.name()
    }

    fn length(&self) -> u64 {
        self.object.length()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(file) = &self.file else { return self.fetch(offset, buffer) };
        let kept = file.length().saturating_sub(offset);
        if kept > 0 {
            let count = usize::try_from(kept).unwrap_or(usize::MAX).min(buffer.len());
            return file.read_at(offset, &mut buffer[..count]);
        }
        let count = self.fetch(offset, buffer)?;
        self.keep(file, offset, &buffer[..count]);
        Ok(count)
    }
}
