//! Checkpoint files of a data folder, written as a whole: a head, and the body that it describes. The log has
//! all of their data.
//!
//! ```text
//!    0  8  magic                            56  8  bytes after the head
//!    8  4  version, 1                       64  8  CRC-64/NVME of them
//!   12  4  table, or 0                      72  16 the program's version, then zeros
//!   16  40 five numbers                   4092  4  CRC-32C of bytes 0..4092
//! ```
//!
//! Such a file is replaced as a whole: a new file is written, synced and renamed, and the folder is synced.
//! So a crash leaves either the old file or the new one.

use std::io::{self, Read, Write};
use std::sync::Arc;

use crc_fast::{CrcAlgorithm, Digest};
use quarrier_core::region::AlignedBuffer;

use super::ahead;
use crate::log::disk::{Access, Disk};
use crate::log::{Error, Output, Result, crc32, is_full};

const VERSION: u32 = 1;
const HEAD_BYTES: usize = 4096;
const CHECKED_BYTES: usize = HEAD_BYTES - 4;
/// Bytes to read or write at once.
const BUFFER_BYTES: usize = 4 << 20;
/// Another version of the program may parse messages differently, so it does not use the columns.
const PROGRAM: &str = env!("CARGO_PKG_VERSION");
const PROGRAM_BYTES: usize = 16;

/// The contents of a file's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) magic: &'static [u8; 8],
    pub(super) table: u32,
    /// Numbers whose meaning the writer of the file defines.
    pub(super) numbers: [u64; 5],
}

/// The reason why a file is not used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unused {
    /// The file does not exist, which needs no notice.
    Silently,
    For(String),
}

impl Unused {
    pub(super) fn damaged() -> Unused {
        Unused::For("is damaged".to_string())
    }

    pub(super) fn of(error: &io::Error) -> Unused {
        match error.kind() {
            io::ErrorKind::NotFound => Unused::Silently,
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => Unused::damaged(),
            _ => Unused::For(format!("cannot be read ({error})")),
        }
    }
}

/// Replaces the file with this name by one of about `bytes` bytes.
///
/// # Errors
/// [`Error::Full`], [`Error::Io`]; the old file then remains.
pub(super) fn replace(
    disk: &dyn Disk,
    (name, bytes): (&str, usize),
    head: Head,
    body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    let new = format!("{name}.new");
    let written = write(disk, (&new, bytes), head, body).and_then(|()| {
        disk.rename(&new, name)?;
        disk.sync_folder()
    });
    written.map_err(|error| {
        // Free its space.
        let _ = disk.remove(&new);
        let path = disk.path(name);
        match is_full(&error) {
            true => Error::Full { path, error: Arc::new(error) },
            false => Error::io(path, "write it", error),
        }
    })
}

fn write(
    disk: &dyn Disk,
    (name, bytes): (&str, usize),
    head: Head,
    body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let file = disk.create(name, (HEAD_BYTES + bytes) as u64)?;
    let mut buffer =
        AlignedBuffer::new(BUFFER_BYTES.min((2 * HEAD_BYTES + bytes).next_multiple_of(HEAD_BYTES)));
    let output = Output::new(file.as_ref(), &mut buffer, HEAD_BYTES as u64);
    let mut sink = Sink { output, digest: Digest::new(CrcAlgorithm::Crc64Nvme), bytes: 0 };
    body(&mut sink)?;
    sink.output.pad(file.block_bytes())?;
    sink.output.flush()?;
    let (bytes, sum) = (sink.bytes, sink.digest.finalize());
    let mut output = Output::new(file.as_ref(), &mut buffer, 0);
    output.put(&head.to_bytes(bytes, sum))?;
    output.flush()?;
    let end = HEAD_BYTES as u64 + bytes;
    file.truncate(end.next_multiple_of(file.block_bytes()))?;
    file.sync()
}

/// Reads a file with this name and type: `is_wanted` checks its head first, and `read` parses that many bytes
/// after the head. Fails unless the checksum matches.
///
/// # Errors
/// The reason for not using the file.
pub(super) fn read<T>(
    disk: &dyn Disk,
    name: &str,
    magic: &'static [u8; 8],
    is_wanted: impl FnOnce(&Head) -> std::result::Result<(), Unused>,
    read: impl FnOnce(&mut dyn Read, u64) -> io::Result<T>,
) -> std::result::Result<(Head, T), Unused> {
    let file = disk.open(name, Access::Read).map_err(|error| Unused::of(&error))?;
    let head = ahead::parse(file.as_ref(), (0, HEAD_BYTES as u64), |body| {
        let mut bytes = vec![0; HEAD_BYTES];
        body.read_exact(&mut bytes).map(|()| bytes)
    });
    let (head, _) = head.map_err(|error| Unused::of(&error))?;
    let (head, bytes, sum) = Head::read(magic, &head)?;
    is_wanted(&head)?;
    let parse = |body: &mut dyn Read| read(body, bytes);
    let parsed = ahead::parse(file.as_ref(), (HEAD_BYTES as u64, bytes), parse);
    let (read, found) = parsed.map_err(|error| Unused::of(&error))?;
    if found != sum {
        return Err(Unused::damaged());
    }
    Ok((head, read))
}

impl Head {
    fn to_bytes(self, body_bytes: u64, body_sum: u64) -> Vec<u8> {
        let mut bytes = self.magic.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.table.to_le_bytes());
        for number in self.numbers.into_iter().chain([body_bytes, body_sum]) {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&program());
        bytes.resize(CHECKED_BYTES, 0);
        let sum = crc32(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads the head; returns it with the number of bytes after it and their checksum.
    fn read(
        magic: &'static [u8; 8],
        bytes: &[u8],
    ) -> std::result::Result<(Head, u64, u64), Unused> {
        let u32_at = |at: usize| bytes.get(at..)?.first_chunk().map(|it| u32::from_le_bytes(*it));
        let u64_at = |at: usize| bytes.get(at..)?.first_chunk().map(|it| u64::from_le_bytes(*it));
        let is_whole = bytes.starts_with(magic)
            && u32_at(CHECKED_BYTES) == bytes.get(..CHECKED_BYTES).map(crc32);
        if !is_whole {
            return Err(Unused::damaged());
        }
        let is_parsed = magic == super::columns::MAGIC;
        let is_alike = !is_parsed || bytes[72..].starts_with(&program());
        if u32_at(8) != Some(VERSION) || !is_alike {
            return Err(Unused::For("was written by another version".to_string()));
        }
        let mut numbers = [0; 5];
        for (number, at) in numbers.iter_mut().zip((16..).step_by(8)) {
            *number = u64_at(at).unwrap_or_default();
        }
        let table = u32_at(12).unwrap_or_default();
        let head = Head { magic, table, numbers };
        Ok((head, u64_at(56).unwrap_or_default(), u64_at(64).unwrap_or_default()))
    }
}

fn program() -> [u8; PROGRAM_BYTES] {
    let mut program = [0; PROGRAM_BYTES];
    program.iter_mut().zip(PROGRAM.bytes()).for_each(|(to, from)| *to = from);
    program
}

/// Writes bytes to a file, counts them, and computes their checksum.
struct Sink<'o> {
    output: Output<'o>,
    digest: Digest,
    bytes: u64,
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.put(bytes)?;
        self.digest.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
