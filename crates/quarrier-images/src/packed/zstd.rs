//! Zstandard, frame by frame: `pzstd` and the seekable format write many frames. A file with a single
//! long frame, as `zstd` writes it, is read sequentially, or unpacked.
//!
//! Frames written by `pzstd`, and by `zstd` from a pipe, do not state their length: these are
//! decompressed once when the file is opened, on all cores.

use std::io::{self, Read};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ::zstd::stream::read::Decoder;
use quarrier_core::source::{Source, read_full_at};
use quarrier_core::sync::lock;
use quarrier_core::threads::team;
use quarrier_core::{Error, Result};

use super::Packed;
use super::in_order::InOrder;
use super::sequential::{Sequential, WINDOW_LOG_MAX};
use super::spans::{Spans, Unpack};
use crate::around::Around;
use crate::bytes::{u16_le, u32_le, u64_le};
use crate::fault::{damaged, invalid, room};
use crate::kind::Kind;
use crate::unpack::Unpacker;

const MAGIC: u32 = 0xFD2F_B528;
/// The magic number of skippable frames; the lowest four bits vary.
const SKIPPED: u32 = 0x184D_2A50;
const FRAMES_MAX: usize = 1 << 22;

/// A frame in the file.
#[derive(Debug, Clone, Copy)]
struct Frame {
    at: u64,
    bytes: u64,
    /// If its header states it.
    unpacked_bytes: Option<u64>,
}

/// Opens a file with random access if it has several frames, none of them too long to cache.
pub(super) fn open(file: &Arc<dyn Source>, around: &Around<'_>) -> Result<Packed> {
    let in_order = |length| Sequential::new(Kind::Zstd, file, length);
    let frames = match frames(&**file, around) {
        Ok(Some(frames)) => frames,
        Ok(None) => {
            let length = stated(&**file, around)?;
            return Ok(Packed::InOrder(in_order(length)));
        }
        Err(error) if around.is_stopped() => return Err(error),
        Err(error) => {
            let rest = Some(in_order(None)).filter(Sequential::begins);
            return rest.map(Packed::InOrder).ok_or(error);
        }
    };
    let Some(frames) = measured(file, frames, around)? else {
        return Ok(Packed::InOrder(in_order(None)));
    };
    let (mut starts, mut end, mut kept) = (Vec::new(), 0u64, Vec::new());
    for frame in frames {
        let Some(bytes) = frame.unpacked_bytes else {
            return Ok(Packed::InOrder(in_order(None)));
        };
        if bytes > 0 {
            starts.push(end);
            end += bytes;
            kept.push(frame);
        }
    }
    let unpack = Frames { file: Arc::clone(file), frames: kept, unpackers: Mutex::default() };
    Ok(Packed::Anywhere(Arc::new(Spans::new(file.name(), starts, end, None, unpack)), None))
}

/// The length of all frames, if each of them states its own. The headers of all blocks are read for it,
/// unless each of them would cost a request.
fn stated(file: &dyn Source, around: &Around<'_>) -> Result<Option<u64>> {
    let (mut length, mut at) = (0u64, 0);
    while at < file.length() && !around.beside.is_far() {
        stopped(file, around)?;
        at = match frame(file, at, u64::MAX) {
            Ok(NextFrame::Skipped(bytes)) => at.saturating_add(bytes),
            Ok(NextFrame::Frame(Frame { bytes, unpacked_bytes: Some(more), .. })) => {
                length = length.saturating_add(more);
                at + bytes
            }
            // Where a frame is damaged is known once the ones before it are unpacked.
            Ok(_) | Err(_) => return Ok(None),
        };
    }
    Ok(Some(length).filter(|&length| at >= file.length() && length < i64::MAX as u64))
}

/// The frames, each with its length; `None` if one is too long, or damaged: then the bytes before the
/// damage can still be read in order.
fn measured(
    file: &Arc<dyn Source>,
    mut frames: Vec<Frame>,
    around: &Around<'_>,
) -> Result<Option<Vec<Frame>>> {
    let unknown: Vec<usize> =
        (0..frames.len()).filter(|&index| frames[index].unpacked_bytes.is_none()).collect();
    if unknown.is_empty() {
        return Ok(Some(frames));
    }
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(64);
    let found = team(0..workers.min(unknown.len()), |_| {
        let mut found = Vec::new();
        while let Some(&index) = unknown.get(next.fetch_add(1, Ordering::Relaxed)) {
            match length(file, frames[index], around).ok().filter(|_| !around.is_stopped()) {
                Some(length) => found.push((index, length)),
                // The others need not be measured.
                None => next.store(unknown.len(), Ordering::Relaxed),
            }
        }
        found
    });
    stopped(&**file, around)?;
    let found: Vec<_> = found.into_iter().flatten().collect();
    if found.len() < unknown.len() {
        return Ok(None);
    }
    for (index, length) in found {
        frames[index].unpacked_bytes = Some(length);
    }
    Ok(Some(frames))
}

