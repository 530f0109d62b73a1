//! Inodes.

use std::ops::Range;

use super::Layout;
use crate::cache::Cache;
use crate::entry::{Access, Kind, Times};
use crate::error::Result;
use crate::part::{Part, u16_at, u32_at};

/// The flag of a group whose inode table was never used.
const INODES_UNUSED: u16 = 0x1;
const IN_EXTENTS: u32 = 0x8_0000;
const INLINE: u32 = 0x1000_0000;
const HASH_TREE: u32 = 0x1000;
/// Size of the original inode, the minimum.
const OLD_BYTES: usize = 128;
const BYTES_MAX: u64 = 4096;

/// An inode.
#[derive(Debug, Clone)]
pub(super) struct Inode {
    pub(super) number: u32,
    mode: u16,
    links: u16,
    deleted_at: u32,
    flags: u32,
    pub(super) size: u64,
    pub(super) times: Times,
    user: u32,
    group: u32,
    /// The block area: block pointers, an extent tree root, or inline data.
    pub(super) blocks: [u8; 60],
    /// The rest of the inline data, from the extended attribute.
    pub(super) more: Box<[u8]>,
}

impl Inode {
    pub(super) fn kind(&self) -> Kind {
        match self.mode >> 12 {
            8 => Kind::File,
            4 => Kind::Folder,
            10 => Kind::Link,
            _ => Kind::Other,
        }
    }

    pub(super) fn access(&self) -> Access {
        Access { mode: Some(self.mode), user: self.user, group: self.group }
    }

    /// Whether the inode was used once and is now free.
    pub(super) fn is_deleted(&self) -> bool {
        self.mode != 0 && (self.links == 0 || self.deleted_at != 0)
    }

    pub(super) fn is_in_extents(&self) -> bool {
        self.flags & IN_EXTENTS != 0
    }

    pub(super) fn has_hash_tree(&self) -> bool {
        self.flags & HASH_TREE != 0
    }

    /// Whether the data is inline.
    pub(super) fn is_inline(&self) -> bool {
        let is_short_link = self.kind() == Kind::Link && self.size < 60 && !self.is_in_extents();
        self.flags & INLINE != 0 || is_short_link
    }
}

/// The inodes of a volume.
pub(super) struct Inodes<'v, 'p, 's> {
    part: &'p Part<'s>,
    layout: &'v Layout,
    cache: Cache<'p, 's>,
    /// The group that was looked up last, and its descriptor.
    last: Option<(u64, Group)>,
}

/// What the descriptor of a group says.
#[derive(Debug, Clone, Copy)]
struct Group {
    /// The first block of the inode table.
    table: u64,
    flags: u16,
    /// The number of inodes never used.
    unused: u64,
}

impl<'v, 'p, 's> Inodes<'v, 'p, 's> {
    pub(super) fn new(part: &'p Part<'s>, layout: &'v Layout) -> Self {
        Inodes { part, layout, cache: Cache::new(part), last: None }
    }

    /// Reads an inode by its number, from 1.
    pub(super) fn read(&mut self, number: u32) -> Result<Inode> {
        let index = u64::from(number).checked_sub(1).filter(|index| *index < self.layout.inodes);
        let index = index.ok_or_else(|| self.part.refused(0, "an invalid inode number"))?;
        let group = index / self.layout.inodes_a_group;
        let Group { table, .. } = self.group(group)?;
        let each = self.layout.inode_bytes;
        let inside = index % self.layout.inodes_a_group * each;
        let at = table.saturating_mul(self.layout.block_bytes).saturating_add(inside);
        let length = each.min(BYTES_MAX) as usize;
        self.cache.with(at, length, "an inode", |bytes| inode(number, bytes))
    }

    /// The numbers of a group's inodes that were ever used.
    pub(super) fn used(&mut self, group: u64) -> Result<Range<u32>> {
        let Group { flags, unused, .. } = self.group(group)?;
        let first = group * self.layout.inodes_a_group;
        let mut count = self.layout.inodes_a_group.min(self.layout.inodes - first);
        if self.layout.has_unwritten_bitmaps {
            let is_used = flags & INODES_UNUSED == 0;
            count = if is_used { count.saturating_sub(unused) } else { 0 };
        }
        Ok((first + 1) as u32..(first + 1 + count) as u32)
    }

