//! Reads a file while its contents are parsed: one thread reads the next pieces from the disk and computes their
//! checksum, another parses those that have arrived.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::scope;

use crc_fast::{CrcAlgorithm, Digest};
use quarrier_core::region::AlignedBuffer;
use quarrier_core::threads;

use crate::log::disk::DiskFile;

/// Bytes to read at once.
const PIECE_BYTES: usize = 4 << 20;
/// Offsets and sizes of reads are multiples of this.
const ALIGNMENT: usize = 4096;
/// Number of buffers: one is parsed, one is read, and one waits.
const BUFFERS: usize = 3;

/// Parses `bytes` bytes of a file from an offset, a multiple of 4096; `parse` reads them in order. Returns its
/// result and the CRC-64/NVME of all these bytes.
///
/// # Errors
/// Those of the disk and of `parse`; [`io::ErrorKind::UnexpectedEof`] if the file has fewer bytes.
pub(super) fn parse<T>(
    file: &dyn DiskFile,
    (at, bytes): (u64, u64),
    parse: impl FnOnce(&mut dyn Read) -> io::Result<T>,
) -> io::Result<(T, u64)> {
    let pieces = || Pieces { file, at, left: bytes, digest: Digest::new(CrcAlgorithm::Crc64Nvme) };
    if bytes <= PIECE_BYTES as u64 {
        return alone(pieces(), parse);
    }
    scope(|scope| {
        let (full, filled) = sync_channel(BUFFERS);
        let (empty, emptied) = channel();
        let reading = pieces();
        let Ok(reader) =
            threads::in_scope(scope, "quarrier-ahead", move || reading.run(&emptied, &full))
        else {
            return alone(pieces(), parse);
        };
        for _ in 0..BUFFERS {
            let _ = empty.send(AlignedBuffer::new(PIECE_BYTES));
        }
        let mut body = Body { filled, empty, held: None };
        let parsed = parse(&mut body);
        // Without a receiver, the reader ends.
        drop(body);
        let sum = threads::joined(reader);
        Ok((parsed?, sum))
    })
}

fn alone<T>(
    mut pieces: Pieces<'_>,
    parse: impl FnOnce(&mut dyn Read) -> io::Result<T>,
) -> io::Result<(T, u64)> {
    let buffer = AlignedBuffer::new(pieces.next_bytes());
    let mut body = Alone { pieces: &mut pieces, buffer, held: 0..0 };
    let parsed = parse(&mut body)?;
    Ok((parsed, pieces.digest.finalize()))
}

/// The part of a file that was not read yet, and the checksum of what was.
struct Pieces<'f> {
    file: &'f dyn DiskFile,
    at: u64,
    left: u64,
    digest: Digest,
}

impl Pieces<'_> {
    /// Returns the size of a buffer for the next piece.
    fn next_bytes(&self) -> usize {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        left.min(PIECE_BYTES).next_multiple_of(ALIGNMENT).max(ALIGNMENT)
    }

    /// Reads the next piece; returns its size, 0 at the end.
    fn next(&mut self, buffer: &mut AlignedBuffer) -> io::Result<usize> {
        if self.left == 0 {
            return Ok(0);
        }
        let read = self.file.read_at(self.at, buffer)?;
        let count = usize::try_from(self.left).map_or(read, |left| read.min(left));
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.digest.update(&buffer[..count]);
        self.at += count as u64;
        self.left -= count as u64;
        Ok(count)
    }

    /// Reads pieces into the buffers that arrive, until the end, an error, or nobody needs more.
    fn run(mut self, empty: &Receiver<AlignedBuffer>, full: &SyncSender<Filled>) -> u64 {
        while let Ok(mut buffer) = empty.recv() {
            let piece = self.next(&mut buffer).map(|count| (buffer, count));
            let is_last = !matches!(piece, Ok((_, count)) if count > 0);
            if full.send(piece).is_err() || is_last {
                break;
            }
        }
        self.digest.finalize()
    }
}

type Filled = io::Result<(AlignedBuffer, usize)>;

/// The bytes of pieces that another thread reads.
struct Body {
    filled: Receiver<Filled>,
    empty: Sender<AlignedBuffer>,
    /// The piece that is being parsed, and its part that is left.
    held: Option<(AlignedBuffer, Range<usize>)>,
}

