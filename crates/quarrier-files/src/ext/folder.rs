//! Names in directory blocks, including deleted ones.

use super::Layout;
use super::inode::Inode;
use crate::entry::Kind;
use crate::part::{u16_at, u32_at};

const HEAD_BYTES: usize = 8;
/// The bytes that replace `.` and `..` in an inline directory.
const INLINE_HEAD_BYTES: usize = 4;
/// Bytes in the inode's block area; the rest is in an extended attribute.
const INLINE_BYTES: usize = 60;

/// A name in a folder.
#[derive(Clone, Copy)]
pub(super) struct Name<'b> {
    /// 0 if no longer known.
    pub(super) inode: u32,
    pub(super) name: &'b [u8],
    pub(super) kind: Option<Kind>,
    pub(super) is_deleted: bool,
}

/// Extracts names from blocks.
pub(super) struct Names<'v> {
    layout: &'v Layout,
    has_hash_tree: bool,
    is_first: bool,
}

impl<'v> Names<'v> {
    pub(super) fn new(layout: &'v Layout, inode: &Inode) -> Self {
        let has_hash_tree = inode.has_hash_tree();
        Names { layout, has_hash_tree, is_first: true }
    }

    /// Finds the names of an inline directory.
    pub(super) fn inline<'b>(&mut self, bytes: &'b [u8], found: &mut Vec<Name<'b>>) {
        let (first, rest) = bytes.split_at(bytes.len().min(INLINE_BYTES));
        self.entries(first.get(INLINE_HEAD_BYTES..).unwrap_or_default(), false, found);
        self.entries(rest, false, found);
    }

    /// Finds the names of a directory block.
    pub(super) fn block<'b>(&mut self, block: &'b [u8], deleted: bool, found: &mut Vec<Name<'b>>) {
        // Blocks of a hash tree look like deleted entries.
        let is_node = u32_at(block, 0) == 0 && usize::from(u16_at(block, 4)) == block.len();
        let is_root = std::mem::take(&mut self.is_first);
        let is_tree = self.has_hash_tree && (is_root || is_node);
        self.entries(block, deleted && !is_tree, found);
    }

    fn entries<'b>(&self, block: &'b [u8], deleted: bool, found: &mut Vec<Name<'b>>) {
        let mut at = 0;
        while let Some(entry) = block.get(at..).filter(|rest| rest.len() >= HEAD_BYTES) {
            let length = self.length(entry, block.len());
            if length < HEAD_BYTES || !length.is_multiple_of(4) || length > entry.len() {
                return;
            }
            let inode = u32_at(entry, 0);
            let used = match self.read(entry) {
                Some(name) => {
                    let used = (HEAD_BYTES + name.name.len()).next_multiple_of(4);
                    if used > length {
                        return;
                    }
                    let is_dots = name.name == b"." || name.name == b"..";
                    if (inode != 0 || (deleted && self.is_plausible(&name, length))) && !is_dots {
                        found.push(Name { is_deleted: inode == 0, ..name });
                    }
                    used
                }
                None => HEAD_BYTES,
            };
            if deleted {
                self.between(&entry[used..length], found);
            }
            at += length;
        }
    }

    /// Finds deleted names in the slack of an entry.
    fn between<'b>(&self, gap: &'b [u8], names: &mut Vec<Name<'b>>) {
        let mut at = 0;
        while let Some(entry) = gap.get(at..).filter(|rest| rest.len() > HEAD_BYTES) {
            let length = self.length(entry, usize::MAX);
            let found = self.read(entry).filter(|name| self.is_plausible(name, length));
            match found {
                Some(name) => {
                    let used = (HEAD_BYTES + name.name.len()).next_multiple_of(4);
                    if name.name != b"." && name.name != b".." {
                        names.push(Name { is_deleted: true, ..name });
                    }
                    at += used;
                }
                None => at += 4,
            }
        }
    }

    /// The length of an entry. 64 KiB does not fit into 16 bits and is encoded differently.
    fn length(&self, entry: &[u8], block_bytes: usize) -> usize {
        match usize::from(u16_at(entry, 4)) {
            0xFFFF | 0 if block_bytes == 1 << 16 => 1 << 16,
            length => length,
        }
    }

    fn read<'b>(&self, entry: &'b [u8]) -> Option<Name<'b>> {
        let inode = u32_at(entry, 0);
        let (length, kind) = match self.layout.has_types {
            true => (usize::from(entry[6]), kind(entry[7])),
            false => (usize::from(u16_at(entry, 6)), None),
        };
        let name = entry.get(HEAD_BYTES..HEAD_BYTES + length)?;
        (length > 0).then_some(Name { inode, name, kind, is_deleted: false })
    }

    /// Whether unused bytes look like a name.
    fn is_plausible(&self, name: &Name<'_>, length: usize) -> bool {
        u64::from(name.inode) <= self.layout.inodes
            && length.is_multiple_of(4)
            && length >= HEAD_BYTES + name.name.len()
            && name.name.len() <= 255
            && (!self.layout.has_types || name.kind.is_some())
            && !name.name.iter().any(|byte| matches!(byte, 0 | b'/'))
    }
}

fn kind(number: u8) -> Option<Kind> {
    match number {
        1 => Some(Kind::File),
        2 => Some(Kind::Folder),
        3..=6 => Some(Kind::Other),
        7 => Some(Kind::Link),
        _ => None,
    }
}
