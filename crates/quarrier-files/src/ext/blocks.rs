//! The blocks of a file: an extent tree, or direct and indirect block pointers.

use super::Layout;
use super::inode::Inode;
use crate::entry::{Content, Extent, Kind};
use crate::error::Result;
use crate::part::{Part, u16_at, u32_at};
use crate::walk::Walk;

const MAGIC: u16 = 0xF30A;
const HEAD_BYTES: usize = 12;
const DEPTH_MAX: u16 = 5;
/// Extents with a greater length field are unwritten (preallocated).
const WRITTEN_MAX: u16 = 0x8000;
const BEYOND: &str = "its blocks lie beyond the end of the volume";
const CIRCLES: &str = "it has more blocks than the volume";

/// The locations of an inode's bytes.
pub(super) fn content(
    part: &Part<'_>,
    layout: &Layout,
    inode: &Inode,
    walk: &mut Walk<'_>,
) -> Result<Content> {
    if inode.is_inline() {
        let all = inode.blocks.iter().chain(&*inode.more).copied();
        let size = usize::try_from(inode.size).unwrap_or(usize::MAX);
        let inline: Box<[u8]> = all.take(size).collect();
        let is_short = inode.size > inline.len() as u64;
        let lost = is_short.then_some("a part of it is missing");
        return Ok(Content { inline: Some(inline), lost, ..Content::default() });
    }
    if inode.kind() == Kind::Other || inode.size == 0 {
        return Ok(Content::default());
    }
    let blocks_wanted = inode.size.div_ceil(layout.block_bytes);
    let mut mapper = Mapper {
        part,
        layout,
        content: Content::default(),
        next: 0,
        wanted: blocks_wanted,
        left: layout.blocks.saturating_add(4096),
    };
    match inode.is_in_extents() {
        true => mapper.tree(&inode.blocks, DEPTH_MAX, walk)?,
        false => mapper.pointers(&inode.blocks, walk)?,
    }
    mapper.skip_to(blocks_wanted);
    Ok(mapper.content)
}

struct Mapper<'m, 's> {
    part: &'m Part<'s>,
    layout: &'m Layout,
    content: Content,
    /// The next block of the file, by index.
    next: u64,
    /// The number of blocks in the file.
    wanted: u64,
    /// The remaining blocks and tree nodes that the file may use.
    left: u64,
}

impl Mapper<'_, '_> {
    /// Adds a hole up to a block of the file.
    fn skip_to(&mut self, block: u64) {
        if block > self.next {
            let blocks = block - self.next;
            self.content.push(None, blocks.saturating_mul(self.layout.block_bytes));
            self.next = block;
        }
    }

    /// Adds blocks of the volume at the current end of the file.
    fn add(&mut self, place: u64, blocks: u64, is_written: bool) {
        let bytes = blocks * self.layout.block_bytes;
        let at = place.checked_mul(self.layout.block_bytes);
        let at = at.filter(|at| at.checked_add(bytes).is_some_and(|end| end <= self.part.length()));
        let Some(at) = at else {
            self.content.lost = Some(BEYOND);
            self.content.push(None, bytes);
            self.next += blocks;
            return;
        };
        match is_written {
            true => self.content.push(Some(self.part.place(at)), bytes),
            false => {
                self.content.push(None, bytes);
                let extent = Extent { offset: self.part.place(at), length: bytes };
                self.content.reserved.push(extent);
            }
        }
        self.next += blocks;
    }

    /// Charges `more` blocks; true if the file has more than the volume, as in a cycle.
    fn is_over(&mut self, more: u64) -> bool {
        match self.left.checked_sub(more) {
            Some(left) => self.left = left,
            None => {
                self.left = 0;
                self.content.lost = Some(CIRCLES);
            }
        }
        self.content.lost == Some(CIRCLES)
    }

    /// Reads an extent tree node, which must not be deeper than its parent allows.
    fn tree(&mut self, node: &[u8], depth_max: u16, walk: &mut Walk<'_>) -> Result<()> {
        let (entries, depth) = (usize::from(u16_at(node, 2)), u16_at(node, 6));
        if u16_at(node, 0) != MAGIC || depth > depth_max {
            self.content.lost = Some("its extent tree is damaged");
            return Ok(());
        }
        for entry in node[HEAD_BYTES..].chunks_exact(12).take(entries) {
            walk.step(self.part)?;
            let block = u64::from(u32_at(entry, 0));
            if depth == 0 {
                let place = u64::from(u16_at(entry, 6)) << 32 | u64::from(u32_at(entry, 8));
                let length = u16_at(entry, 4);
                let is_written = length <= WRITTEN_MAX;
                let blocks = u64::from(if is_written { length } else { length - WRITTEN_MAX });
                if block < self.next || self.is_over(blocks) {
                    self.content.lost = self.content.lost.or(Some("its extents overlap"));
                    return Ok(());
                }
                self.skip_to(block);
                self.add(place, blocks, is_written);
                continue;
            }
            if self.is_over(1) {
                return Ok(());
            }
            let place = u64::from(u16_at(entry, 8)) << 32 | u64::from(u32_at(entry, 4));
            if let Some(child) = self.read(place)? {
                self.tree(&child, depth - 1, walk)?;
            }
        }
        Ok(())
    }

    /// Reads a block of the volume; `None` beyond its end.
    fn read(&mut self, place: u64) -> Result<Option<Vec<u8>>> {
        let bytes = self.layout.block_bytes;
        let at = place
            .checked_mul(bytes)
            .filter(|at| at.checked_add(bytes).is_some_and(|end| end <= self.part.length()));
        let Some(at) = at else {
            self.content.lost = Some(BEYOND);
            return Ok(None);
        };
        let mut block = vec![0; bytes as usize];
        self.part.read(at, &mut block, "an extent tree")?;
        Ok(Some(block))
    }

    /// Twelve direct pointers, then a single, a double and a triple indirect one.
    fn pointers(&mut self, all: &[u8; 60], walk: &mut Walk<'_>) -> Result<()> {
        self.direct(&all[..48], walk)?;
        for (level, pointer) in (1..).zip(all[48..].chunks_exact(4)) {
            self.indirect(u32_at(pointer, 0).into(), level, walk)?;
        }
        Ok(())
    }

    fn direct(&mut self, pointers: &[u8], walk: &mut Walk<'_>) -> Result<()> {
        for pointer in pointers.chunks_exact(4) {
            if self.next >= self.wanted {
                return Ok(());
            }
            match u32_at(pointer, 0) {
                0 => self.skip_to(self.next + 1),
                place => {
                    walk.step(self.part)?;
                    if self.is_over(1) {
                        return Ok(());
                    }
                    self.add(place.into(), 1, true);
                }
            }
        }
        Ok(())
    }

    fn indirect(&mut self, place: u64, level: u32, walk: &mut Walk<'_>) -> Result<()> {
        if self.next >= self.wanted || self.is_over(1) {
            return Ok(());
        }
        let each = self.layout.block_bytes / 4;
        if place == 0 {
            let blocks = each.saturating_pow(level);
            self.skip_to(self.next.saturating_add(blocks).min(self.wanted));
            return Ok(());
        }
        walk.step(self.part)?;
        let Some(block) = self.read(place)? else { return Ok(()) };
        if level == 1 {
            return self.direct(&block, walk);
        }
        for pointer in block.chunks_exact(4) {
            self.indirect(u32_at(pointer, 0).into(), level - 1, walk)?;
            if self.content.lost.is_some() {
                break;
            }
        }
        Ok(())
    }
}
