//! ext2, ext3 and ext4: a bitmap of blocks for each group of blocks.

use super::free::{Free, Units};
use crate::error::Result;
use crate::ext::{Layout, SUPERBLOCK_AT, is_ext, layout};
use crate::part::{BOOT_BYTES, Part, u16_at, u32_at};

/// The flag of a group whose bitmap was never written: only its metadata is allocated.
const BITMAP_UNWRITTEN: u16 = 0x2;

pub(super) fn read(
    part: &Part<'_>,
    boot: &[u8; BOOT_BYTES],
    free: &mut Free,
) -> Result<Option<&'static str>> {
    let superblock = &boot[SUPERBLOCK_AT..];
    if !is_ext(boot) {
        return Ok(None);
    }
    let mut layout = layout(superblock).ok_or_else(|| {
        part.refused(SUPERBLOCK_AT as u64, "an ext superblock with impossible values")
    })?;
    // Blocks past the end of a truncated image do not exist, so they are not free.
    layout.blocks = layout.blocks.min(part.length() / layout.block_bytes);
    let mut bitmap = vec![0; layout.block_bytes as usize];
    let mut group = 0;
    while layout.start_of(group) < layout.blocks {
        add_group(&layout, part, free, group, &mut bitmap)?;
        group += 1;
    }
    let end = layout.blocks * layout.block_bytes;
    free.add(part.place(end)..part.span().end, part)?;
    Ok(Some("ext"))
}

/// Adds the free blocks of a group.
fn add_group(
    layout: &Layout,
    part: &Part<'_>,
    free: &mut Free,
    group: u64,
    bitmap: &mut [u8],
) -> Result<()> {
    let mut descriptor = [0; 64];
    let known = descriptor.len().min(layout.descriptor_bytes as usize);
    let at = layout.descriptor_at(group);
    part.read(at, &mut descriptor[..known], "an ext group descriptor")?;
    let block = |low: usize| {
        let high = if known == 64 { u64::from(u32_at(&descriptor, low + 32)) } else { 0 };
        high << 32 | u64::from(u32_at(&descriptor, low))
    };
    let start = layout.start_of(group);
    let blocks = layout.blocks_a_group.min(layout.blocks - start);
    let clusters = blocks / layout.blocks_a_cluster;
    let is_unwritten =
        layout.has_unwritten_bitmaps && u16_at(&descriptor, 18) & BITMAP_UNWRITTEN != 0;
    if is_unwritten {
        bitmap.fill(0);
        let described = [
            (start, layout.backup_blocks(group)),
            (block(0), 1),
            (block(4), 1),
            (block(8), layout.inode_table_blocks),
        ];
        for (first, count) in described {
            allocate(layout, bitmap, start, blocks, first, count);
        }
    } else {
        part.read(block(0).saturating_mul(layout.block_bytes), bitmap, "an ext block bitmap")?;
    }
    let cluster_bytes = layout.blocks_a_cluster * layout.block_bytes;
    let mut units = Units::new(part, free, start * layout.block_bytes, cluster_bytes, clusters);
    units.bits(bitmap)?;
    units.finish()
}

/// Marks the blocks of a range as allocated, as far as they lie in the group that begins at `start`.
fn allocate(layout: &Layout, bitmap: &mut [u8], start: u64, blocks: u64, first: u64, count: u64) {
    let from = first.max(start);
    let to = first.saturating_add(count).min(start + blocks);
    for block in from..to {
        let cluster = ((block - start) / layout.blocks_a_cluster) as usize;
        if let Some(byte) = bitmap.get_mut(cluster / 8) {
            *byte |= 1 << (cluster % 8);
        }
    }
}
