//! Inodes, and the extents of files.

use super::superblock::Root;
use super::tree::{Item, Key, Trees};
use crate::entry::{Access, Content, Extent, Kind, PackedPiece, Packing, Times};
use crate::error::Result;
use crate::part::{Part, u32_at, u64_at};
use crate::walk::Walk;

pub(super) const INODE: u8 = 1;
pub(super) const EXTENT: u8 = 108;
const INODE_BYTES: usize = 160;
const EXTENT_HEAD_BYTES: usize = 21;
const EXTENT_BYTES: usize = 53;
const INLINE: u8 = 0;
const RESERVED: u8 = 2;
/// Maximum size of a compressed extent, on disk and unpacked.
const PACKED_BYTES_MAX: u64 = 128 << 10;

/// An inode with the locations of its bytes.
pub(super) struct Inode {
    pub(super) kind: Kind,
    pub(super) size: u64,
    pub(super) times: Times,
    pub(super) access: Access,
    pub(super) content: Content,
}

/// Reads an inode of a tree; `None` if the tree has none of that number.
pub(super) fn inode(
    part: &Part<'_>,
    trees: &mut Trees<'_, '_>,
    tree: Root,
    number: u64,
    walk: &mut Walk<'_>,
) -> Result<Option<Inode>> {
    let mut found = None;
    let mut extents = Vec::new();
    let mut is_damaged = false;
    let from = Key { object: number, kind: 0, offset: 0 };
    trees.range(tree, from, walk, &mut |item| {
        if item.key.object != number || item.key.kind > EXTENT {
            return false;
        }
        match item.key.kind {
            INODE => found = Some(item.data.to_vec()),
            EXTENT => match stored(item) {
                Some(extent) => extents.push(extent),
                None => is_damaged = true,
            },
            _ => {}
        }
        true
    })?;
    let extents = (!is_damaged).then_some(&extents[..]);
    Ok(found.and_then(|bytes| of_items(part, trees, &bytes, extents)))
}

/// Assembles an inode from its item and its extents in file order; these are `None` if one is damaged.
/// `None` if the item is damaged.
pub(super) fn of_items(
    part: &Part<'_>,
    trees: &Trees<'_, '_>,
    bytes: &[u8],
    extents: Option<&[Stored]>,
) -> Option<Inode> {
    let bytes = Some(bytes).filter(|bytes| bytes.len() >= INODE_BYTES)?;
    let kind = match u32_at(bytes, 52) >> 12 {
        8 => Kind::File,
        4 => Kind::Folder,
        10 => Kind::Link,
        _ => Kind::Other,
    };
    let time = |at: usize| {
        let seconds = u64_at(bytes, at).cast_signed();
        seconds.checked_mul(1_000_000_000)?.checked_add(u32_at(bytes, at + 8).into())
    };
    let size = if matches!(kind, Kind::File | Kind::Link) { u64_at(bytes, 16) } else { 0 };
    let content = match extents {
        Some(extents) => content(part, trees, extents),
        None => Content::lost("one of its extents is damaged"),
    };
    Some(Inode {
        kind,
        size,
        times: Times {
            accessed: time(112),
            changed: time(124),
            modified: time(136),
            created: time(148),
        },
        access: Access {
            mode: Some(u32_at(bytes, 52) as u16),
            user: u32_at(bytes, 44),
            group: u32_at(bytes, 48),
        },
        content,
    })
}

/// An extent of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stored {
    /// Its offset in the file, and the bytes of the file it holds.
    start: u64,
    length: u64,
    place: Place,
    /// Bytes on disk, if compressed.
    stored_bytes: u64,
    /// Offset into the unpacked bytes.
    skipped: u64,
    unpacked_bytes: u64,
    /// The compression type, as Btrfs numbers it.
    packing: u8,
    is_reserved: bool,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Hole,
    /// Inline in a leaf, at this offset in the part.
    Leaf(u64),
    /// At this logical address.
    Chunk(u64),
}

