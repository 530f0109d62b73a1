//! The superblock of ext2, ext3 and ext4.

use crate::part::{BOOT_BYTES, u16_at, u32_at, u64_at};

pub(crate) const SUPERBLOCK_AT: usize = 1024;
const MAGIC: u16 = 0xEF53;

const SPARSE_BACKUPS: u32 = 0x1;
const DESCRIPTOR_CHECKSUMS: u32 = 0x10;
const BIG_CLUSTERS: u32 = 0x200;
const ALL_CHECKSUMS: u32 = 0x400;
const META_GROUPS: u32 = 0x10;
const TYPES: u32 = 0x2;
const WIDE: u32 = 0x80;
const TWO_BACKUPS: u32 = 0x200;

/// The layout given by the superblock.
pub(crate) struct Layout {
    pub(crate) block_bytes: u64,
    pub(crate) blocks: u64,
    first_block: u64,
    pub(crate) blocks_a_group: u64,
    /// The allocation unit of the bitmaps: a block, or a cluster of a power of two blocks.
    pub(crate) blocks_a_cluster: u64,
    pub(crate) descriptor_bytes: u64,
    /// From this descriptor block on, each is in its own meta block group; earlier ones follow the
    /// superblock.
    first_meta_group: u64,
    reserved_descriptors: u64,
    pub(crate) inode_table_blocks: u64,
    pub(crate) has_unwritten_bitmaps: bool,
    is_sparse: bool,
    two_backups: Option<[u64; 2]>,
    pub(crate) inodes: u64,
    pub(crate) inodes_a_group: u64,
    pub(crate) inode_bytes: u64,
    /// Whether directory entries store the file type.
    pub(crate) has_types: bool,
}

/// Whether `boot` has a superblock of ext2, ext3 or ext4.
pub(crate) fn is_ext(boot: &[u8; BOOT_BYTES]) -> bool {
    u16_at(&boot[SUPERBLOCK_AT..], 56) == MAGIC
}

/// Parses a superblock; `None` if it is invalid.
pub(crate) fn layout(superblock: &[u8]) -> Option<Layout> {
    let (shift, cluster_shift) = (u32_at(superblock, 24), u32_at(superblock, 28));
    let (compatible, incompatible) = (u32_at(superblock, 92), u32_at(superblock, 96));
    let read_only = u32_at(superblock, 100);
    if shift > 6 || cluster_shift > 30 {
        return None;
    }
    let block_bytes = 1024u64 << shift;
    let has_big_clusters = read_only & BIG_CLUSTERS != 0;
    let blocks_a_cluster = match has_big_clusters {
        true => 1u64 << cluster_shift.checked_sub(shift)?,
        false => 1,
    };
    let blocks_a_group = u64::from(u32_at(superblock, 32));
    let clusters_a_group = blocks_a_group / blocks_a_cluster;
    if !(64..=block_bytes * 8).contains(&clusters_a_group) {
        return None;
    }
    let is_wide = incompatible & WIDE != 0;
    let blocks_high = if is_wide { u64::from(u32_at(superblock, 336)) } else { 0 };
    let descriptor_bytes = if is_wide { u64::from(u16_at(superblock, 254)) } else { 32 };
    let inodes_bytes =
        u64::from(u32_at(superblock, 40)) * u64::from(u16_at(superblock, 88).max(128));
    let has_meta_groups = incompatible & META_GROUPS != 0;
    let fits = descriptor_bytes.is_power_of_two() && (32..=1024).contains(&descriptor_bytes);
    fits.then(|| Layout {
        block_bytes,
        blocks: blocks_high << 32 | u64::from(u32_at(superblock, 4)),
        first_block: u64::from(u32_at(superblock, 20)),
        blocks_a_group,
        blocks_a_cluster,
        descriptor_bytes,
        first_meta_group: match has_meta_groups {
            true => u64::from(u32_at(superblock, 260)),
            false => u64::MAX,
        },
        reserved_descriptors: u64::from(u16_at(superblock, 206)),
        inode_table_blocks: inodes_bytes.div_ceil(block_bytes),
        has_unwritten_bitmaps: read_only & (DESCRIPTOR_CHECKSUMS | ALL_CHECKSUMS) != 0,
        is_sparse: read_only & SPARSE_BACKUPS != 0,
        two_backups: (compatible & TWO_BACKUPS != 0)
            .then(|| u64_at(superblock, 588))
            .map(|both| [both & 0xFFFF_FFFF, both >> 32]),
        inodes: u32_at(superblock, 0).into(),
        inodes_a_group: u32_at(superblock, 40).into(),
        inode_bytes: match u32_at(superblock, 76) {
            0 => 128,
            _ => u16_at(superblock, 88).into(),
        },
        has_types: incompatible & TYPES != 0,
    })
}

impl Layout {
    /// The first block of a group.
    pub(crate) fn start_of(&self, group: u64) -> u64 {
        self.first_block.saturating_add(group.saturating_mul(self.blocks_a_group))
    }

    /// The offset of a group's descriptor, in bytes.
    pub(crate) fn descriptor_at(&self, group: u64) -> u64 {
        let each = self.block_bytes / self.descriptor_bytes;
        let (index, inside) = (group / each, group % each * self.descriptor_bytes);
        let block = if index < self.first_meta_group {
            // After the superblock, which is not always in the first block.
            SUPERBLOCK_AT as u64 / self.block_bytes + 1 + index
        } else {
            let first = index * each;
            self.start_of(first).saturating_add(u64::from(self.has_backup(first)))
        };
        block.saturating_mul(self.block_bytes).saturating_add(inside)
    }

    /// Whether a group begins with a copy of the superblock.
    fn has_backup(&self, group: u64) -> bool {
        let is_power_of = |base: u64| {
            let mut power = base;
            while power < group {
                power *= base;
            }
            power == group
        };
        match self.two_backups {
            Some(groups) => group == 0 || groups.contains(&group),
            None => !self.is_sparse || group <= 1 || [3, 5, 7].into_iter().any(is_power_of),
        }
    }

    /// The blocks at the start of a group that hold a superblock copy and group descriptors.
    pub(crate) fn backup_blocks(&self, group: u64) -> u64 {
        let superblock = u64::from(self.has_backup(group));
        let each = self.block_bytes / self.descriptor_bytes;
        if group / each >= self.first_meta_group {
            // The first group of a meta block group has the descriptors; the second and last have
            // copies.
            let place = group % each;
            return superblock + u64::from(place < 2 || place + 1 == each);
        }
        let groups = (self.blocks - self.first_block).div_ceil(self.blocks_a_group);
        let descriptors = groups.div_ceil(each).min(self.first_meta_group);
        superblock * (1 + descriptors + self.reserved_descriptors)
    }
}
