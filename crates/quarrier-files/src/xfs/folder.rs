//! Directory names: in an inode, or in blocks.

use super::layout::Layout;
use crate::part::{be16, be32, be64};

const BLOCK_OLD: &[u8] = b"XD2B";
const BLOCK_NEW: &[u8] = b"XDB3";
const DATA_OLD: &[u8] = b"XD2D";
const DATA_NEW: &[u8] = b"XDD3";
const HEAD_BYTES_OLD: usize = 16;
const HEAD_BYTES_NEW: usize = 64;
/// The tag of an unused region.
const FREE: u16 = 0xFFFF;

/// A name in a folder.
pub(super) struct Name {
    pub(super) inode: u64,
    pub(super) name: Vec<u8>,
    /// Whether it is deleted. The upper half of its inode number may then be missing.
    pub(super) is_deleted: bool,
}

/// The names of an inline directory; false if they are damaged.
pub(super) fn of_inode(layout: &Layout, fork: &[u8], found: &mut Vec<Name>) -> bool {
    let [count, wide, ..] = fork else { return false };
    let number_bytes = if *wide > 0 { 8 } else { 4 };
    let mut at = 2 + number_bytes;
    for _ in 0..(*count).max(*wide) {
        let Some(&name_bytes) = fork.get(at) else { return false };
        let name_at = at + 3;
        let number_at = name_at + usize::from(name_bytes) + usize::from(layout.has_types);
        let Some(number) = fork.get(number_at..number_at + number_bytes) else { return false };
        let inode = match number_bytes {
            8 => be64(number, 0),
            _ => be32(number, 0).into(),
        };
        let name = fork[name_at..name_at + usize::from(name_bytes)].to_vec();
        found.push(Name { inode, name, is_deleted: false });
        at = number_at + number_bytes;
    }
    true
}

/// The names in a directory block, with deleted ones if requested; false if it is damaged.
pub(super) fn of_block(
    layout: &Layout,
    block: &[u8],
    deleted: bool,
    found: &mut Vec<Name>,
) -> bool {
    let (magic_block, magic_data, head) = match layout.is_new {
        true => (BLOCK_NEW, DATA_NEW, HEAD_BYTES_NEW),
        false => (BLOCK_OLD, DATA_OLD, HEAD_BYTES_OLD),
    };
    let end = if block.starts_with(magic_block) {
        // The leaf entries and their count are at the end of the block.
        let hashes = be32(block, block.len() - 8) as usize;
        match (block.len() - 8).checked_sub(hashes.saturating_mul(8)) {
            Some(end) if end >= head => end,
            _ => return false,
        }
    } else if block.starts_with(magic_data) {
        block.len()
    } else {
        return false;
    };
    let mut at = head;
    while at + 8 <= end {
        let entry = &block[at..end];
        if be16(entry, 0) == FREE {
            match usize::from(be16(entry, 2)) {
                bytes if bytes >= 8 && bytes.is_multiple_of(8) => {
                    if deleted {
                        let gap = entry.get(..bytes).unwrap_or(entry);
                        deleted_names(layout, gap, at, found);
                    }
                    at += bytes;
                }
                _ => return false,
            }
            continue;
        }
        let name_bytes = entry.get(8).map_or(0, |bytes| usize::from(*bytes));
        let Some(name) = entry.get(9..9 + name_bytes).filter(|name| !name.is_empty()) else {
            return false;
        };
        if name != b"." && name != b".." {
            found.push(Name { inode: be64(entry, 0), name: name.to_vec(), is_deleted: false });
        }
        at += (8 + 1 + name_bytes + usize::from(layout.has_types) + 2).next_multiple_of(8);
    }
    true
}

/// The names left in an unused region, which begins at an offset of its block. The first four bytes of
/// a deleted entry are overwritten, unless it was merged into free space before it.
fn deleted_names(layout: &Layout, gap: &[u8], gap_at: usize, found: &mut Vec<Name>) {
    let mut at = 0;
    while let Some(entry) = gap.get(at..).filter(|entry| entry.len() > 9) {
        let name_bytes = usize::from(entry[8]);
        let bytes = (8 + 1 + name_bytes + usize::from(layout.has_types) + 2).next_multiple_of(8);
        // Each entry ends with a tag: its own offset.
        let Some(tag) = entry.get(bytes - 2..bytes) else { return };
        let name = &entry[9..9 + name_bytes];
        let is_name = !name.is_empty() && !name.contains(&0) && !name.contains(&b'/');
        if !is_name || usize::from(be16(tag, 0)) != gap_at + at {
            return;
        }
        let inode = match be16(entry, 0) {
            FREE => be32(entry, 4).into(),
            _ => be64(entry, 0),
        };
        if name != b"." && name != b".." {
            found.push(Name { inode, name: name.to_vec(), is_deleted: true });
        }
        at += bytes;
    }
}