/// Parses the extent of an item; `None` if it is damaged.
pub(super) fn stored(item: &Item<'_>) -> Option<Stored> {
    let data = item.data;
    let (form, packing) = (*data.get(20)?, data[16]);
    let unpacked_bytes = u64_at(data, 8);
    if form == INLINE {
        let stored_bytes = (data.len() - EXTENT_HEAD_BYTES.min(data.len())) as u64;
        item.key.offset.checked_add(unpacked_bytes)?;
        let is_whole = packing > 0 || stored_bytes >= unpacked_bytes;
        return is_whole.then_some(Stored {
            start: item.key.offset,
            length: unpacked_bytes,
            place: Place::Leaf(item.place + EXTENT_HEAD_BYTES as u64),
            stored_bytes,
            skipped: 0,
            unpacked_bytes,
            packing,
            is_reserved: false,
        });
    }
    let (at, skipped, length) = (u64_at(data, 21), u64_at(data, 37), u64_at(data, 45));
    item.key.offset.checked_add(length)?;
    (data.len() >= EXTENT_BYTES && form <= RESERVED && length > 0).then_some(Stored {
        start: item.key.offset,
        length,
        place: if at == 0 { Place::Hole } else { Place::Chunk(at) },
        stored_bytes: u64_at(data, 29),
        skipped,
        unpacked_bytes,
        packing,
        is_reserved: form == RESERVED,
    })
}

/// Builds the content from extents in file order.
fn content(part: &Part<'_>, trees: &Trees<'_, '_>, extents: &[Stored]) -> Content {
    let is_packed = extents.iter().any(|extent| extent.packing > 0);
    let mut content = Content::default();
    let (mut next, mut stored_bytes) = (0, 0);
    for extent in extents {
        let place = match found(trees, extent) {
            Ok(place) => place.map(|place| part.place(place)),
            Err(why) => {
                content.lost = Some(why);
                None
            }
        };
        if extent.start < next {
            content.lost = Some("its extents overlap");
        }
        if content.lost.is_some() {
            break;
        }
        match (place, is_packed) {
            (Some(place), true) if !extent.is_reserved => {
                let piece = piece(extent, stored_bytes);
                content.push(Some(place), piece.packed_bytes);
                stored_bytes += piece.packed_bytes;
                content.pieces.push(piece);
            }
            (_, true) => {}
            (place, false) => {
                content.push(None, extent.start - next);
                let is_there = place.filter(|_| !extent.is_reserved);
                content.push(is_there, extent.length);
            }
        }
        if let Some(offset) = place.filter(|_| extent.is_reserved) {
            content.reserved.push(Extent { offset, length: extent.length });
        }
        next = extent.start + extent.length;
    }
    content
}

/// The offset in the part of the bytes to read: a whole compressed extent, or the file's share of a
/// plain one. `None` for a hole.
fn found(trees: &Trees<'_, '_>, extent: &Stored) -> std::result::Result<Option<u64>, &'static str> {
    let beyond = "its blocks lie in no chunk";
    let place = match extent.place {
        Place::Hole => return Ok(None),
        Place::Leaf(place) => Some(place),
        Place::Chunk(at) if extent.packing > 0 => trees.place(at, extent.stored_bytes),
        Place::Chunk(at) => {
            let first = at.checked_add(extent.skipped);
            first.and_then(|first| trees.place(first, extent.length))
        }
    };
    match (place, extent.packing) {
        (None, _) => Err(beyond),
        (place, 0) => Ok(place),
        _ if extent.stored_bytes.max(extent.unpacked_bytes) > PACKED_BYTES_MAX => {
            Err("its compressed bytes are damaged")
        }
        (place, 1 | 3) => Ok(place),
        (place, 2) if trees.superblock().sector_bytes == 4096 => Ok(place),
        (_, 2) => Err("it is compressed with LZO in sectors of another size"),
        _ => Err("it is compressed in an unsupported format"),
    }
}

fn piece(extent: &Stored, packed_at: u64) -> PackedPiece {
    let packing = match extent.packing {
        0 => Packing::Plain,
        1 => Packing::Zlib,
        2 => Packing::Lzo,
        _ => Packing::Zstd,
    };
    let is_plain = packing == Packing::Plain;
    PackedPiece {
        start: extent.start,
        length: extent.length,
        packed_at,
        packed_bytes: if is_plain { extent.length } else { extent.stored_bytes },
        skipped: if is_plain { 0 } else { u32::try_from(extent.skipped).unwrap_or(u32::MAX) },
        // Bounded above by the checks of `stored`.
        unpacked_bytes: u32::try_from(extent.unpacked_bytes).unwrap_or(u32::MAX),
        packing,
    }
}
