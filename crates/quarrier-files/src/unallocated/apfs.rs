//! APFS: chunk bitmaps, found through the container's space manager.

use super::free::{Free, Units};
use crate::apfs::{Container, is_apfs, superblock};
use crate::error::Result;
use crate::part::{BOOT_BYTES, Part, u32_at, u64_at};

const SPACE: u32 = 5;
/// Maximum blocks read of the space manager, which grows with the container.
const SPACE_BLOCKS_MAX: u64 = 1 << 8;
const HEAD_BYTES: usize = 40;
const CHUNK_BYTES: usize = 32;

pub(super) fn read(
    part: &Part<'_>,
    boot: &[u8; BOOT_BYTES],
    free: &mut Free,
) -> Result<Option<&'static str>> {
    if !is_apfs(part, boot)? {
        return Ok(None);
    }
    let container = Container::new(part, superblock(part, boot)?);
    let (block_bytes, blocks) = (container.superblock().block_bytes, container.superblock().blocks);
    let wrong = || part.refused(0, "an APFS space manager with impossible values");
    let (block, length) = container.ephemeral(container.superblock().space)?;
    if length == 0 || length > SPACE_BLOCKS_MAX {
        return Err(wrong());
    }
    let space = container.object(block, length, "the APFS space manager")?;
    let (lists, groups) = (u32_at(&space, 64), u32_at(&space, 68));
    if u32_at(&space, 24) & 0xFFFF != SPACE {
        return Err(wrong());
    }
    let mut units = Units::new(part, free, 0, block_bytes, blocks);
    let places = |bytes: &[u8], at: usize, count: u32| -> Option<Vec<u64>> {
        let list = bytes.get(at..)?.get(..(count as usize).checked_mul(8)?)?;
        Some(list.chunks_exact(8).map(|place| u64_at(place, 0)).collect())
    };
    let at = u32_at(&space, 80) as usize;
    let first = if groups > 0 { groups } else { lists };
    let mut all = places(&space, at, first).ok_or_else(wrong)?;
    if groups > 0 {
        let groups = std::mem::take(&mut all);
        for group in groups {
            let bytes = container.object(group, 1, "a list of chunks")?;
            all.extend(places(&bytes, HEAD_BYTES, u32_at(&bytes, 36)).ok_or_else(wrong)?);
            if all.len() as u64 > blocks {
                return Err(wrong());
            }
        }
    }
    for list in all {
        let bytes = container.object(list, 1, "a list of chunks")?;
        let count = u32_at(&bytes, 36) as usize;
        for chunk in bytes[HEAD_BYTES..].chunks_exact(CHUNK_BYTES).take(count) {
            let (chunk_blocks, bitmap) = (u64::from(u32_at(chunk, 16)), u64_at(chunk, 24));
            if bitmap == 0 {
                units.same(true, chunk_blocks)?;
                continue;
            }
            let bytes = chunk_blocks.div_ceil(8);
            if bytes > block_bytes || !chunk_blocks.is_multiple_of(8) && units.left() > chunk_blocks
            {
                return Err(wrong());
            }
            let at = bitmap.saturating_mul(block_bytes);
            part.stream(at, bytes, "the bitmap of a chunk", &mut |bits| units.bits(bits))?;
        }
    }
    if units.left() > 0 {
        return Err(part.refused(0, "APFS bitmaps too short for its blocks"));
    }
    units.finish()?;
    let end = blocks.saturating_mul(block_bytes).min(part.length());
    free.add(part.place(end)..part.span().end, part)?;
    Ok(Some("APFS"))
}