/// The length of a frame, which is decompressed for it.
///
/// # Errors
/// If the frame is damaged or too long.
fn length(file: &Arc<dyn Source>, frame: Frame, around: &Around<'_>) -> io::Result<u64> {
    let packed = InOrder::starting(file, frame.at).take(frame.bytes);
    let mut decoder = Decoder::new(packed)?;
    decoder.window_log_max(WINDOW_LOG_MAX)?;
    let bytes_max = around.part_bytes_max();
    let mut plain = decoder.single_frame().take(bytes_max + 1);
    match io::copy(&mut plain, &mut io::sink())? {
        length if length <= bytes_max => Ok(length),
        _ => Err(invalid("a frame is too long")),
    }
}

fn stopped(file: &dyn Source, around: &Around<'_>) -> Result<()> {
    match around.is_stopped() {
        true => Err(Error::io(file.name(), "unpack", io::ErrorKind::ConnectionAborted.into())),
        false => Ok(()),
    }
}

/// The frames of a file; `None` as soon as one is too long.
///
/// # Errors
/// If a frame is damaged or ends beyond the file.
fn frames(file: &dyn Source, around: &Around<'_>) -> Result<Option<Vec<Frame>>> {
    let (mut frames, mut at) = (Vec::new(), 0);
    while at < file.length() {
        stopped(file, around)?;
        let found = frame(file, at, around.part_bytes_max());
        let found = found.map_err(|error| damaged(file, at, error.to_string()))?;
        at = match found {
            NextFrame::TooLong => return Ok(None),
            NextFrame::Skipped(bytes) => at.saturating_add(bytes),
            NextFrame::Frame(frame) if frames.len() < FRAMES_MAX => {
                frames.push(frame);
                at + frame.bytes
            }
            NextFrame::Frame(_) => {
                return Err(damaged(file, at, "it has too many frames"));
            }
        };
    }
    Ok(Some(frames))
}

/// The next structure at an offset.
enum NextFrame {
    Frame(Frame),
    Skipped(u64),
    TooLong,
}

/// Parses the frame at `at`: its header, and the headers of its blocks, unless it has more than
/// `bytes_max` bytes.
fn frame(file: &dyn Source, at: u64, bytes_max: u64) -> io::Result<NextFrame> {
    let mut head = [0; 18];
    let read = read_full_at(file, at, &mut head)?;
    let magic = u32_le(&head, 0);
    if read >= 8 && magic & !0xF == SKIPPED {
        return Ok(NextFrame::Skipped(8 + u64::from(u32_le(&head, 4))));
    }
    if read < 6 || magic != MAGIC {
        return Err(invalid("no Zstandard frame begins there"));
    }
    let flags = head[4];
    let is_single = flags & 0x20 != 0;
    let dictionary_bytes = [0, 1, 2, 4][usize::from(flags & 3)];
    let size_at = 5 + usize::from(!is_single) + dictionary_bytes;
    let (size_bytes, size) = match (flags >> 6, is_single) {
        (0, false) => (0, None),
        (0, true) => (1, Some(u64::from(head[size_at]))),
        (1, _) => (2, Some(u64::from(u16_le(&head, size_at)) + 256)),
        (2, _) => (4, Some(u64::from(u32_le(&head, size_at)))),
        _ => (8, Some(u64_le(&head, size_at))),
    };
    if dictionary_bytes > 0 {
        return Err(invalid("it was compressed with a dictionary, which it does not contain"));
    }
    if size.is_some_and(|size| size > bytes_max) {
        return Ok(NextFrame::TooLong);
    }
    let mut next = at + (size_at + size_bytes) as u64;
    loop {
        let mut header = [0; 4];
        if read_full_at(file, next, &mut header[..3])? < 3 {
            return Err(invalid("it ends inside a frame"));
        }
        let header = u32_le(&header, 0);
        let bytes = match header >> 1 & 3 {
            1 => 1,
            3 => return Err(invalid("a block has an unknown type")),
            _ => header >> 3,
        };
        next += 3 + u64::from(bytes);
        if next - at > bytes_max {
            return Ok(NextFrame::TooLong);
        }
        if header & 1 != 0 {
            break;
        }
    }
    next += if flags & 4 != 0 { 4 } else { 0 };
    if next > file.length() {
        return Err(invalid("it ends inside a frame"));
    }
    Ok(NextFrame::Frame(Frame { at, bytes: next - at, unpacked_bytes: size }))
}

struct Frames {
    file: Arc<dyn Source>,
    frames: Vec<Frame>,
    unpackers: Mutex<Vec<Unpacker>>,
}

impl Unpack for Frames {
    fn unpack(&self, index: usize, out: &mut [u8]) -> io::Result<()> {
        let Frame { at, bytes, .. } = self.frames[index];
        let mut packed = room(bytes as usize)?;
        let read = read_full_at(&*self.file, at, &mut packed)?;
        packed.truncate(read);
        let mut unpacker = lock(&self.unpackers).pop().unwrap_or_default();
        let done = unpacker.zstd(&packed, out);
        lock(&self.unpackers).push(unpacker);
        done.map_err(|error| {
            invalid(format!("the frame at byte {at} of the file is damaged: {error}"))
        })
    }
}
