//! XFS: a B-tree of free extents per allocation group, sorted by block.

use super::free::Free;
use crate::error::Result;
use crate::part::{BOOT_BYTES, Part, be16, be32};
use crate::xfs::{Layout, layout};

const HEADER: &[u8] = b"XAGF";
const TREE_OLD: &[u8] = b"ABTB";
const TREE_NEW: &[u8] = b"AB3B";
const DEPTH_MAX: u32 = 9;

pub(super) fn read(
    part: &Part<'_>,
    boot: &[u8; BOOT_BYTES],
    free: &mut Free,
) -> Result<Option<&'static str>> {
    let Some(layout) = layout(part, boot)? else { return Ok(None) };
    for group in 0..layout.groups {
        let Some(start) = layout.place_in(group, 0) else { break };
        let mut header = [0; 64];
        part.read(start + layout.sector_bytes, &mut header, "the free blocks of a group")?;
        let level = be32(&header, 28);
        if !header.starts_with(HEADER) || !(1..=DEPTH_MAX).contains(&level) {
            return Err(part.refused(start, "an XFS group with impossible values"));
        }
        let mut tree = Tree { part, layout: &layout, group, left: layout.group_blocks, free };
        tree.block(be32(&header, 16), level - 1)?;
    }
    let end = layout.blocks * layout.block_bytes;
    free.add(part.place(end)..part.span().end, part)?;
    Ok(Some("XFS"))
}

struct Tree<'t, 's> {
    part: &'t Part<'s>,
    layout: &'t Layout,
    group: u64,
    /// The remaining blocks that the tree may have.
    left: u64,
    free: &'t mut Free,
}

impl Tree<'_, '_> {
    /// Reads a block of the tree on its level.
    fn block(&mut self, number: u32, level: u32) -> Result<()> {
        let place = self.layout.place_in(self.group, number.into());
        let wrong = |at: u64| self.part.refused(at, "a damaged free-space tree");
        let at = place.ok_or_else(|| wrong(0))?;
        self.left = self.left.checked_sub(1).ok_or_else(|| wrong(at))?;
        let mut block = vec![0; self.layout.block_bytes as usize];
        self.part.read(at, &mut block, "a free-space tree")?;
        let magic = if self.layout.is_new { TREE_NEW } else { TREE_OLD };
        let head = self.layout.tree_head_bytes();
        let count = usize::from(be16(&block, 6));
        let each = if level == 0 { 8 } else { 12 };
        let room = (block.len() - head) / each;
        let is_it = block.starts_with(magic) && u32::from(be16(&block, 4)) == level;
        if !is_it || count > room {
            return Err(wrong(at));
        }
        if level == 0 {
            for extent in block[head..].chunks_exact(8).take(count) {
                self.extent(be32(extent, 0).into(), be32(extent, 4).into())?;
            }
            return Ok(());
        }
        for pointer in block[head + room * 8..].chunks_exact(4).take(count) {
            self.block(be32(pointer, 0), level - 1)?;
        }
        Ok(())
    }

    /// Adds free blocks of the group; those past the end do not exist.
    fn extent(&mut self, from: u64, blocks: u64) -> Result<()> {
        let Some(start) = self.layout.place_in(self.group, from) else { return Ok(()) };
        let blocks = blocks.min(self.layout.group_blocks - from);
        let end = start.saturating_add(blocks * self.layout.block_bytes);
        let end = end.min(self.layout.blocks * self.layout.block_bytes);
        self.free.add(self.part.place(start)..self.part.place(end), self.part)
    }
}