impl Read for Body {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some((buffer, _)) = self.held.take_if(|(_, left)| left.start == left.end) {
            // After the last piece, the reader needs no more.
            let _ = self.empty.send(buffer);
        }
        if self.held.is_none() {
            let Ok(piece) = self.filled.recv() else { return Ok(0) };
            self.held = piece.map(|(buffer, count)| Some((buffer, 0..count)))?;
        }
        Ok(self.held.as_mut().map_or(0, |(buffer, left)| copy(buffer, left, into)))
    }
}

/// The same without another thread.
struct Alone<'p, 'f> {
    pieces: &'p mut Pieces<'f>,
    buffer: AlignedBuffer,
    held: Range<usize>,
}

impl Read for Alone<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.held.is_empty() {
            self.held = 0..self.pieces.next(&mut self.buffer)?;
        }
        Ok(copy(&self.buffer, &mut self.held, into))
    }
}

fn copy(from: &[u8], left: &mut Range<usize>, into: &mut [u8]) -> usize {
    let count = into.len().min(left.len());
    into[..count].copy_from_slice(&from[left.start..left.start + count]);
    left.start += count;
    count
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A file whose reads return few bytes, and fail from some number of reads on.
    struct Short {
        bytes: Vec<u8>,
        reads: AtomicUsize,
        reads_max: usize,
    }

    impl DiskFile for Short {
        fn length(&self) -> io::Result<u64> {
            Ok(self.bytes.len() as u64)
        }

        fn block_bytes(&self) -> u64 {
            512
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
            let number = self.reads.fetch_add(1, Ordering::Relaxed);
            if number >= self.reads_max {
                return Err(io::Error::other("it fails"));
            }
            let rest = self.bytes.get(offset as usize..).unwrap_or_default();
            let piece = if number.is_multiple_of(3) { 8192 } else { usize::MAX };
            let count = rest.len().min(buffer.len()).min(piece);
            buffer[..count].copy_from_slice(&rest[..count]);
            Ok(count)
        }

        fn write_at(&self, _: u64, _: &[u8]) -> io::Result<usize> {
            Ok(0)
        }

        fn allocate(&self, _: u64) -> io::Result<()> {
            Ok(())
        }

        fn truncate(&self, _: u64) -> io::Result<()> {
            Ok(())
        }

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }

    fn file(bytes: usize, reads_max: usize) -> Short {
        let bytes = (0..bytes as u64).map(|at| ((at * at) >> 7) as u8).collect();
        Short { bytes, reads: AtomicUsize::new(0), reads_max }
    }

    fn all(file: &Short, bytes: u64) -> io::Result<(Vec<u8>, u64)> {
        parse(file, (4096, bytes), |body| {
            let mut all = vec![0; bytes as usize];
            body.read_exact(&mut all)?;
            Ok(all)
        })
    }

    #[test]
    fn a_file_is_read_whole_and_in_order_with_its_checksum() {
        for bytes in [0, 1, 4096, PIECE_BYTES, PIECE_BYTES + 1, 5 * PIECE_BYTES + 77] {
            // Zeros may fill the last block of the file.
            let file = file(4096 + bytes + 100, usize::MAX);
            let (read, sum) = all(&file, bytes as u64).unwrap();
            let expected = &file.bytes[4096..4096 + bytes];
            assert!(read == expected, "{bytes} bytes");
            let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
            digest.update(expected);
            assert_eq!(sum, digest.finalize(), "{bytes} bytes");
        }
    }

    #[test]
    fn errors_of_the_disk_and_the_parser_and_early_ends_are_reported() {
        for bytes in [10_000, 5 * PIECE_BYTES] {
            let length = bytes as u64;
            assert_eq!(
                all(&file(4096 + bytes, 1), length + 1).unwrap_err().to_string(),
                "it fails"
            );
            let short = all(&file(4096 + bytes - 1, usize::MAX), length).unwrap_err();
            assert_eq!(short.kind(), io::ErrorKind::UnexpectedEof);
            let whole = file(4096 + bytes, usize::MAX);
            let refused = parse(&whole, (4096, length), |body| {
                body.read_exact(&mut [0; 10])?;
                Err::<(), _>(io::Error::other("no"))
            });
            assert_eq!(refused.unwrap_err().to_string(), "no");
        }
    }
}
