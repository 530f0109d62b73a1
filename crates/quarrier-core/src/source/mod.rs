//! Sources: bytes with a length, read at an offset.

mod changing;
mod file;
mod gone;
mod memory;
mod open;
mod polled;
mod renamed;
mod split;

pub use changing::ChangingMemory;
pub use file::FileSource;
pub use gone::is_gone;
pub use memory::Memory;
pub use open::{open, open_direct, open_in_order};
pub use polled::Polled;
pub use renamed::Renamed;
pub use split::SplitSource;

use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::region::Region;

/// Bytes with a fixed length that can be read at any offset, by many threads at once.
///
/// The contract that readers rely on:
/// - [`read_at`](Source::read_at) may return fewer bytes than requested; 0 for a non-empty
///   buffer means that there is no byte at `offset`.
/// - [`length`](Source::length) never changes. A file that shrinks under a source shows as
///   a read of 0 bytes before that length.
/// - Bytes outside the ranges that [`next_data`](Source::next_data) returns are zero.
pub trait Source: Send + Sync {
    /// The name shown in findings and errors, usually the path as the user wrote it.
    fn name(&self) -> &str;

    /// Length in bytes when the source was opened.
    fn length(&self) -> u64;

    /// Reads at `offset` into `buffer` and returns the number of bytes read.
    ///
    /// # Errors
    /// The operating system's error; the caller retries in units of
    /// [`sector_bytes`](Source::sector_bytes). A source that is [gone](is_gone) as a whole, so that no other
    /// range is worth trying, returns a system error that says so (`ENODEV`, `ESTALE`, …) or,
    /// without one, one of the kinds `NotConnected`, `ConnectionAborted`, `NotFound`,
    /// `PermissionDenied`, `StaleNetworkFileHandle`.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Returns the first range of stored data at or after `offset`, or `None` if only zeros (holes)
    /// follow. The default implementation knows of no holes.
    ///
    /// # Errors
    /// The operating system's error when asked for extents.
    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        Ok((offset < self.length()).then(|| offset..self.length()))
    }

    /// Returns the end of the readable bytes, if known when the source was opened: an image may
    /// claim a greater length than its files have. Reads from this offset on fail.
    fn readable_end(&self) -> u64 {
        self.length()
    }

    /// Returns the bytes of `range` without a copy, if the source can show them.
    ///
    /// `None` means that the caller must read the bytes. `range` must lie within the length.
    fn window(&self, range: Range<u64>) -> Option<io::Result<Region<'_>>> {
        let _ = range;
        None
    }

    /// Returns the first part of `range`, of at least `bytes_min` bytes, that one
    /// [`window`](Source::window) can show, as long as it may be within `range`. The pipeline ends
    /// chunks where windows end, so that it must copy little of a fragmented image.
    ///
    /// A source that implements `window` implements this, too. `range` must lie within the length.
    fn next_window(&self, range: Range<u64>, bytes_min: u64) -> Option<Range<u64>> {
        let _ = (range, bytes_min);
        None
    }

    /// Whether windows cost no disk access: memory, or a file in the page cache.
    fn is_resident(&self) -> bool {
        false
    }

    /// Whether most of a read is CPU work, such as decompression: then each worker should read for
    /// itself, rather than wait for a few readers.
    fn is_packed(&self) -> bool {
        false
    }

    /// Returns the smallest unit in which to retry a failed read, in bytes.
    fn sector_bytes(&self) -> usize {
        512
    }

    /// Returns the file descriptor, for readers that call the kernel themselves (io_uring). Offsets
    /// in it are those of the source.
    #[cfg(unix)]
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }
}

/// Implements [`Source`] for a pointer to a source.
macro_rules! delegate {
    ($pointer:ident) => {
        impl<S: Source + ?Sized> Source for $pointer<S> {
            fn name(&self) -> &str {
                (**self).name()
            }

            fn length(&self) -> u64 {
                (**self).length()
            }

            fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
                (**self).read_at(offset, buffer)
            }

            fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
                (**self).next_data(offset)
            }

            fn readable_end(&self) -> u64 {
                (**self).readable_end()
            }

            fn window(&self, range: Range<u64>) -> Option<io::Result<Region<'_>>> {
                (**self).window(range)
            }

            fn next_window(&self, range: Range<u64>, bytes_min: u64) -> Option<Range<u64>> {
                (**self).next_window(range, bytes_min)
            }

            fn is_resident(&self) -> bool {
                (**self).is_resident()
            }

            fn is_packed(&self) -> bool {
                (**self).is_packed()
            }

            fn sector_bytes(&self) -> usize {
                (**self).sector_bytes()
            }

            #[cfg(unix)]
            fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
                (**self).descriptor()
            }
        }
    };
}

delegate!(Arc);
delegate!(Box);

/// Returns `range` if it has `bytes_min` bytes: the [`next_window`](Source::next_window) of sources
/// that can show any range.
pub fn window_anywhere(range: Range<u64>, bytes_min: u64) -> Option<Range<u64>> {
    (range.start < range.end && range.end - range.start >= bytes_min).then_some(range)
}

/// Reads until `buffer` is full or no byte is left, and returns the number of bytes read.
///
/// # Errors
/// The first error that is not an interruption.
pub fn read_full_at(source: &dyn Source, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match source.read_at(offset + filled as u64, &mut buffer[filled..]) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Returns the `length` bytes from `offset` on. Allocates no more than the source can fill.
///
/// # Errors
/// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if the source ends early, and the errors of
/// [`read_full_at`].
pub fn read_exact_at(source: &dyn Source, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let is_there = offset.checked_add(length).is_some_and(|end| end <= source.length());
    let length = usize::try_from(length).ok().filter(|_| is_there);
    let mut bytes = vec![0; length.ok_or(io::ErrorKind::UnexpectedEof)?];
    match read_full_at(source, offset, &mut bytes)? == bytes.len() {
        true => Ok(bytes),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
