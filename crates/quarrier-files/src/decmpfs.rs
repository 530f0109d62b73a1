//! Files that macOS compresses transparently (decmpfs): an attribute names the method and has the
//! compressed bytes, or leaves them to the resource fork. HFS+ and APFS share this format.

use crate::bytes::plausible_bytes_max;
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
        4 => blocks(part, resource()?, size, Packing::ZlibOrPlain)?,
        7 => inline(Packing::LzvnOrPlain, packed, size, place),
        8 => blocks(part, resource()?, size, Packing::LzvnOrPlain)?,
        11 => inline(Packing::LzfseOrPlain, packed, size, place),
        12 => blocks(part, resource()?, size, Packing::LzfseOrPlain)?,
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

/// The blocks of a file in its resource fork: a table of blocks, and compressed bytes for each.
fn blocks(
    part: &Part<'_>,
    (mut content, fork_bytes): Resource,
    size: u64,
    packing: Packing,
) -> Result<Content> {
    if content.lost.is_some() {
        return Ok(content);
    }
    // A larger file cannot be read, and its table would take memory.
    let is_plausible = size <= plausible_bytes_max(part.length());
    let count = size.div_ceil(BLOCK_BYTES);
    let listed = match packing {
        _ if !is_plausible => None,
        Packing::ZlibOrPlain => resource_list(part, &content, fork_bytes, count)?,
        _ => offset_list(part, &content, fork_bytes, count)?,
    };
    let Some(listed) = listed else { return Ok(Content::lost(DAMAGED)) };
    for (number, (packed_at, packed_bytes)) in (0..).zip(listed) {
        let start = number * BLOCK_BYTES;
        let length = BLOCK_BYTES.min(size - start);
        if packed_bytes > PACKED_BYTES_MAX || packed_at + packed_bytes > fork_bytes {
            return Ok(Content::lost(DAMAGED));
        }
        // The decoder of zlib accepts a shorter last block; the others need its exact length.
        let is_zlib = packing == Packing::ZlibOrPlain;
        let unpacked_bytes = if is_zlib { BLOCK_BYTES } else { length };
        content.pieces.push(PackedPiece {
            start,
            length,
            packed_at,
            packed_bytes,
            skipped: 0,
            unpacked_bytes: unpacked_bytes as u32,
            packing,
        });
    }
    Ok(content)
}

/// The offset in the fork and the length of each block.
type List = Vec<(u64, u64)>;

/// The blocks of a fork with a resource: the header of the fork has the offset of the only resource, which
/// begins with the offsets and lengths of the blocks. `None` if the list is damaged.
fn resource_list(
    part: &Part<'_>,
    content: &Content,
    fork_bytes: u64,
    count: u64,
) -> Result<Option<List>> {
    let (mut head, mut stated) = ([0; 4], [0; 4]);
    let is_headed = read(part, content, 0, &mut head)?;
    let list_at = u64::from(u32::from_be_bytes(head)) + 4;
    let is_listed = is_headed && read(part, content, list_at, &mut stated)?;
    let room = fork_bytes.saturating_sub(list_at + 4) / 8;
    if !is_listed || u64::from(u32::from_le_bytes(stated)) != count || count > room {
        return Ok(None);
    }
    let table = table(part, content, list_at + 4, count * 8)?;
    Ok(table.map(|table| {
        let fields = table.chunks_exact(8);
        fields.map(|field| (list_at + number(field, 0), number(field, 4))).collect()
    }))
}

/// The blocks of a fork that begins with the offset of each block and of the end of the last one. `None`
/// if the list is damaged.
fn offset_list(
    part: &Part<'_>,
    content: &Content,
    fork_bytes: u64,
    count: u64,
) -> Result<Option<List>> {
    if count >= fork_bytes / 4 {
        return Ok(None);
    }
    let Some(table) = table(part, content, 0, (count + 1) * 4)? else { return Ok(None) };
    let offsets: Vec<u64> = table.chunks_exact(4).map(|field| number(field, 0)).collect();
    let block = |pair: &[u64]| Some((pair[0], pair[1].checked_sub(pair[0])?));
    Ok(offsets.windows(2).map(block).collect())
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u32_at(bytes, at).into()
}

/// Reads a table of a fork; `None` if the fork is too short, or if there is not enough memory: the table
/// can be as long as the fork, and thus as the volume.
fn table(part: &Part<'_>, content: &Content, at: u64, bytes: u64) -> Result<Option<Vec<u8>>> {
    let bytes = bytes as usize;
    let mut table = Vec::new();
    if table.try_reserve_exact(bytes).is_err() {
        return Ok(None);
    }
    table.resize(bytes, 0);
    Ok(read(part, content, at, &mut table)?.then_some(table))
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
