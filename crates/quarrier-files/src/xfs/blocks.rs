//! The blocks of a file: an extent list in its inode, or an extent tree.

use super::inode::{Form, Inode};
use super::layout::Layout;
use crate::entry::{Content, Extent, Kind};
use crate::error::Result;
use crate::part::{Part, be16, be64};
use crate::walk::Walk;

const EXTENT_BYTES: usize = 16;
const DEPTH_MAX: u16 = 12;
const TREE_OLD: &[u8] = b"BMAP";
const TREE_NEW: &[u8] = b"BMA3";
const TREE_HEAD_BYTES_OLD: usize = 24;
const TREE_HEAD_BYTES_NEW: usize = 72;
const LINK: &[u8; 4] = b"XSLM";
/// The header of a block with a symbolic link target.
const LINK_HEAD_BYTES: u64 = 56;
const BEYOND: &str = "its blocks lie beyond the end of the volume";
const DAMAGED: &str = "its extent tree is damaged";

/// The locations of an inode's bytes.
pub(super) fn content(
    part: &Part<'_>,
    layout: &Layout,
    inode: &Inode,
    walk: &mut Walk<'_>,
) -> Result<Content> {
    if inode.form == Form::Local {
        let size = usize::try_from(inode.size).unwrap_or(usize::MAX);
        let inline: Box<[u8]> = inode.fork.iter().copied().take(size).collect();
        let lost = (inode.size > inline.len() as u64).then_some("a part of it is missing");
        // An inline directory's names are not its content.
        let inline = (inode.kind() != Kind::Folder).then_some(inline);
        return Ok(Content { inline, lost, ..Content::default() });
    }
    if inode.kind() == Kind::Other || inode.size == 0 {
        return Ok(Content::default());
    }
    if inode.is_real_time && inode.kind() == Kind::File {
        return Ok(Content::lost("it is on another device, for real-time data"));
    }
    let wanted = inode.size.div_ceil(layout.block_bytes);
    let mut mapper =
        Mapper { part, layout, content: Content::default(), next: 0, wanted, left: layout.blocks };
    match inode.form {
        Form::Extents => {
            let count = usize::try_from(inode.extents).unwrap_or(usize::MAX);
            if count > inode.fork.len() / EXTENT_BYTES {
                mapper.content.lost = Some("its extent list is damaged");
            }
            mapper.list(&inode.fork, count, walk)?;
        }
        Form::Tree => mapper.root(&inode.fork, walk)?,
        Form::Local | Form::Other => mapper.content.lost = Some("its format is unknown"),
    }
    mapper.skip_to(wanted);
    match inode.kind() {
        Kind::Link if layout.is_new => target(part, layout, mapper.content),
        _ => Ok(mapper.content),
    }
}

/// The size and locations of a deleted file, as far as its inode still has them; `None` if nothing is
/// left. The size is that of its blocks, since XFS clears the length and the extent count.
pub(super) fn freed(
    part: &Part<'_>,
    layout: &Layout,
    inode: &Inode,
    walk: &mut Walk<'_>,
) -> Result<Option<(u64, Content)>> {
    let left = layout.blocks;
    let mut mapper =
        Mapper { part, layout, content: Content::default(), next: 0, wanted: left, left };
    for extent in inode.fork.chunks_exact(EXTENT_BYTES).map(ListedExtent::of) {
        walk.step(part)?;
        let is_next = extent.from >= mapper.next && extent.from < left;
        if !is_next || !layout.is_run(extent.block, extent.blocks) || mapper.is_over(extent.blocks)
        {
            break;
        }
        mapper.skip_to(extent.from);
        mapper.add(extent.block, extent.blocks, extent.is_unwritten);
    }
    let size = mapper.next * layout.block_bytes;
    let content = Content { lost: None, ..mapper.content };
    Ok((size > 0).then_some((size, content)))
}

/// An entry of an extent list.
struct ListedExtent {
    /// Its first block in the file.
    from: u64,
    block: u64,
    blocks: u64,
    is_unwritten: bool,
}

impl ListedExtent {
    fn of(bytes: &[u8]) -> Self {
        let (high, low) = (be64(bytes, 0), be64(bytes, 8));
        ListedExtent {
            from: high >> 9 & ((1 << 54) - 1),
            block: (high & 0x1FF) << 43 | low >> 21,
            blocks: low & ((1 << 21) - 1),
            is_unwritten: high >> 63 != 0,
        }
    }
}

