//! The superblock of XFS.

use crate::error::Result;
use crate::part::{BOOT_BYTES, Part, be16, be32, be64};

const MAGIC: &[u8] = b"XFSB";
const VERSION_NEW: u16 = 5;
/// The version 4 flag for a second word of feature flags.
const MORE_FLAGS: u16 = 0x8000;
const TYPES_OLD: u32 = 0x200;
const TYPES_NEW: u32 = 0x1;
const SPARSE_CHUNKS: u32 = 0x2;
const HEAD_BYTES_OLD: usize = 16;
const HEAD_BYTES_NEW: usize = 56;

/// The layout of a volume. Blocks have two numbers: a linear one, and one with the group in its upper
/// bits, which pointers use.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) block_bytes: u64,
    pub(crate) sector_bytes: u64,
    /// The number of blocks of the volume.
    pub(crate) blocks: u64,
    pub(crate) groups: u64,
    pub(crate) group_blocks: u64,
    pub(crate) root: u64,
    pub(crate) inode_bytes: u64,
    /// The directory block size.
    pub(crate) folder_block_bytes: u64,
    /// Whether structures have checksums (version 5), and so longer headers.
    pub(crate) is_new: bool,
    /// Whether directory entries store the file type.
    pub(crate) has_types: bool,
    /// Whether inode chunks may be sparse.
    pub(super) has_sparse_chunks: bool,
    block_shift: u32,
    inode_shift: u32,
}

/// The layout of a volume that begins with `boot`; `None` if it is not XFS.
///
/// # Errors
/// [`Error::FileSystem`](crate::Error::FileSystem) if the superblock has impossible values.
pub(crate) fn layout(part: &Part<'_>, boot: &[u8; BOOT_BYTES]) -> Result<Option<Layout>> {
    if !boot.starts_with(MAGIC) {
        return Ok(None);
    }
    let refused = || part.refused(0, "an XFS superblock with impossible values");
    let block_bytes = u64::from(be32(boot, 4));
    let (sector_bytes, inode_bytes) = (u64::from(be16(boot, 102)), u64::from(be16(boot, 104)));
    let (group_blocks, groups) = (u64::from(be32(boot, 84)), u64::from(be32(boot, 88)));
    let (block_shift, folder_shift) = (u32::from(boot[124]), u32::from(boot[192]));
    let version = be16(boot, 100);
    let is_power = |bytes: u64, most: u64| bytes.is_power_of_two() && (256..=most).contains(&bytes);
    let fits = is_power(block_bytes, 64 << 10)
        && is_power(sector_bytes, 32 << 10)
        && is_power(inode_bytes, block_bytes.min(2 << 10))
        && groups > 0
        && block_shift < 32
        && (5..=1 << block_shift).contains(&group_blocks)
        && folder_shift <= 7
        && block_bytes << folder_shift <= 64 << 10
        && matches!(version & 0xF, 4 | VERSION_NEW);
    if !fits {
        return Err(refused());
    }
    let is_new = version & 0xF == VERSION_NEW;
    let has_types = match is_new {
        true => be32(boot, 216) & TYPES_NEW != 0,
        false => version & MORE_FLAGS != 0 && be32(boot, 200) & TYPES_OLD != 0,
    };
    let room = part.length() / block_bytes;
    Ok(Some(Layout {
        block_bytes,
        sector_bytes,
        blocks: be64(boot, 8).min(groups.saturating_mul(group_blocks)).min(room),
        groups,
        group_blocks,
        root: be64(boot, 56),
        inode_bytes,
        folder_block_bytes: block_bytes << folder_shift,
        is_new,
        has_types,
        has_sparse_chunks: is_new && be32(boot, 216) & SPARSE_CHUNKS != 0,
        block_shift,
        inode_shift: (block_bytes / inode_bytes).trailing_zeros(),
    }))
}

impl Layout {
    /// The offset of a block in the volume, by its pointer number; `None` if no such block exists.
    pub(crate) fn place(&self, block: u64) -> Option<u64> {
        self.place_in(block >> self.block_shift, block & ((1 << self.block_shift) - 1))
    }

    /// The offset of a block in a group.
    pub(crate) fn place_in(&self, group: u64, block: u64) -> Option<u64> {
        let is_there = group < self.groups && block < self.group_blocks;
        let number = group.checked_mul(self.group_blocks)?.checked_add(block)?;
        (is_there && number < self.blocks).then(|| number * self.block_bytes)
    }

    /// The offset of an inode in the volume.
    pub(crate) fn inode_at(&self, number: u64) -> Option<u64> {
        let inside = number & ((1 << self.inode_shift) - 1);
        Some(self.place(number >> self.inode_shift)? + inside * self.inode_bytes)
    }

    /// The number of an inode, from its number within the group.
    pub(super) fn inode_number(&self, group: u64, inode: u64) -> u64 {
        group << (self.block_shift + self.inode_shift) | inode
    }

    /// Whether `blocks` blocks, at least one, fit in the group of `block`.
    pub(super) fn is_run(&self, block: u64, blocks: u64) -> bool {
        let last = blocks.checked_sub(1).and_then(|more| block.checked_add(more));
        let ends = (self.place(block), last.and_then(|last| self.place(last)));
        let (Some(first), Some(last)) = ends else { return false };
        last.checked_sub(first) == Some((blocks - 1) * self.block_bytes)
    }

    /// The header size of B-tree blocks of a group.
    pub(crate) fn tree_head_bytes(&self) -> usize {
        if self.is_new { HEAD_BYTES_NEW } else { HEAD_BYTES_OLD }
    }
}
