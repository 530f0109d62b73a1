//! Zstandard: frames of blocks, each with its length.
//!
//! RFC 8878. The chain of blocks shows the end of a frame; then the frame is decompressed, which
//! verifies its checksum.

use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::{Format, Kind, Signature, Verdict};
use crate::unpack::{Failed, OVER_LIMIT};
use crate::view::View;

/// Zstandard. Frames are decompressed, and their checksum is verified if they have one. Frames that
/// need a dictionary or much memory, or whose output is very large, are not read.
pub struct Zst;

const ZST: Kind = Kind::new("zst");
const MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
const BLOCK_BYTES_MAX: u64 = 128 << 10;
/// Maximum binary logarithm of the memory to decompress a frame. Every decoder must support 8 MiB.
const WINDOW_LOG_MAX: u32 = 23;
const OUTPUT_BYTES: usize = 128 << 10;
/// Decompression of a frame ends after this many bytes, if that is more than [`RATIO_MAX`] times
/// its compressed size.
const UNPACKED_BYTES_MAX: u64 = 256 << 20;
const RATIO_MAX: u64 = 100;
/// The part that was not read, and why.
const WITH_DICTIONARY: &str = "data packed with a dictionary were not read";
const TOO_WIDE: &str = "data that take more than 8 MiB to unpack were not read";
const TOO_LONG: &str = "data that unpack to a hundred times their size were not read";
const WRONG: Failed = Failed::Wrong("packed data");
/// The cost of a decompressor in bytes of fuel.
const SETUP_FUEL: u64 = 8 << 10;
/// Decompressed bytes per byte of fuel.
const OUTPUT_PER_FUEL: u64 = 8;

/// A frame, as its header and its blocks describe it.
struct Frame {
    end: u64,
    is_readable: bool,
}

impl Format for Zst {
    fn kinds(&self) -> &[Kind] {
        &[ZST]
    }

