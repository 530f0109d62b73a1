//! Temporary files without a name: their space is freed however the process ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;

/// Bytes that are left free on a disk, or this part of it if that is less.
const SPARE_BYTES: u64 = 1 << 30;
const SPARE_PART: u64 = 16;
/// The unit in which zeros become holes.
const BLOCK_BYTES: usize = 16 << 10;

/// A temporary file that nobody else sees. Blocks of zeros take no space in it, and it never fills the
/// last GiB, or sixteenth, of its disk.
#[derive(Debug)]
pub struct ScratchFile {
    file: File,
    folder: PathBuf,
    length: AtomicU64,
    spare_bytes: Option<u64>,
}

impl ScratchFile {
    /// Creates an empty file on the disk of `folder`.
    ///
    /// # Errors
    /// The error of the system, with the name of the folder.
    pub fn create(folder: &Path) -> io::Result<Self> {
        let file = nameless(folder).map_err(|error| {
            let why = format!("cannot create a temporary file in {}: {error}", folder.display());
            io::Error::new(error.kind(), why)
        })?;
        let folder = folder.to_path_buf();
        Ok(ScratchFile { file, folder, length: AtomicU64::new(0), spare_bytes: None })
    }

    /// Leaves `bytes` free on the disk instead.
    #[must_use]
    pub fn sparing(mut self, bytes: u64) -> Self {
        self.spare_bytes = Some(bytes);
        self
    }

    /// Length in bytes.
    pub fn length(&self) -> u64 {
        self.length.load(Ordering::Acquire)
    }

    /// Appends `bytes`, which readers see as soon as this returns. Only one thread may append.
    ///
    /// # Errors
    /// [`StorageFull`](io::ErrorKind::StorageFull) if the disk has no more space for it, with the name of
    /// the folder; otherwise the error of the system.
    pub fn append(&self, bytes: &[u8]) -> io::Result<()> {
        static ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];
        let start = self.length();
        let is_zero = |block: &[u8]| *block == ZEROS[..block.len()];
        let mut rest = bytes;
        while !rest.is_empty() {
            let run = |is_hole: bool, rest: &[u8]| -> usize {
                let blocks = rest.chunks(BLOCK_BYTES);
                blocks.take_while(|block| is_zero(block) == is_hole).map(<[u8]>::len).sum()
            };
            rest = &rest[run(true, rest)..];
            let at = start + (bytes.len() - rest.len()) as u64;
            let (data, others) = rest.split_at(run(false, rest));
            rest = others;
            if !data.is_empty() {
                self.refuse_to_fill(data.len() as u64)?;
                self.file.write_all_at(data, at).map_err(|error| self.failed(error))?;
            }
        }
        let end = start + bytes.len() as u64;
        self.file.set_len(end).map_err(|error| self.failed(error))?;
        self.length.store(end, Ordering::Release);
        Ok(())
    }

    /// Reads at `offset` into `buffer` and returns the number of bytes read; 0 from the end on.
    ///
    /// # Errors
    /// The error of the system.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn refuse_to_fill(&self, bytes: u64) -> io::Result<()> {
        // A file system that does not tell its space is full when a write fails.
        let Ok(disk) = rustix::fs::fstatvfs(&self.file) else { return Ok(()) };
        let all = disk.f_blocks.saturating_mul(disk.f_frsize);
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let spare = self.spare_bytes.unwrap_or(SPARE_BYTES.min(all / SPARE_PART));
        match free.saturating_sub(spare) {
            left if all == 0 || left >= bytes => Ok(()),
            _ => Err(self.full(&format!("only {free} bytes are free, and {spare} are left free"))),
        }
    }

    fn failed(&self, error: io::Error) -> io::Error {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        match error.kind() {
            // Not with the number of the error: `Error` cuts a message there.
            kind @ (FileTooLarge | QuotaExceeded | StorageFull) => self.full(&kind.to_string()),
            _ => error,
        }
    }

    fn full(&self, why: &str) -> io::Error {
        let reason = format!(
            "there is no space for temporary files in {}, which take {} bytes already: {why}; name a \
             folder with more space in TMPDIR",
            self.folder.display(),
            self.length()
        );
        io::Error::new(io::ErrorKind::StorageFull, reason)
    }
}

/// Creates a file in `folder` that has no name, or loses it at once, to read and to write.
///
/// # Errors
/// The error of the system.
pub fn nameless(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    let flags = OFlags::TMPFILE.bits() as i32;
    match options.clone().custom_flags(flags).open(folder) {
        Ok(file) => Ok(file),
        // Not every file system supports files without a name.
        Err(_) => unlinked(folder, options.create_new(true)),
    }
}

/// Creates a file and removes its name at once.
fn unlinked(folder: &Path, options: &OpenOptions) -> io::Result<File> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let path = folder.join(format!(".quarrier-{}-{number:x}-{now:x}", std::process::id()));
    let file = options.open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn appended_bytes_are_read_and_zeros_take_no_space() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = ScratchFile::create(folder.path()).unwrap();
        let zeros = vec![0; 10 << 20];
        let noise: Vec<u8> = (0..100_000u32).map(|at| (at * 7 / 3) as u8 | 1).collect();
        let mut expected = Vec::new();
        for bytes in [&noise[..], &zeros, &noise[..77], &zeros[..5], &zeros, &noise, &zeros[..1]] {
            scratch.append(bytes).unwrap();
            expected.extend_from_slice(bytes);
            assert_eq!(scratch.length(), expected.len() as u64);
        }
        let mut found = vec![1; expected.len() + 9];
        let mut filled = 0;
        while let read @ 1.. = scratch.read_at(filled as u64, &mut found[filled..]).unwrap() {
            filled += read;
        }
        assert!(found[..filled] == expected);
        assert!(scratch.file.metadata().unwrap().blocks() * 512 < 2 << 20, "zeros take space");
        assert_eq!(folder.path().read_dir().unwrap().count(), 0, "it has a name");
    }

    #[test]
    fn the_last_space_of_a_disk_is_left_free() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = ScratchFile::create(folder.path()).unwrap().sparing(u64::MAX);
        scratch.append(&[0; 1000]).unwrap();
        let full = scratch.append(&[1; 1000]).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        let place = folder.path().display().to_string();
        assert!(full.to_string().contains(&place) && full.to_string().contains("TMPDIR"), "{full}");
        for number in [rustix::io::Errno::NOSPC, rustix::io::Errno::FBIG, rustix::io::Errno::DQUOT]
        {
            let full = scratch.failed(number.into());
            let shown = crate::Error::io("f", "read", full).to_string();
            assert!(shown.ends_with("name a folder with more space in TMPDIR"), "{shown}");
        }
        let missing = ScratchFile::create(&folder.path().join("missing")).unwrap_err();
        assert!(missing.to_string().contains("missing"), "{missing}");
    }

    #[test]
    fn a_file_system_without_nameless_files_gets_one_whose_name_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let file = unlinked(folder.path(), &options).unwrap();
        file.write_all_at(b"here", 0).unwrap();
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }
}
