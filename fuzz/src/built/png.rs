//! PNG: pixels of every depth, divided into chunks anywhere.

use arbitrary::{Result, Unstructured};

use super::deflate::zlib;
use super::draft::Draft;
use crate::checksum::crc32;

pub(super) fn build(u: &mut Unstructured<'_>, draft: &mut Draft) -> Result<()> {
    draft.put(b"\x89PNG\r\n\x1A\n");
    let (width, height) = (u.int_in_range(1..=40usize)?, u.int_in_range(1..=20usize)?);
    // Depth, colours, channels.
    let kinds =
        [(1, 0, 1), (8, 0, 1), (16, 0, 1), (8, 2, 3), (4, 3, 1), (8, 3, 1), (8, 4, 2), (16, 6, 4)];
    let (depth, colours, channels) = *u.choose(&kinds)?;
    chunk(draft, b"IHDR", |part| {
        part.be32(width);
        part.be32(height);
        [depth as u8, colours, 0, 0, 0].into_iter().for_each(|byte| part.u8(byte));
        Ok(())
    })?;
    for name in [b"gAMA", b"tEXt"] {
        if u.ratio(1, 3)? {
            let count = if name == b"gAMA" { 4 } else { u.int_in_range(5..=40)? };
            chunk(draft, name, |part| {
                part.put(vec![b'a'; count]);
                Ok(())
            })?;
        }
    }
    if colours == 3 {
        chunk(draft, b"PLTE", |part| {
            part.put([7; 3 * 16]);
            Ok(())
        })?;
    }
    let line = (width * depth * channels).div_ceil(8);
    let pixels: Vec<u8> = (0..height)
        .flat_map(|row| {
            std::iter::once((row % 5) as u8).chain((0..line).map(move |at| (at / 7 + row) as u8))
        })
        .collect();
    let stream = draft.part(|part| zlib(u, part, &pixels))?;
    let bytes = u.int_in_range(1..=stream.len())?;
    for piece in stream.chunks(bytes.max(stream.len() / 20)) {
        chunk(draft, b"IDAT", |part| {
            part.put(piece);
            Ok(())
        })?;
    }
    chunk(draft, b"IEND", |_| Ok(()))
}

/// Writes a chunk, with its length and the checksum of its final contents.
fn chunk(
    draft: &mut Draft,
    name: &[u8; 4],
    write: impl FnOnce(&mut Draft) -> Result<()>,
) -> Result<()> {
    let body = draft.part(write)?;
    draft.be32(body.len());
    let body = [&name[..], &body].concat();
    draft.put(&body);
    let mut crc = crc32(&body);
    crc.reverse();
    draft.put(crc);
    Ok(())
}
