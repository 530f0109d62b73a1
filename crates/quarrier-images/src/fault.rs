//! Errors of images: the error, the file, the offset.

use std::io;

use quarrier_core::source::{Source, read_exact_at};
use quarrier_core::{Error, Result};

/// An error: the file cannot be opened as an image for `reason`.
pub(crate) fn refused(file: &dyn Source, reason: impl Into<String>) -> Error {
    Error::NotReadable { source_name: file.name().to_string(), reason: reason.into() }
}

/// An error: the file is damaged at `offset`.
pub(crate) fn damaged(file: &dyn Source, offset: u64, reason: impl AsRef<str>) -> Error {
    let reason = reason.as_ref();
    refused(
        file,
        format!("damaged at byte {offset}: {reason}; copy the image again from its source"),
    )
}

/// An I/O error for a read of damaged bytes.
pub(crate) fn invalid(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}

/// An error of bytes unpacked up to `end`; other errors than damage stay as they are.
pub(crate) fn damaged_inside(error: &io::Error, end: u64) -> io::Error {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    match error.kind() {
        InvalidData | InvalidInput | Other | UnexpectedEof => {
            invalid(format!("damaged: {error}; nothing after byte {end} could be decompressed"))
        }
        kind => io::Error::new(kind, error.to_string()),
    }
}

/// Reads `length` bytes of the structure `what` at `offset`.
///
/// # Errors
/// [`damaged`] if the file is too short, [`Error::Io`] if it cannot be read.
pub(crate) fn structure(
    file: &dyn Source,
    offset: u64,
    length: u64,
    what: &str,
) -> Result<Vec<u8>> {
    read_exact_at(file, offset, length).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            damaged(file, offset, format!("{what} lies beyond the end of the file"))
        }
        _ => Error::io(file.name(), format!("read {what} at byte {offset}"), error),
    })
}

/// Allocates `bytes` zeros, a size that comes from the image.
///
/// # Errors
/// `OutOfMemory` if the allocation fails.
pub(crate) fn room(bytes: usize) -> io::Result<Vec<u8>> {
    let mut room = Vec::new();
    let reserved = room.try_reserve_exact(bytes);
    reserved.map_err(|_| {
        let why = format!("there is no memory for {bytes} bytes");
        io::Error::new(io::ErrorKind::OutOfMemory, why)
    })?;
    room.resize(bytes, 0);
    Ok(room)
}
