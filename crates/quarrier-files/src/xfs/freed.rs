//! Free inodes: the inode B-tree of each group lists chunks of 64 inodes and which of them are free.

use super::layout::Layout;
use crate::error::Result;
use crate::part::{Part, be16, be32, be64};
use crate::walk::Walk;

const HEADER: &[u8] = b"XAGI";
const TREE_OLD: &[u8] = b"IABT";
const TREE_NEW: &[u8] = b"IAB3";
const DEPTH_MAX: u32 = 9;
const CHUNK: u64 = 64;
/// In sparse chunks, a hole bit covers four inodes.
const HOLE_INODES: u64 = 4;
const WHAT: &str = "a damaged inode tree";

/// Passes the number of each free inode of a group to `see`, except holes of sparse chunks.
pub(super) fn each<'w>(
    part: &Part<'_>,
    layout: &Layout,
    group: u64,
    walk: &mut Walk<'w>,
    see: &mut dyn FnMut(u64, &mut Walk<'w>) -> Result<()>,
) -> Result<()> {
    let Some(start) = layout.place_in(group, 0) else { return Ok(()) };
    let at = start + 2 * layout.sector_bytes;
    let mut header = [0; 32];
    part.read(at, &mut header, "the inodes of a group")?;
    let level = be32(&header, 24);
    if !header.starts_with(HEADER) || !(1..=DEPTH_MAX).contains(&level) {
        return Err(part.refused(at, WHAT));
    }
    let mut tree = Tree { part, layout, group, left: layout.group_blocks };
    tree.block(be32(&header, 20), level - 1, walk, see)
}

struct Tree<'t, 's> {
    part: &'t Part<'s>,
    layout: &'t Layout,
    group: u64,
    /// The remaining blocks that the tree may have.
    left: u64,
}

impl Tree<'_, '_> {
    /// Reads a block of the tree on its level.
    fn block<'w>(
        &mut self,
        number: u32,
        level: u32,
        walk: &mut Walk<'w>,
        see: &mut dyn FnMut(u64, &mut Walk<'w>) -> Result<()>,
    ) -> Result<()> {
        walk.step(self.part)?;
        let wrong = |at: u64| self.part.refused(at, WHAT);
        let at = self.layout.place_in(self.group, number.into()).ok_or_else(|| wrong(0))?;
        self.left = self.left.checked_sub(1).ok_or_else(|| wrong(at))?;
        let mut block = vec![0; self.layout.block_bytes as usize];
        self.part.read(at, &mut block, "an inode tree")?;
        let magic = if self.layout.is_new { TREE_NEW } else { TREE_OLD };
        let head = self.layout.tree_head_bytes();
        let count = usize::from(be16(&block, 6));
        let each = if level == 0 { 16 } else { 8 };
        let room = (block.len() - head) / each;
        let is_it = block.starts_with(magic) && u32::from(be16(&block, 4)) == level;
        if !is_it || count > room {
            return Err(wrong(at));
        }
        if level == 0 {
            let chunks = block[head..].chunks_exact(16).take(count);
            return chunks.into_iter().try_for_each(|chunk| self.chunk(chunk, walk, see));
        }
        for pointer in block[head + room * 4..].chunks_exact(4).take(count) {
            self.block(be32(pointer, 0), level - 1, walk, see)?;
        }
        Ok(())
    }

    fn chunk<'w>(
        &self,
        chunk: &[u8],
        walk: &mut Walk<'w>,
        see: &mut dyn FnMut(u64, &mut Walk<'w>) -> Result<()>,
    ) -> Result<()> {
        let (first, free) = (u64::from(be32(chunk, 0)), be64(chunk, 8));
        let holes = if self.layout.has_sparse_chunks { be16(chunk, 4) } else { 0 };
        for inode in (0..CHUNK).filter(|inode| free >> inode & 1 == 1) {
            walk.step(self.part)?;
            if holes >> (inode / HOLE_INODES) & 1 == 0 {
                see(self.layout.inode_number(self.group, first + inode), walk)?;
            }
        }
        Ok(())
    }
}
