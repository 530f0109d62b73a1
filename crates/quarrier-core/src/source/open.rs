//! Opens a source by the name that the user gave.

use std::fs::File;
use std::io;
use std::path::Path;

use super::{FileSource, Source, SplitSource};
use crate::error::Result;
use crate::name;

/// Opens a path: a regular file, a block device, or the first part of a split image
/// (`image.001` or `image.000`, with the parts that follow it).
///
/// # Errors
/// As [`FileSource::open`].
pub fn open(path: &Path) -> Result<Box<dyn Source>> {
    if SplitSource::is_first_part(path) {
        let split = SplitSource::open(path)?;
        return Ok(Box::new(split));
    }
    Ok(Box::new(FileSource::open(path)?))
}

/// Opens a file for sequential reading without blocking: a named pipe opens at once, whether or not
/// it has a writer. Read it through [`Polled`](super::Polled), which reports when no bytes are
/// available.
///
/// # Errors
/// The system's error.
pub fn open_in_order(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// As [`open`], but bypasses the page cache.
///
/// # Errors
/// As [`FileSource::open_direct`].
pub fn open_direct(path: &Path) -> Result<Box<dyn Source>> {
    if !SplitSource::is_first_part(path) {
        return Ok(Box::new(FileSource::open_direct(path)?));
    }
    let mut parts: Vec<Box<dyn Source>> = Vec::new();
    for part in SplitSource::parts_from(path) {
        parts.push(Box::new(FileSource::open_direct(&part)?));
    }
    Ok(Box::new(SplitSource::new(name::of_path(path), parts)?))
}