    fn group(&mut self, group: u64) -> Result<Group> {
        if let Some((number, last)) = self.last
            && number == group
        {
            return Ok(last);
        }
        let mut descriptor = [0; 64];
        let known = descriptor.len().min(self.layout.descriptor_bytes as usize);
        let at = self.layout.descriptor_at(group);
        self.cache.read(at, &mut descriptor[..known], "an ext group descriptor")?;
        let table = u64::from(u32_at(&descriptor, 40)) << 32 | u64::from(u32_at(&descriptor, 8));
        let unused = u64::from(u16_at(&descriptor, 50)) << 16 | u64::from(u16_at(&descriptor, 28));
        let found = Group { table, flags: u16_at(&descriptor, 18), unused };
        self.last = Some((group, found));
        Ok(found)
    }
}

fn inode(number: u32, bytes: &[u8]) -> Inode {
    let mut blocks = [0; 60];
    blocks.copy_from_slice(&bytes[40..100]);
    let mode = u16_at(bytes, 0);
    let high = if matches!(mode >> 12, 8 | 4) { u64::from(u32_at(bytes, 108)) } else { 0 };
    let flags = u32_at(bytes, 32);
    let extra = match bytes.len() > OLD_BYTES {
        true => usize::from(u16_at(bytes, OLD_BYTES)).min(bytes.len() - OLD_BYTES),
        false => 0,
    };
    let more = match flags & INLINE != 0 {
        true => inline_more(bytes, OLD_BYTES + extra).unwrap_or_default(),
        false => Box::default(),
    };
    Inode {
        number,
        mode,
        links: u16_at(bytes, 26),
        deleted_at: u32_at(bytes, 20),
        flags,
        size: high << 32 | u64::from(u32_at(bytes, 4)),
        times: times(bytes, OLD_BYTES + extra),
        user: u32::from(u16_at(bytes, 120)) << 16 | u32::from(u16_at(bytes, 2)),
        group: u32::from(u16_at(bytes, 122)) << 16 | u32::from(u16_at(bytes, 24)),
        blocks,
        more,
    }
}

/// The timestamps; those with extra precision only if they end before `end`.
fn times(bytes: &[u8], end: usize) -> Times {
    let at = |place: usize, extra: usize| {
        let seconds = u32_at(bytes, place);
        if seconds == 0 && place != 144 || place + 4 > end.max(OLD_BYTES) {
            return None;
        }
        let extra = if extra + 4 <= end { u32_at(bytes, extra) } else { 0 };
        let seconds = i64::from(seconds.cast_signed()) + (i64::from(extra & 3) << 32);
        let nanoseconds = i64::from(extra >> 2).min(999_999_999);
        seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
    };
    Times {
        accessed: at(8, 140),
        changed: at(12, 132),
        modified: at(16, 136),
        created: if end >= 148 { at(144, 148).filter(|at| *at != 0) } else { None },
    }
}

/// The inline data after the first 60 bytes: the attribute `system.data` in the inode.
fn inline_more(bytes: &[u8], from: usize) -> Option<Box<[u8]>> {
    const MAGIC: u32 = 0xEA02_0000;
    const SYSTEM: u8 = 7;
    if u32_at(bytes, from) != MAGIC {
        return None;
    }
    let list = bytes.get(from + 4..)?;
    let mut at = 0;
    loop {
        let entry = list.get(at..at + 16)?;
        let name_bytes = usize::from(entry[0]);
        if name_bytes == 0 && entry[1] == 0 {
            return None;
        }
        let name = list.get(at + 16..at + 16 + name_bytes)?;
        if entry[1] == SYSTEM && name == b"data" {
            let (start, length) = (usize::from(u16_at(entry, 2)), u32_at(entry, 8) as usize);
            return list.get(start..)?.get(..length).map(Into::into);
        }
        at += (16 + name_bytes).next_multiple_of(4);
    }
}
