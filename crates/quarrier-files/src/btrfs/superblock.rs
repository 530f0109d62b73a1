//! The Btrfs superblock and its copies at fixed offsets.

use crate::error::Result;
use crate::part::{Part, u16_at, u32_at, u64_at};

/// Offsets of the superblock and its copies.
pub(crate) const PLACES: [u64; 3] = [64 << 10, 64 << 20, 256 << 30];
const BYTES: usize = 4096;
const MAGIC: &[u8] = b"_BHRfS_M";
const MAGIC_AT: usize = 64;
const CRC32C: u16 = 0;
const CHECKSUM_BYTES: usize = 32;
/// Incompatible features: extent tree v2 and the RAID stripe tree.
const FORMS_UNKNOWN: u64 = 1 << 13 | 1 << 14;
const LEVEL_MAX: u8 = 7;
const CHUNKS_AT: usize = 811;
const CHUNKS_BYTES_MAX: usize = 2048;

/// The root of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Root {
    /// The logical address of its node.
    pub(super) at: u64,
    /// The number of levels below it.
    pub(super) level: u8,
}

/// The superblock.
#[derive(Debug, Clone)]
pub(crate) struct Superblock {
    /// The root tree, which lists all other trees.
    pub(super) trees: Root,
    pub(super) chunks: Root,
    node_bytes: u32,
    pub(super) sector_bytes: u32,
    /// The bytes of the device that the file system uses.
    pub(crate) device_bytes: u64,
    pub(super) has_crc32c: bool,
    /// The bootstrap chunks (keys and items) needed to read the chunk tree.
    pub(super) first_chunks: Box<[u8]>,
}

impl Superblock {
    /// The node size.
    pub(crate) fn node_bytes(&self) -> u64 {
        self.node_bytes.into()
    }
}

/// The superblock of the volume in `part`; `None` if it is not Btrfs. Falls back to a copy if the first
/// one is damaged.
///
/// # Errors
/// [`Error::FileSystem`](crate::Error::FileSystem) if no copy is valid, or if the volume spans several
/// devices or has an unsupported feature.
pub(crate) fn superblock(part: &Part<'_>) -> Result<Option<Superblock>> {
    let mut block = vec![0; BYTES];
    if part.length() < PLACES[0] + BYTES as u64 {
        return Ok(None);
    }
    part.read(PLACES[0], &mut block, "a superblock")?;
    if !block[MAGIC_AT..].starts_with(MAGIC) {
        return Ok(None);
    }
    for at in PLACES.into_iter().take_while(|at| at + BYTES as u64 <= part.length()) {
        let is_read = at == PLACES[0] || part.read(at, &mut block, "a superblock").is_ok();
        if is_read && is_sound(&block, at) {
            return parsed(part, at, &block).map(Some);
        }
    }
    Err(part.refused(PLACES[0], "a Btrfs superblock with impossible values"))
}

fn is_sound(block: &[u8], at: u64) -> bool {
    let node_bytes = u32_at(block, 148);
    block[MAGIC_AT..].starts_with(MAGIC)
        && u64_at(block, 48) == at
        && node_bytes.is_power_of_two()
        && (4 << 10..=64 << 10).contains(&node_bytes)
        && block[198].max(block[199]) <= LEVEL_MAX
        && u32_at(block, 160) as usize <= CHUNKS_BYTES_MAX
        && (u16_at(block, 196) != CRC32C || has_checksum(block))
}

fn parsed(part: &Part<'_>, at: u64, block: &[u8]) -> Result<Superblock> {
    if u64_at(block, 136) != 1 {
        return Err(part.refused(at, "a Btrfs volume on several devices"));
    }
    if u64_at(block, 188) & FORMS_UNKNOWN != 0 {
        return Err(part.refused(at, "a Btrfs volume with an unsupported feature"));
    }
    let chunks_end = CHUNKS_AT + u32_at(block, 160) as usize;
    Ok(Superblock {
        trees: Root { at: u64_at(block, 80), level: block[198] },
        chunks: Root { at: u64_at(block, 88), level: block[199] },
        node_bytes: u32_at(block, 148),
        sector_bytes: u32_at(block, 144),
        device_bytes: u64_at(block, 112).min(part.length()),
        has_crc32c: u16_at(block, 196) == CRC32C,
        first_chunks: block[CHUNKS_AT..chunks_end].into(),
    })
}

/// Whether the CRC-32C at the start of a block is right.
pub(super) fn has_checksum(block: &[u8]) -> bool {
    let rest = block.get(CHECKSUM_BYTES..).unwrap_or_default();
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, rest);
    u64::from(u32_at(block, 0)) == sum
}
