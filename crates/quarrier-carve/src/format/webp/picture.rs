//! The chunks of WebP with pictures or parts of them.

use std::ops::Range;

use super::super::riff::{Chunk, HEADER_BYTES};
use super::{Fault, lossless, lossy};
use crate::view::View;

/// The header of an animation frame, before its chunks.
const FRAME_BYTES: u64 = 16;

/// Whether the chunk at `at` begins as chunks of its name do.
pub(super) fn begins_as_picture(view: &mut View<'_>, at: u64, chunk: &Chunk) -> bool {
    let data = at + HEADER_BYTES;
    match &chunk.name {
        b"VP8 " => view.array::<10>(data).is_some_and(|head| {
            let tag = u64::from(head[0]) | u64::from(head[1]) << 8 | u64::from(head[2]) << 16;
            tag & 1 == 0 && head[3..6] == [0x9D, 0x01, 0x2A] && tag >> 5 < chunk.bytes
        }),
        b"VP8L" => view
            .array::<5>(data)
            .is_some_and(|head| head[0] == 0x2F && head[4] >> 5 == 0 && chunk.bytes > 5),
        b"ANMF" => Chunk::read(view, data + FRAME_BYTES).is_some_and(|inner| {
            matches!(&inner.name, b"VP8 " | b"VP8L" | b"ALPH")
                && FRAME_BYTES + HEADER_BYTES + inner.bytes <= chunk.bytes
        }),
        b"VP8X" => chunk.bytes == 10,
        _ => true,
    }
}

/// Reads the chunk at `at` if it is a picture; returns whether it is. `canvas` is the size of all
/// pictures in pixels, if a chunk states it.
pub(super) fn read_picture(
    view: &mut View<'_>,
    at: u64,
    chunk: &Chunk,
    canvas: &mut (u32, u32),
) -> Result<bool, Fault> {
    let data = at + HEADER_BYTES..chunk.end(at);
    match &chunk.name {
        b"VP8 " => lossy::read(view, data).map(|()| true),
        b"VP8L" => lossless::read(view, data).map(|()| true),
        b"VP8X" => {
            *canvas = size(view, data.start + 4)?;
            Ok(false)
        }
        b"ALPH" => alpha(view, data, *canvas).map(|()| false),
        b"ANMF" => frame(view, data),
        _ => Ok(false),
    }
}

/// Reads a width and a height, each stored in three bytes minus one.
fn size(view: &mut View<'_>, at: u64) -> Result<(u32, u32), Fault> {
    let [a, b, c, d, e, f] = view.array::<6>(at).ok_or(Fault::new(at, "truncated"))?;
    Ok((u32::from_le_bytes([a, b, c, 0]) + 1, u32::from_le_bytes([d, e, f, 0]) + 1))
}

/// Reads the alpha channel of a picture.
fn alpha(view: &mut View<'_>, data: Range<u64>, (width, height): (u32, u32)) -> Result<(), Fault> {
    let start = data.start;
    let head = view.byte(start).ok_or(Fault::new(start, "truncated"))?;
    let is_raw = u64::from(width) * u64::from(height) == data.end - start - 1;
    match head & 3 {
        0 if is_raw => Ok(()),
        1 if width <= 1 << 14 && height <= 1 << 14 => {
            lossless::read_pixels(view, start + 1..data.end, width, height)
        }
        _ => Err(Fault::new(start + 1, "no such alpha")),
    }
}

/// Reads an animation frame.
fn frame(view: &mut View<'_>, data: Range<u64>) -> Result<bool, Fault> {
    let mut canvas = size(view, data.start + 6)?;
    let mut at = data.start + FRAME_BYTES;
    let mut has_picture = false;
    while at < data.end {
        let chunk = Chunk::read(view, at).filter(|chunk| chunk.end(at) <= data.end);
        let chunk = chunk.ok_or(Fault::new(at + HEADER_BYTES, "not a chunk"))?;
        if matches!(&chunk.name, b"VP8 " | b"VP8L" | b"ALPH") {
            has_picture |= read_picture(view, at, &chunk, &mut canvas)?;
        }
        at = chunk.next(at);
    }
    if has_picture { Ok(true) } else { Err(Fault::new(data.end, "no picture")) }
}
