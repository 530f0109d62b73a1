//! Buffers bytes until they are complete: in memory while they are few, otherwise in an unnamed file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use quarrier_core::source::Source;

/// Maximum number of bytes to keep in memory.
const MEMORY_BYTES_MAX: usize = 256 << 10;

/// Numbers the files that this process creates.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Bytes in the order of arrival.
pub(super) struct Spool {
    folder: PathBuf,
    memory: Vec<u8>,
    file: Option<File>,
    length: u64,
}

impl Spool {
    /// Makes an empty spool. It creates its file in this folder when it needs one.
    pub(super) fn new(folder: &Path) -> Self {
        let folder = folder.to_path_buf();
        Spool { folder, memory: Vec::new(), file: None, length: 0 }
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// The operating system's error, such as for a full disk.
    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.length += bytes.len() as u64;
        if self.file.is_none() && !self.is_in_memory(bytes.len()) {
            let mut file = self.nameless()?;
            file.write_all(&self.memory)?;
            self.memory = Vec::new();
            self.file = Some(file);
        }
        match &mut self.file {
            Some(file) => file.write_all(bytes),
            None => {
                self.memory.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Returns whether `more` bytes fit in memory.
    pub(super) fn is_in_memory(&self, more: usize) -> bool {
        self.file.is_none() && self.memory.len() + more <= MEMORY_BYTES_MAX
    }

    /// Discards all bytes.
    pub(super) fn clear(&mut self) {
        self.memory.clear();
        (self.file, self.length) = (None, 0);
    }

    /// Creates a file that disappears when its descriptor is closed.
    fn nameless(&self) -> io::Result<File> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("spool.{}.{number}", std::process::id()));
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true).open(&path)?;
        std::fs::remove_file(&path)?;
        Ok(file)
    }

    /// Reads `count` bytes from an offset on.
    ///
    /// # Errors
    /// The operating system's error; [`io::ErrorKind::UnexpectedEof`] if there are fewer bytes.
    pub(super) fn bytes(&self, offset: u64, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        let mut filled = 0;
        while filled < count {
            match self.read_at(offset + filled as u64, &mut bytes[filled..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => filled += read,
            }
        }
        Ok(bytes)
    }
}

impl Source for Spool {
    fn name(&self) -> &str {
        "messages"
    }

    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(file) = &self.file {
            return file.read_at(buffer, offset);
        }
        let rest = usize::try_from(offset).ok().and_then(|from| self.memory.get(from..));
        let rest = rest.unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_same_in_memory_and_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(folder.path());
        let mut expected = Vec::new();
        for number in 0..2 * MEMORY_BYTES_MAX as u64 / 1_000 {
            let piece = number.to_le_bytes().repeat(125);
            spool.push(&piece).unwrap();
            expected.extend_from_slice(&piece);
            if number % 100 == 0 {
                assert_eq!(spool.bytes(0, expected.len()).unwrap(), expected);
            }
        }
        assert!(spool.file.is_some());
        assert_eq!(spool.bytes(12_345, 300_000).unwrap(), expected[12_345..312_345]);
        assert!(spool.bytes(spool.length() - 1, 2).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        spool.clear();
        spool.push(b"new").unwrap();
        assert_eq!((spool.length(), spool.bytes(0, 3).unwrap()), (3, b"new".to_vec()));
    }
}
