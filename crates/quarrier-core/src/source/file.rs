//! A file or block device.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;

use rustix::fs::SeekFrom;

use super::{Source, window_anywhere};
use crate::error::{Error, Result};
use crate::name;
use crate::region::{MappedWindow, Region};

/// A regular file or a block device, opened for reading.
#[derive(Debug)]
pub struct FileSource {
    name: String,
    file: File,
    length: u64,
    sector_bytes: usize,
    is_regular: bool,
    /// The same file opened with `O_DIRECT`, for aligned reads that bypass the page cache.
    direct: Option<File>,
}

impl FileSource {
    /// Opens `path`, a regular file or block device.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be opened, [`Error::NotReadable`] if it is a folder or does not
    /// allow random access (use standard input for pipes).
    pub fn open(path: &Path) -> Result<Self> {
        let name = name::of_path(path);
        // Opens without blocking, so that a named pipe is refused rather than waited for.
        let file = super::open_in_order(path).map_err(|error| Error::io(&name, "open", error))?;
        FileSource::from_file(name, file)
    }

    /// Makes a source of an open file.
    ///
    /// # Errors
    /// As [`FileSource::open`].
    pub fn from_file(name: String, file: File) -> Result<Self> {
        let meta = file.metadata().map_err(|error| Error::io(&name, "inspect", error))?;
        let kind = meta.file_type();
        let refuse = |reason: &str| {
            Err(Error::NotReadable { source_name: name.clone(), reason: reason.to_string() })
        };
        if kind.is_dir() {
            return refuse("is a folder; name the files in it, for example FOLDER/*");
        }
        if kind.is_fifo() || kind.is_socket() {
            return refuse("is a pipe; pass it as standard input: quarrier … - < PIPE");
        }
        if kind.is_block_device() {
            let length = device_length(&file)
                .map_err(|error| Error::io(&name, "read the size of the device", error))?;
            let sector_bytes = device_sector_bytes(&file).unwrap_or(512);
            return Ok(FileSource {
                name,
                file,
                length,
                sector_bytes,
                is_regular: false,
                direct: None,
            });
        }
        if kind.is_char_device() {
            return refuse("is a character device without a length; pass it as standard input");
        }
        Ok(FileSource {
            name,
            file,
            length: meta.len(),
            sector_bytes: 512,
            is_regular: true,
            direct: None,
        })
    }

    /// Whether this is a regular file (not a device).
    pub fn is_regular(&self) -> bool {
        self.is_regular
    }

    /// Opens `path` so that aligned reads bypass the page cache (`O_DIRECT`).
    ///
    /// # Errors
    /// As [`FileSource::open`], and if the file system does not support it.
    pub fn open_direct(path: &Path) -> Result<Self> {
        let mut source = FileSource::open(path)?;
        let flags =
            rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC | rustix::fs::OFlags::DIRECT;
        let direct = rustix::fs::open(path, flags, rustix::fs::Mode::empty()).map_err(|error| {
            Error::io(&source.name, "open without the page cache", error.into())
        })?;
        source.direct = Some(File::from(direct));
        Ok(source)
    }
}

/// Returns a block device's length: `lseek` to its end, which every block driver supports and which
/// returns the same number as the `BLKGETSIZE64` ioctl.
fn device_length(file: &File) -> io::Result<u64> {
    Ok(rustix::fs::seek(file, SeekFrom::End(0))?)
}

/// Returns the logical sector size, by the `BLKSSZGET` ioctl.
fn device_sector_bytes(file: &File) -> io::Result<usize> {
    let bytes = rustix::fs::ioctl_blksszget(file)?;
    Ok((bytes as usize).clamp(512, 1 << 16))
}

impl Source for FileSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let count = buffer.len().min(left);
        if let Some(direct) = &self.direct {
            let page = crate::region::PAGE_BYTES;
            let whole = count - count % page;
            let is_aligned =
                offset.is_multiple_of(page as u64) && buffer.as_ptr().addr().is_multiple_of(page);
            if is_aligned && whole > 0 {
                return direct.read_at(&mut buffer[..whole], offset);
            }
        }
        self.file.read_at(&mut buffer[..count], offset)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        if offset >= self.length {
            return Ok(None);
        }
        if !self.is_regular {
            return Ok(Some(offset..self.length));
        }
        let start = match rustix::fs::seek(&self.file, SeekFrom::Data(offset)) {
            Ok(start) => start,
            // Only a hole follows, or the file shrank to before this offset: report data, so that
            // the reader notices.
            Err(rustix::io::Errno::NXIO) => {
                let is_shorter = self.file.metadata()?.len() < self.length;
                return Ok(is_shorter.then_some(offset..self.length));
            }
            // A file system that does not report extents counts as data everywhere.
            Err(_) => return Ok(Some(offset..self.length)),
        };
        let end = rustix::fs::seek(&self.file, SeekFrom::Hole(start)).unwrap_or(self.length);
        let end = end.min(self.length);
        Ok((start < end).then_some(start..end))
    }

    fn window(&self, range: Range<u64>) -> Option<io::Result<Region<'_>>> {
        if !self.is_regular || self.direct.is_some() {
            return None;
        }
        Some(MappedWindow::new(self.file.as_fd(), range).map(Region::Window))
    }

    fn next_window(&self, range: Range<u64>, bytes_min: u64) -> Option<Range<u64>> {
        if !self.is_regular || self.direct.is_some() {
            return None;
        }
        window_anywhere(range, bytes_min)
    }

    fn is_resident(&self) -> bool {
        self.is_regular && self.direct.is_none() && resident_share(&self.file, self.length) >= 0.9
    }

    fn sector_bytes(&self) -> usize {
        self.sector_bytes
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.direct.as_ref().unwrap_or(&self.file).as_fd())
    }
}

/// Estimates the share of a file in the page cache by 64 probes with `preadv2(RWF_NOWAIT)`, which
/// returns without touching the disk.
fn resident_share(file: &File, length: u64) -> f64 {
    const PROBES: u64 = 64;
    if length == 0 {
        return 1.0;
    }
    let (mut present, mut asked) = (0u64, 0u64);
    for probe in 0..PROBES {
        let offset = (u128::from(length - 1) * u128::from(probe) / u128::from(PROBES)) as u64;
        // A hole counts as resident: reading it costs no disk access.
        let mut byte = [0u8; 1];
        let mut buffers = [io::IoSliceMut::new(&mut byte)];
        asked += 1;
        match rustix::io::preadv2(file, &mut buffers, offset, rustix::io::ReadWriteFlags::NOWAIT) {
            Ok(1) => present += 1,
            Ok(_) => {}
            Err(_) => {}
        }
    }
    present as f64 / asked as f64
}
