//! Follows a growing file: reads it in order, and waits at its end for more.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// How often to check the end of a file.
const PERIOD: Duration = Duration::from_millis(50);

/// Reads a file, and then the bytes appended to it. If another file takes its place, or it is
/// truncated, reads that from its start, as `tail -F` does.
pub(super) struct Following {
    path: PathBuf,
    file: File,
    /// Number of bytes read from the current file.
    offset: u64,
}

impl Following {
    /// # Errors
    /// The system's error if the file cannot be opened.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Following { path: path.to_path_buf(), file: File::open(path)?, offset: 0 })
    }

    /// Switches to the file that has the path now, if it was replaced or truncated.
    fn look_again(&mut self) -> io::Result<()> {
        let here = self.file.metadata()?;
        let is_other = |there: &Metadata| (there.dev(), there.ino()) != (here.dev(), here.ino());
        // A file may be missing for a moment during its replacement.
        let there = std::fs::metadata(&self.path).ok();
        let is_replaced = there.as_ref().is_some_and(is_other);
        if (is_replaced || here.len() < self.offset)
            && let Ok(file) = File::open(&self.path)
        {
            (self.file, self.offset) = (file, 0);
        }
        Ok(())
    }
}

impl Read for Following {
    /// [`WouldBlock`](ErrorKind::WouldBlock) if nothing has arrived for a moment.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        if count > 0 || buffer.is_empty() {
            self.offset += count as u64;
            return Ok(count);
        }
        self.look_again()?;
        sleep(PERIOD);
        Err(ErrorKind::WouldBlock.into())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn all(following: &mut Following) -> String {
        let mut text = String::new();
        let mut buffer = [0; 3];
        for _ in 0..100 {
            match following.read(&mut buffer) {
                Ok(count) => text.push_str(std::str::from_utf8(&buffer[..count]).unwrap()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if following.offset > 0 {
                        return text;
                    }
                }
                Err(error) => panic!("{error}"),
            }
        }
        text
    }

    #[test]
    fn appended_messages_are_printed_and_a_replaced_file_from_its_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "one\n").unwrap();
        let mut following = Following::open(&path).unwrap();
        assert_eq!(all(&mut following), "one\n");
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"two\n").unwrap();
        assert_eq!(all(&mut following), "two\n");
        // The old file's last bytes come first.
        file.write_all(b"last\n").unwrap();
        std::fs::rename(&path, folder.path().join("log.1")).unwrap();
        std::fs::write(&path, "new\n").unwrap();
        assert_eq!(all(&mut following), "last\nnew\n");
        std::fs::write(&path, "a\n").unwrap();
        assert_eq!(all(&mut following), "a\n");
    }
}