    fn signatures(&self) -> &[Signature] {
        &[Signature { hex: "28 B5 2F FD", at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let first = match frame(view, 0) {
            Ok(frame) => frame,
            // Random bytes may look like the start of a block, too.
            Err((at, _)) if at < 1024 && !view.is_starved() => return Verdict::Not,
            Err((at, reason)) => return Verdict::broken(view, ZST, 0, at, reason),
        };
        let mut end = first.end;
        let mut not_read = match unpacked(view, 0, &first) {
            Ok(()) => "",
            Err(Failed::NotRead(what)) => what,
            Err(Failed::Wrong(why)) => return Verdict::broken(view, ZST, 0, end, why),
        };
        // A frame that follows directly belongs to the file.
        while view.is_at(end, &MAGIC) {
            let Ok(next) = frame(view, end) else { break };
            match unpacked(view, end, &next) {
                Ok(()) => {}
                Err(Failed::NotRead(what)) => not_read = what,
                Err(Failed::Wrong(_)) => break,
            }
            end = next.end;
        }
        Verdict::ended(end, ZST, not_read)
    }
}

/// Reads the frame at `at`, or returns the place where it breaks and the reason.
fn frame(view: &mut View<'_>, at: u64) -> Result<Frame, (u64, &'static str)> {
    let truncated = (view.length(), "truncated");
    let flags = view.byte(at + 4).ok_or(truncated)?;
    if flags & 0x18 != 0 {
        return Err((at, "header"));
    }
    let is_single = flags & 0x20 != 0;
    let dictionary_bytes = [0, 1, 2, 4][usize::from(flags & 3)];
    let size_bytes = match flags >> 6 {
        0 => u64::from(is_single),
        log => 1 << log,
    };
    let mut next = at + 5 + u64::from(!is_single) + dictionary_bytes + size_bytes;
    loop {
        let [low, middle, high] = view.array::<3>(next).ok_or(truncated)?;
        let header = u64::from(low) | u64::from(middle) << 8 | u64::from(high) << 16;
        let (is_last, kind, size) = (header & 1 != 0, header >> 1 & 3, header >> 3);
        if kind == 3 || size > BLOCK_BYTES_MAX {
            return Err((next, "no block begins here"));
        }
        next += 3 + if kind == 1 { 1 } else { size };
        if is_last {
            break;
        }
    }
    let end = next + if flags & 4 != 0 { 4 } else { 0 };
    if end > view.length() {
        return Err(truncated);
    }
    Ok(Frame { end, is_readable: dictionary_bytes == 0 })
}

/// Whether a file that begins with `head` is one of frames: the first ones may be skippable, in which
/// programs store an index or checksums.
pub(crate) fn is_start(mut head: &[u8]) -> bool {
    while let [0x50..=0x5F, 0x2A, 0x4D, 0x18, a, b, c, d, rest @ ..] = head {
        let bytes = u32::from_le_bytes([*a, *b, *c, *d]);
        head = usize::try_from(bytes).ok().and_then(|bytes| rest.get(bytes..)).unwrap_or(&[]);
    }
    head.starts_with(&MAGIC)
}

/// Checks whether the frame at `at`, if one begins there, can be decompressed with
/// `1 << window_log_max` bytes of memory.
///
/// # Errors
/// The reason, if not.
pub(crate) fn check_frame(
    view: &mut View<'_>,
    at: u64,
    window_log_max: u32,
) -> Result<(), &'static str> {
    if !view.is_at(at, &MAGIC) {
        return Ok(());
    }
    if view.byte(at + 4).is_some_and(|flags| flags & 3 != 0) {
        return Err(WITH_DICTIONARY);
    }
    match window_log(view, at).is_some_and(|log| log > window_log_max) {
        true => Err(OVER_LIMIT),
        false => Ok(()),
    }
}

/// Decompresses the frame at `at`.
fn unpacked(view: &mut View<'_>, at: u64, frame: &Frame) -> Result<(), Failed> {
    if !frame.is_readable {
        return Err(Failed::NotRead(WITH_DICTIONARY));
    }
    if window_log(view, at).is_none_or(|log| log > WINDOW_LOG_MAX) {
        return Err(Failed::NotRead(TOO_WIDE));
    }
    view.spend(SETUP_FUEL);
    let Ok(mut decoder) = Decoder::new() else { return Err(Failed::NotRead(TOO_WIDE)) };
    if decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX)).is_err() {
        return Err(Failed::NotRead(TOO_WIDE));
    }
    let mut output = vec![0; OUTPUT_BYTES];
    // Copy the input: the library is written in C, and another process may change the file
    // meanwhile.
    let mut copy = Vec::new();
    let (mut next, mut unpacked) = (at, 0u64);
    while next < frame.end {
        let most = (frame.end - next).min(OUTPUT_BYTES as u64) as usize;
        let bytes = view.run(next, most);
        if bytes.is_empty() {
            return Err(WRONG);
        }
        next += bytes.len() as u64;
        copy.clear();
        copy.extend_from_slice(bytes);
        let mut input = InBuffer::around(&copy[..]);
        let mut count = 0;
        loop {
            let mut out = OutBuffer::around(&mut output[..]);
            let hint = decoder.run(&mut input, &mut out).map_err(|_| WRONG)?;
            count += out.pos() as u64;
            let is_full = out.pos() == OUTPUT_BYTES;
            if input.pos() == copy.len() && !is_full {
                if next == frame.end {
                    return if hint == 0 { Ok(()) } else { Err(WRONG) };
                }
                break;
            }
        }
        view.spend(count / OUTPUT_PER_FUEL);
        unpacked += count;
        if unpacked > UNPACKED_BYTES_MAX && unpacked / RATIO_MAX > next - at {
            return Err(Failed::NotRead(TOO_LONG));
        }
    }
    Err(WRONG)
}

/// Returns the binary logarithm of the bytes of memory that the frame at `at` needs, rounded up.
fn window_log(view: &mut View<'_>, at: u64) -> Option<u32> {
    let flags = view.byte(at + 4)?;
    if flags & 0x20 == 0 {
        let window = view.byte(at + 5)?;
        return Some(10 + u32::from(window >> 3) + u32::from(window & 7 != 0));
    }
    let size_at = at + 5;
    let size = match flags >> 6 {
        0 => u64::from(view.byte(size_at)?),
        1 => u64::from(view.u16_le(size_at)?) + 256,
        2 => u64::from(view.u32_le(size_at)?),
        _ => view.u64_le(size_at)?,
    };
    size.checked_next_power_of_two().map(u64::ilog2)
}
