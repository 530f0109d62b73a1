//! The bytes of scopes, in memory.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_core::ranges::{merged, push_merged};
use quarrier_core::source::{Source, read_full_at};
use quarrier_core::sync::lock;
use quarrier_core::threads::team;
use quarrier_files::{Entry, Piece};

/// Bytes per read.
const STEP_BYTES: usize = 16 << 20;
/// Zeros of a hole that are appended at once.
const ZEROS_BYTES: usize = 1 << 20;

/// The bytes of a scope.
#[derive(Debug, Default)]
pub(super) struct ScopeBytes {
    pub(super) bytes: Vec<u8>,
    /// Ranges of the source that could not be read; they are filled with zeros.
    pub(super) unreadable: Vec<Range<u64>>,
}

/// Allocates memory for this many bytes.
fn room(bytes: u64) -> io::Result<Vec<u8>> {
    let length = usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut room = Vec::new();
    room.try_reserve_exact(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
    Ok(room)
}

/// Reads all bytes of a source by up to `workers` threads. Stops soon after `stop` becomes true.
///
/// # Errors
/// `OutOfMemory` if memory runs out, `Interrupted` if stopped.
pub(super) fn of_source(
    source: &dyn Source,
    workers: usize,
    stop: &AtomicBool,
) -> io::Result<ScopeBytes> {
    // Zeroed memory needs no pass of its own, but would abort the process if there is too little.
    drop(room(source.length())?);
    let length = usize::try_from(source.length()).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut bytes = vec![0; length];
    let workers = workers.clamp(1, length.div_ceil(STEP_BYTES).max(1));
    let steps = Mutex::new(bytes.chunks_mut(STEP_BYTES).enumerate());
    let unreadable = team(0..workers, |_| {
        let mut unreadable = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let Some((step, buffer)) = lock(&steps).next() else { break };
            fill(source, (step * STEP_BYTES) as u64, buffer, &mut unreadable);
        }
        unreadable
    });
    if stop.load(Ordering::Relaxed) {
        return Err(io::ErrorKind::Interrupted.into());
    }
    Ok(ScopeBytes { bytes, unreadable: merged(unreadable.concat()) })
}

/// Reads bytes of the source. Unreadable ranges are filled with zeros and recorded.
fn fill(source: &dyn Source, at: u64, buffer: &mut [u8], unreadable: &mut Vec<Range<u64>>) {
    if read_full_at(source, at, buffer).is_ok_and(|bytes| bytes == buffer.len()) {
        return;
    }
    let sector_bytes = source.sector_bytes().max(512);
    for (index, sector) in buffer.chunks_mut(sector_bytes).enumerate() {
        let at = at + (index * sector_bytes) as u64;
        if read_full_at(source, at, sector).is_ok_and(|bytes| bytes == sector.len()) {
            continue;
        }
        sector.fill(0);
        let end = at + sector.len() as u64;
        push_merged(unreadable, at..end);
    }
}

/// Reads the bytes of a file. Stops soon after `stop` becomes true.
///
/// # Errors
/// Why they cannot be read, as a message.
pub(super) fn of_file(
    source: &dyn Source,
    entry: &Entry,
    stop: &AtomicBool,
) -> Result<ScopeBytes, String> {
    let mut bytes = room(entry.size).map_err(|error| error.to_string())?;
    let mut take = |piece: Piece<'_>| {
        if stop.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match piece {
            Piece::Bytes(more) => bytes.extend_from_slice(more),
            Piece::Zeros(mut zeros) => {
                while zeros > 0 {
                    let step = zeros.min(ZEROS_BYTES as u64);
                    bytes.resize(bytes.len() + step as usize, 0);
                    zeros -= step;
                }
            }
        }
        Ok(())
    };
    let unreadable = quarrier_files::read(source, entry, &mut take);
    let unreadable = unreadable.map_err(|error| error.to_string())?;
    Ok(ScopeBytes { bytes, unreadable })
}

/// Reads the first bytes of a file, at most `bytes_max`; fewer if the rest cannot be read.
pub(super) fn head_of_file(
    source: &dyn Source,
    entry: &Entry,
    bytes_max: u64,
    stop: &AtomicBool,
) -> Vec<u8> {
    let head = Entry { size: entry.size.min(bytes_max), ..entry.clone() };
    of_file(source, &head, stop).map(|read| read.bytes).unwrap_or_default()
}

/// Reads the bytes of a stream; `None` if it has more than `bytes_max`. Stops soon after `stop` becomes
/// true.
///
/// # Errors
/// The error of the stream; `Interrupted` if stopped.
pub(super) fn of_stream(
    reader: &mut (dyn Read + Send),
    bytes_max: u64,
    stop: &AtomicBool,
) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    // One more byte, to detect a stream that is too long.
    let mut bounded = reader.take(bytes_max.saturating_add(1));
    let mut step = vec![0; 1 << 20];
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match bounded.read(&mut step) {
            Ok(0) => return Ok((bytes.len() as u64 <= bytes_max).then_some(bytes)),
            Ok(count) => {
                bytes.try_reserve(count).map_err(|_| io::ErrorKind::OutOfMemory)?;
                bytes.extend_from_slice(&step[..count]);
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(error) => return Err(error),
        }
    }
}
