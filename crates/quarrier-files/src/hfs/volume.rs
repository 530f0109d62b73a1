//! The volume header, and forks: the bytes of files.

use crate::error::Result;
use crate::part::{BOOT_BYTES, Part, be16, be32, be64};

const HEADER_AT: usize = 1024;
const JOURNALED: u32 = 0x2000;
const PLUS: &[u8] = b"H+\0\x04";
const CASE_SENSITIVE: &[u8] = b"HX\0\x05";
/// Number of extents stored in the fork data itself.
pub(super) const EXTENTS: usize = 8;

/// An extent in blocks: the first one, and their number.
pub(super) type Blocks = (u32, u32);

/// Fork data, as volume header and catalog records store it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fork {
    /// Its length in bytes.
    pub(crate) size: u64,
    /// Its total blocks, including those in the overflow file.
    pub(crate) blocks: u32,
    /// Its first extents; empty ones are last.
    pub(crate) extents: [Blocks; EXTENTS],
}

impl Fork {
    /// Parses 80 bytes of fork data.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Fork {
            size: be64(bytes, 0),
            blocks: be32(bytes, 12),
            extents: extents(bytes.get(16..).unwrap_or_default()),
        }
    }
}

/// Parses the extents in 64 bytes.
pub(super) fn extents(bytes: &[u8]) -> [Blocks; EXTENTS] {
    std::array::from_fn(|index| (be32(bytes, index * 8), be32(bytes, index * 8 + 4)))
}

/// The layout of a volume.
#[derive(Debug, Clone)]
pub(crate) struct Volume {
    pub(crate) block_bytes: u64,
    /// The number of blocks, capped by the size of the part.
    pub(crate) blocks: u64,
    /// The block that has the location of the journal, if there is one.
    pub(super) journal_info: Option<u32>,
    /// The allocation file: a bitmap of blocks.
    pub(crate) allocation: Fork,
    /// The extents overflow file.
    pub(super) overflow: Fork,
    /// The catalog file.
    pub(super) catalog: Fork,
    /// The attributes file.
    pub(super) attributes: Fork,
}

impl Volume {
    /// Whether a fork can be one of this volume: its extents lie in it, and have room for its bytes.
    pub(super) fn is_plausible(&self, fork: &Fork) -> bool {
        let are_inside = fork
            .extents
            .iter()
            .all(|&(start, count)| u64::from(start) + u64::from(count) <= self.blocks);
        let listed: u64 = fork.extents.iter().map(|extent| u64::from(extent.1)).sum();
        let used = fork.extents.iter().take_while(|extent| extent.1 > 0).count();
        let is_whole = listed == u64::from(fork.blocks);
        // A full list continues in the overflow file.
        let continues = used == EXTENTS && listed < u64::from(fork.blocks);
        let has_room = fork.size <= u64::from(fork.blocks).saturating_mul(self.block_bytes);
        let is_ordered = fork.extents[used..].iter().all(|extent| *extent == (0, 0));
        are_inside && has_room && is_ordered && (is_whole || continues)
    }
}

/// The layout of a volume that begins with `boot`; `None` if it is not HFS+.
///
/// # Errors
/// [`Error::FileSystem`](crate::Error::FileSystem) if the header has impossible values.
pub(crate) fn volume(part: &Part<'_>, boot: &[u8; BOOT_BYTES]) -> Result<Option<Volume>> {
    let header = &boot[HEADER_AT..];
    if !header.starts_with(PLUS) && !header.starts_with(CASE_SENSITIVE) {
        return Ok(None);
    }
    let block_bytes = u64::from(be32(header, 40));
    if !block_bytes.is_power_of_two() || !(512..=1 << 20).contains(&block_bytes) {
        return Err(part.refused(HEADER_AT as u64, "an HFS+ volume header with impossible values"));
    }
    Ok(Some(Volume {
        block_bytes,
        blocks: u64::from(be32(header, 44)).min(part.length() / block_bytes),
        journal_info: (be32(header, 4) & JOURNALED != 0).then(|| be32(header, 12)),
        allocation: Fork::of(&header[112..]),
        overflow: Fork::of(&header[192..]),
        catalog: Fork::of(&header[272..]),
        attributes: Fork::of(&header[352..]),
    }))
}

/// The UTF-16 units of a big-endian string that starts with its length.
pub(super) fn name_units(bytes: &[u8]) -> Option<Vec<u16>> {
    let units = bytes.get(2..2 + usize::from(be16(bytes, 0)) * 2)?;
    Some(units.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect())
}
