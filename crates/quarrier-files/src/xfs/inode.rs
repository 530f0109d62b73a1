//! Inodes of XFS.

use super::layout::Layout;
use crate::cache::Cache;
use crate::entry::{Access, Kind, Times};
use crate::error::Result;
use crate::part::{Part, be16, be32, be64};

const MAGIC: u16 = 0x494E;
const VERSION_NEW: u8 = 3;
const CORE_BYTES_OLD: usize = 100;
const CORE_BYTES_NEW: usize = 176;
const REALTIME: u16 = 0x1;
const BIG_TIMES: u64 = 0x8;
const BIG_COUNTS: u64 = 0x10;
/// Timestamps with nanosecond counters (bigtime) begin in 1901.
const BIG_TIMES_FROM_SECONDS: i128 = 1 << 31;

/// How an inode stores its data fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Inline in the inode.
    Local,
    /// An extent list.
    Extents,
    /// An extent tree.
    Tree,
    /// A device, or an unknown format.
    Other,
}

/// An inode.
#[derive(Debug, Clone)]
pub(super) struct Inode {
    pub(super) number: u64,
    mode: u16,
    pub(super) form: Form,
    pub(super) size: u64,
    /// The number of extents in the list.
    pub(super) extents: u64,
    pub(super) is_real_time: bool,
    pub(super) times: Times,
    pub(super) access: Access,
    /// The data fork: inline bytes, the extent list, or the tree root.
    pub(super) fork: Box<[u8]>,
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

    /// Whether it is allocated.
    pub(super) fn is_used(&self) -> bool {
        self.mode != 0
    }
}

/// The inodes of a volume.
pub(super) struct Inodes<'v, 'p, 's> {
    part: &'p Part<'s>,
    layout: &'v Layout,
    cache: Cache<'p, 's>,
}

impl<'v, 'p, 's> Inodes<'v, 'p, 's> {
    pub(super) fn new(part: &'p Part<'s>, layout: &'v Layout) -> Self {
        Inodes { part, layout, cache: Cache::new(part) }
    }

    /// Reads an inode by its number.
    pub(super) fn read(&mut self, number: u64) -> Result<Inode> {
        let at = self.layout.inode_at(number);
        let at = at.ok_or_else(|| self.part.refused(0, "an invalid inode number"))?;
        let mut bytes = vec![0; self.layout.inode_bytes as usize];
        self.cache.read(at, &mut bytes, "an inode")?;
        inode(number, &bytes).ok_or_else(|| self.part.refused(at, "a damaged XFS inode"))
    }
}

fn inode(number: u64, bytes: &[u8]) -> Option<Inode> {
    let version = bytes[4];
    let is_new = version == VERSION_NEW;
    if be16(bytes, 0) != MAGIC || !(1..=VERSION_NEW).contains(&version) {
        return None;
    }
    let core = if is_new { CORE_BYTES_NEW } else { CORE_BYTES_OLD };
    let flags = if is_new { be64(bytes, 120) } else { 0 };
    let of_attributes = usize::from(bytes[82]) * 8;
    let end = match of_attributes {
        0 => bytes.len(),
        fork_bytes => (core + fork_bytes).min(bytes.len()),
    };
    let time = |at: usize| time(bytes, at, flags & BIG_TIMES != 0);
    Some(Inode {
        number,
        mode: be16(bytes, 2),
        form: match bytes[5] {
            1 => Form::Local,
            2 => Form::Extents,
            3 => Form::Tree,
            _ => Form::Other,
        },
        size: be64(bytes, 56),
        extents: match flags & BIG_COUNTS != 0 {
            true => be64(bytes, 24),
            false => be32(bytes, 76).into(),
        },
        is_real_time: be16(bytes, 90) & REALTIME != 0,
        times: Times {
            accessed: time(32),
            modified: time(40),
            changed: time(48),
            created: if is_new { time(144) } else { None },
        },
        access: Access {
            // Deletion clears it.
            mode: Some(be16(bytes, 2)).filter(|mode| *mode != 0),
            user: be32(bytes, 8),
            group: be32(bytes, 12),
        },
        fork: bytes.get(core..end)?.into(),
    })
}

/// Converts a timestamp to nanoseconds since 1970: seconds and nanoseconds, or one nanosecond counter.
fn time(bytes: &[u8], at: usize, is_big: bool) -> Option<i64> {
    if is_big {
        let since = i128::from(be64(bytes, at)) - BIG_TIMES_FROM_SECONDS * 1_000_000_000;
        return i64::try_from(since).ok();
    }
    let seconds = i64::from(be32(bytes, at).cast_signed());
    let nanoseconds = i64::from(be32(bytes, at + 4).min(999_999_999));
    seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}
