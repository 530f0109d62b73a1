//! Instruction files: patterns, conditions, signatures, statements.
//!
//! Such a file may be a pipe without a writer, or an endless device. So reading ends when the run is
//! stopped, and at a maximum size.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_core::name;
use quarrier_core::source::{Polled, open_in_order};

use crate::source::standard_input;
use crate::{Error, Result};

/// Maximum size of a file of patterns, conditions, signatures or statements, in bytes.
pub const INSTRUCTION_BYTES_MAX: u64 = 64 << 20;

/// Reads a file of `what` ("patterns"), at most [`INSTRUCTION_BYTES_MAX`] bytes; `-` is standard input.
///
/// # Errors
/// The system's error if the file cannot be read, [`Error::Request`] if it is longer,
/// [`Error::Stopped`] soon after `stop` becomes true.
pub fn read_instructions(path: &Path, what: &str, stop: &AtomicBool) -> Result<Vec<u8>> {
    read_bounded(path, what, INSTRUCTION_BYTES_MAX, stop)
}

/// Maximum size of a file of names, in bytes.
pub const NAMES_BYTES_MAX: u64 = 1 << 30;

/// The names of sources in a file of at most [`NAMES_BYTES_MAX`] bytes, one a line, or with a byte 0 after
/// each (`find -print0`); `-` is standard input. Names are bytes, and need not be UTF-8.
///
/// # Errors
/// Those of [`read_instructions`].
pub fn read_names(path: &Path, stop: &AtomicBool) -> Result<Vec<OsString>> {
    Ok(names_of(&read_bounded(path, "names", NAMES_BYTES_MAX, stop)?))
}

fn names_of(list: &[u8]) -> Vec<OsString> {
    let end = if list.contains(&0) { 0 } else { b'\n' };
    let names = list.split(|&byte| byte == end).filter(|name| !name.is_empty());
    names.map(|name| OsString::from_vec(name.to_vec())).collect()
}

/// Like [`read_instructions`], with a maximum size of `most` bytes.
///
/// # Errors
/// Those of [`read_instructions`].
pub fn read_bounded(path: &Path, what: &str, most: u64, stop: &AtomicBool) -> Result<Vec<u8>> {
    let name = name::of_path(path);
    let cannot = |error: io::Error| {
        Error::from(quarrier_core::Error::io(&name, format!("read the {what}"), error))
    };
    let mut reader: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(standard_input()),
        false => Box::new(Polled::new(open_file(path).map_err(cannot)?)),
    };
    let mut bytes = Vec::new();
    // Read one more byte, to detect a file that is too long.
    let mut bounded = reader.by_ref().take(most + 1);
    loop {
        match bounded.read_to_end(&mut bytes) {
            Ok(_) => break,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(cannot(error)),
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped { name, offset: bytes.len() as u64 });
        }
    }
    if bytes.len() as u64 > most {
        return Err(Error::Request(format!(
            "{name}: more than {most} bytes of {what}, which is the maximum"
        )));
    }
    Ok(bytes)
}

fn open_file(path: &Path) -> io::Result<File> {
    let file = open_in_order(path)?;
    match file.metadata()?.is_dir() {
        true => Err(ErrorKind::IsADirectory.into()),
        false => Ok(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_names_on_lines_or_with_zeros_after_them() {
        assert_eq!(names_of(b"a\n\nb c\n\xFF\n").len(), 3);
        assert_eq!(names_of(b"a\nb\0c\0"), ["a\nb", "c"]);
        assert!(names_of(b"").is_empty());
    }
}
