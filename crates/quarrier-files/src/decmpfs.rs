//! Files that macOS compresses transparently (decmpfs): an attribute names the method and has the
//! compressed bytes, or leaves them to the resource fork. HFS+ and APFS share this format.

use crate::entry::{Content, PackedPiece, Packing};
use crate::error::Result;
use crate::part::{Part, u32_at, u64_at};
use crate::unpack::Unpacker;

/// The name of the attribute.
pub(crate) const ATTRIBUTE: &str = "com.apple.decmpfs";
/// The inode flag of compressed files.
pub(crate) const PACKED: u8 = 0x20;
const HEAD_BYTES: usize = 16;
/// Bytes of a file that are compressed together.
const BLOCK_BYTES: u64 = 64 << 10;
/// Maximum compressed size of a block: compression may expand it a little.
const PACKED_BYTES_MAX: u64 = 2 * BLOCK_BYTES;
/// Maximum size of a file whose compressed bytes are in the attribute.
const INLINE_BYTES_MAX: u64 = 1 << 20;
const DAMAGED: &str = "its compressed bytes are damaged";

/// A resource fork: its bytes, and its length.
pub(crate) type Resource = (Content, u64);

/// The size and locations of a compressed file; `None` if the attribute does not describe compression.
/// `place` is the offset of the attribute's bytes in the source.
///
/// # Errors
/// Those of `resource`, which finds the resource fork, and of reading from it.
pub(crate) fn content(
    part: &Part<'_>,
    attribute: &[u8],
    place: Option<u64>,
    resource: &mut dyn FnMut() -> Result<Resource>,
) -> Result<Option<(u64, Content)>> {
    if !attribute.starts_with(b"fpmc") || attribute.len() < HEAD_BYTES {
        return Ok(None);
    }
    let (form, size) = (u32_at(attribute, 4), u64_at(attribute, 8));
    let packed = &attribute[HEAD_BYTES..];
    let place = place.and_then(|place| place.checked_add(HEAD_BYTES as u64));
    let content = match form {
        1 => inline(Packing::Plain, packed, size, place),
        3 => inline(Packing::ZlibOrPlain, packed, size, place),
        4 => blocks(part, resource()?, size)?,
        7 | 8 => Content::lost("it is compressed with LZVN"),
        11 | 12 => Content::lost("it is compressed with LZFSE"),
        _ => Content::lost("it is compressed in an unsupported format"),
    };
    Ok(Some((size, content)))
}

fn inline(packing: Packing, packed: &[u8], size: u64, place: Option<u64>) -> Content {
    let is_small = size <= INLINE_BYTES_MAX;
    let mut plain = vec![0; if is_small { size as usize } else { 0 }];
    if !is_small || !Unpacker::default().unpack(packing, packed, &mut plain) {
        return Content::lost(DAMAGED);
    }
    let mut content = Content { inline: Some(plain.into_boxed_slice()), ..Content::default() };
    if place.is_some() {
        content.push(place, packed.len() as u64);
    }
    content
}

/// The blocks of a file in its resource fork: a table of blocks, and a zlib stream for each.
fn blocks(part: &Part<'_>, (mut content, fork_bytes): Resource, size: u64) -> Result<Content> {
    if content.lost.is_some() {
        return Ok(content);
    }
    let (mut head, mut count) = ([0; 4], [0; 4]);
    let is_headed = read(part, &content, 0, &mut head)?;
    let list_at = u64::from(u32::from_be_bytes(head)) + 4;
    let is_listed = is_headed && read(part, &content, list_at, &mut count)?;
    let count = u64::from(u32::from_le_bytes(count));
    let room = fork_bytes.saturating_sub(list_at + 4) / 8;
    if !is_listed || count != size.div_ceil(BLOCK_BYTES) || count > room {
        return Ok(Content::lost(DAMAGED));
    }
    let bytes = count as usize * 8;
    let mut list = Vec::new();
    // The table can be as long as the fork, and thus as the volume.
    if list.try_reserve_exact(bytes).is_err() {
        return Ok(Content::lost(DAMAGED));
    }
    list.resize(bytes, 0);
    if !read(part, &content, list_at + 4, &mut list)? {
        return Ok(Content::lost(DAMAGED));
    }
    for (number, block) in (0..).zip(list.chunks_exact(8)) {
        let start = number * BLOCK_BYTES;
        let packed_at = list_at + u64::from(u32_at(block, 0));
        let packed_bytes = u64::from(u32_at(block, 4));
        if packed_bytes > PACKED_BYTES_MAX || packed_at + packed_bytes > fork_bytes {
            return Ok(Content::lost(DAMAGED));
        }
        content.pieces.push(PackedPiece {
            start,
            length: BLOCK_BYTES.min(size - start),
            packed_at,
            packed_bytes,
            skipped: 0,
            unpacked_bytes: BLOCK_BYTES as u32,
            packing: Packing::ZlibOrPlain,
        });
    }
    Ok(content)
}

/// Reads bytes of a fork; false if it is too short.
fn read(part: &Part<'_>, content: &Content, from: u64, buffer: &mut [u8]) -> Result<bool> {
    let (base, mut start, mut filled) = (part.place(0), 0u64, 0);
    for run in &content.runs {
        let end = start.saturating_add(run.length);
        let at = from + filled as u64;
        if let Some(place) = run.place.filter(|_| (start..end).contains(&at)) {
            let bytes = (end - at).min((buffer.len() - filled) as u64) as usize;
            let place = place - base + (at - start);
            part.read(place, &mut buffer[filled..filled + bytes], "a resource fork")?;
            filled += bytes;
        }
        if filled == buffer.len() {
            return Ok(true);
        }
        start = end;
    }
    Ok(false)
}