/// The target of a link: each block has a header, except in volumes of older mkfs.xfs.
fn target(part: &Part<'_>, layout: &Layout, content: Content) -> Result<Content> {
    let mut target = Content { lost: content.lost, ..Content::default() };
    for run in content.runs {
        let Some(place) = run.place else { continue };
        for block in (0..run.length).step_by(layout.block_bytes as usize) {
            let at = place.saturating_add(block);
            let mut magic = [0; 4];
            part.read(at.saturating_sub(part.place(0)), &mut magic, "the target of a link")?;
            let head = if &magic == LINK { LINK_HEAD_BYTES } else { 0 };
            target.push(Some(at.saturating_add(head)), layout.block_bytes - head);
        }
    }
    Ok(target)
}

struct Mapper<'m, 's> {
    part: &'m Part<'s>,
    layout: &'m Layout,
    content: Content,
    /// The next block of the file, by index.
    next: u64,
    /// The number of blocks in the file.
    wanted: u64,
    /// The remaining blocks that the file may have, including those of its tree.
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

    /// Charges `more` blocks; true if the file has more than the volume.
    fn is_over(&mut self, more: u64) -> bool {
        let left = self.left.checked_sub(more);
        self.left = left.unwrap_or(0);
        if left.is_none() {
            self.content.lost = Some("it has more blocks than the volume");
        }
        left.is_none()
    }

    /// Adds extents in order.
    fn list(&mut self, list: &[u8], count: usize, walk: &mut Walk<'_>) -> Result<()> {
        for extent in list.chunks_exact(EXTENT_BYTES).take(count) {
            walk.step(self.part)?;
            let ListedExtent { from, block, blocks, is_unwritten } = ListedExtent::of(extent);
            // Hash index blocks of a directory, and blocks preallocated for a file, come after its end.
            if from >= self.wanted {
                break;
            }
            if from < self.next {
                self.content.lost = Some("its extents overlap");
                break;
            }
            if self.is_over(blocks) {
                break;
            }
            self.skip_to(from);
            self.add(block, blocks, is_unwritten);
        }
        Ok(())
    }

    /// Adds blocks of the volume at the current end of the file; they must stay in their group.
    fn add(&mut self, block: u64, blocks: u64, is_unwritten: bool) {
        let bytes = blocks * self.layout.block_bytes;
        let place = self.layout.place(block).filter(|_| self.layout.is_run(block, blocks));
        let Some(at) = place else {
            self.content.lost = Some(BEYOND);
            self.content.push(None, bytes);
            self.next += blocks;
            return;
        };
        let offset = self.part.place(at);
        match is_unwritten {
            true => {
                self.content.push(None, bytes);
                self.content.reserved.push(Extent { offset, length: bytes });
            }
            false => self.content.push(Some(offset), bytes),
        }
        self.next += blocks;
    }

    /// Reads the tree root in an inode, after a 4-byte header.
    fn root(&mut self, fork: &[u8], walk: &mut Walk<'_>) -> Result<()> {
        let (level, count) = (be16(fork, 0), usize::from(be16(fork, 2)));
        let room = fork.len().saturating_sub(4) / EXTENT_BYTES;
        if level == 0 || level > DEPTH_MAX || count > room {
            self.content.lost = Some(DAMAGED);
            return Ok(());
        }
        let pointers = fork.get(4 + room * 8..).unwrap_or_default();
        self.children(pointers, count, level - 1, walk)
    }

    fn children(
        &mut self,
        pointers: &[u8],
        count: usize,
        level: u16,
        walk: &mut Walk<'_>,
    ) -> Result<()> {
        for pointer in pointers.chunks_exact(8).take(count) {
            if self.content.lost.is_some() {
                return Ok(());
            }
            self.block(be64(pointer, 0), level, walk)?;
        }
        Ok(())
    }

    /// Reads a block of the tree on its level.
    fn block(&mut self, number: u64, level: u16, walk: &mut Walk<'_>) -> Result<()> {
        walk.step(self.part)?;
        if self.is_over(1) {
            return Ok(());
        }
        let Some(at) = self.layout.place(number) else {
            self.content.lost = Some(BEYOND);
            return Ok(());
        };
        let mut block = vec![0; self.layout.block_bytes as usize];
        self.part.read(at, &mut block, "an extent tree")?;
        let (magic, head) = match self.layout.is_new {
            true => (TREE_NEW, TREE_HEAD_BYTES_NEW),
            false => (TREE_OLD, TREE_HEAD_BYTES_OLD),
        };
        let count = usize::from(be16(&block, 6));
        let room = (block.len() - head) / EXTENT_BYTES;
        if !block.starts_with(magic) || be16(&block, 4) != level || count > room {
            self.content.lost = Some(DAMAGED);
            return Ok(());
        }
        match level {
            0 => self.list(&block[head..], count, walk),
            _ => self.children(&block[head + room * 8..], count, level - 1, walk),
        }
    }
}
