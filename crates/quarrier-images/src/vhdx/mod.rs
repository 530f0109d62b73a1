//! VHDX: Hyper-V disks. All numbers are little-endian.
//!
//! ```text
//!  two headers ─→ log, replayed in memory where it is dirty
//!  two region tables ─→ metadata: sizes, the parent
//!                    └→ table ─→ block: not here │ zeros │ stored │ sector by sector, of the parent too
//! ```
//!
//! *\[MS-VHDX\]: Virtual Hard Disk v2 File Format*.

mod log;
mod metadata;

use std::io;
use std::sync::Arc;

use crc_fast::{CrcAlgorithm, checksum};
use quarrier_core::Result;
use quarrier_core::source::Source;

use crate::around::Around;
use crate::bytes::{u32_le, u64_le};
use crate::disk::{Disk, Layout, Place, Run};
use crate::fault::{damaged, invalid, refused, structure};
use crate::tables::Tables;
use metadata::Metadata;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const HEADERS_AT: [u64; 2] = [64 * KIB, 128 * KIB];
const REGIONS_AT: [u64; 2] = [192 * KIB, 256 * KIB];
const HEADER_BYTES: u64 = 4 * KIB;
const REGION_BYTES: u64 = 64 * KIB;
const REGIONS_MAX: usize = 2047;

const TABLE: [u8; 16] = [
    0x66, 0x77, 0xC2, 0x2D, 0x23, 0xF6, 0x00, 0x42, 0x9D, 0x64, 0x11, 0x5E, 0x9B, 0xFD, 0x4A, 0x08,
];
const METADATA: [u8; 16] = [
    0x06, 0xA2, 0x7C, 0x8B, 0x90, 0x47, 0x9A, 0x4B, 0xB8, 0xFE, 0x57, 0x5F, 0x05, 0x0F, 0x88, 0x6E,
];

/// Block states, in the lowest three bits of an entry.
const IS_NOT_HERE: u64 = 0;
const IS_STORED: u64 = 6;
const IS_PARTLY_STORED: u64 = 7;

/// Whether the CRC-32C at byte 4 is right, computed with the checksum field as zeros.
fn is_sealed(bytes: &[u8]) -> bool {
    let mut copy = bytes.to_vec();
    copy[4..8].fill(0);
    checksum(CrcAlgorithm::Crc32Iscsi, &copy) == u64::from(u32_le(bytes, 4))
}

/// The current header: the more recent of two copies.
struct Header {
    sequence: u64,
    data_write_id: [u8; 16],
    log_id: [u8; 16],
    log_at: u64,
    log_bytes: u64,
}

impl Header {
    fn read(file: &dyn Source) -> Result<Header> {
        let copy = |at: u64| {
            let bytes = structure(file, at, HEADER_BYTES, "a header").ok()?;
            let is_right =
                bytes.starts_with(b"head") && is_sealed(&bytes) && bytes[66..68] == [1, 0];
            is_right.then(|| Header {
                sequence: u64_le(&bytes, 8),
                data_write_id: id_at(&bytes, 32),
                log_id: id_at(&bytes, 48),
                log_bytes: u64::from(u32_le(&bytes, 68)),
                log_at: u64_le(&bytes, 72),
            })
        };
        let found = HEADERS_AT.into_iter().filter_map(copy).max_by_key(|header| header.sequence);
        found.ok_or_else(|| damaged(file, HEADERS_AT[0], "both of its headers are damaged"))
    }
}

fn id_at(bytes: &[u8], at: usize) -> [u8; 16] {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).copied().unwrap_or_default()
}

/// The location of a region.
#[derive(Debug, Clone, Copy)]
struct Region {
    at: u64,
    bytes: u64,
}

/// The regions of the block allocation table and of the metadata.
fn regions(file: &dyn Source) -> Result<(Region, Region)> {
    let copy = |at: u64| {
        let bytes = structure(file, at, REGION_BYTES, "a table of regions").ok()?;
        (bytes.starts_with(b"regi") && is_sealed(&bytes)).then_some(bytes)
    };
    let Some(bytes) = REGIONS_AT.into_iter().find_map(copy) else {
        return Err(damaged(file, REGIONS_AT[0], "both of its region tables are damaged"));
    };
    let (mut table, mut metadata) = (None, None);
    let count = (u32_le(&bytes, 8) as usize).min(REGIONS_MAX);
    for entry in bytes[16..].chunks_exact(32).take(count) {
        let region = Region { at: u64_le(entry, 16), bytes: u64::from(u32_le(entry, 24)) };
        let end = region.at.checked_add(region.bytes);
        if end.is_none_or(|end| end > file.length()) || !region.at.is_multiple_of(MIB) {
            return Err(damaged(file, region.at, "a region is at an impossible offset"));
        }
        match entry.first_chunk() {
            Some(&TABLE) => table = Some(region),
            Some(&METADATA) => metadata = Some(region),
            _ if u32_le(entry, 28) & 1 != 0 => {
                return Err(refused(file, "has an unknown region; convert it to raw"));
            }
            _ => {}
        }
    }
    let missing = || damaged(file, REGIONS_AT[0], "a region that every image has is missing");
    Ok((table.ok_or_else(missing)?, metadata.ok_or_else(missing)?))
}

/// Opens an image and its chain of parents.
pub(crate) fn open(file: &Arc<dyn Source>, around: &Around<'_>) -> Result<Disk<Vhdx>> {
    let header = Header::read(&**file)?;
    let file: Arc<dyn Source> = match header.log_id {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] => Arc::clone(file),
        log_id => Arc::new(log::replayed(file, log_id, header.log_at, header.log_bytes)?),
    };
    let (table, region) = regions(&*file)?;
    let metadata = Metadata::read(&*file, region.at, region.bytes)?;
    let ratio = (MIB * 8 * metadata.sector_bytes) / metadata.block_bytes;
    let blocks = metadata.length.div_ceil(metadata.block_bytes);
    let entries = match metadata.has_parent {
        true => blocks.div_ceil(ratio) * (ratio + 1),
        false => blocks + blocks.saturating_sub(1) / ratio,
    };
    if entries.saturating_mul(8) > table.bytes {
        return Err(damaged(&*file, table.at, "the table of blocks is shorter than the disk"));
    }
    let parent = match metadata.has_parent {
        true => Some(parent(&file, &metadata, around)?),
        false => None,
    };
    let layout = Vhdx {
        tables: Tables::new(Arc::clone(&file)),
        table_at: table.at,
        block_bytes: metadata.block_bytes,
        sector_bytes: metadata.sector_bytes,
        ratio,
        blocks,
        has_parent: parent.is_some(),
        file_bytes: file.length(),
    };
    Ok(Disk::stored(file.name(), metadata.length, layout, vec![Arc::clone(&file)]).over(parent))
}

/// Opens the parent, and checks that it was not modified since.
fn parent(
    file: &Arc<dyn Source>,
    metadata: &Metadata,
    around: &Around<'_>,
) -> Result<Arc<dyn Source>> {
    let mut first = None;
    for name in &metadata.parent_names {
        match around.file(&**file, name, "parent") {
            Ok(parent) => {
                let id = crate::bytes::guid(&Header::read(&*parent)?.data_write_id);
                if metadata.parent_ids.contains(&id) {
                    return around.disk(&**file, parent);
                }
                let reason = format!(
                    "is based on another disk than {}, or one that was modified since; put the one \
                     that it was made for beside it",
                    parent.name()
                );
                first.get_or_insert(refused(&**file, reason));
            }
            Err(error) => {
                first.get_or_insert(error);
            }
        }
    }
    Err(first.unwrap_or_else(|| refused(&**file, "is based on another disk, and does not name it")))
}

/// The locations of an image's blocks.
pub(crate) struct Vhdx {
    tables: Tables,
    table_at: u64,
    block_bytes: u64,
    sector_bytes: u64,
    /// Payload blocks for each sector bitmap block, whose entry follows theirs.
    ratio: u64,
    blocks: u64,
    has_parent: bool,
    file_bytes: u64,
}

impl Layout for Vhdx {
    fn run(&self, offset: u64) -> io::Result<Run> {
        let (index, within) = (offset / self.block_bytes, offset % self.block_bytes);
        let entries = self.tables.entries(self.entry_at(index), 8)?;
        // Up to the entry of a sector bitmap block.
        let left = (self.ratio - index % self.ratio).min(self.blocks - index) as usize;
        let mut entries = entries.chunks_exact(8).take(left).map(|entry| u64_le(entry, 0));
        let first = entries.next().unwrap_or(0);
        let at = first >> 20 << 20;
        let place = match first & 7 {
            IS_NOT_HERE => Place::Parent,
            // Undefined, zero, unmapped.
            1..=3 => Place::Zeros,
            IS_STORED if at < self.file_bytes => Place::Stored { file: 0, at: at + within },
            IS_PARTLY_STORED if at < self.file_bytes && self.has_parent => {
                return self.partly(index, at, within);
            }
            _ => {
                return Err(invalid(format!(
                    "block {index} is at an impossible offset, byte {at}"
                )));
            }
        };
        let step = if matches!(place, Place::Stored { .. }) { self.block_bytes } else { 0 };
        let mut next = first & !0xF_FFF8;
        let more = entries.take_while(|&entry| {
            next = next.wrapping_add(step);
            // Blocks of zeros are contiguous whatever their state.
            entry & !0xF_FFF8 == next || place == Place::Zeros && (1..=3).contains(&(entry & 7))
        });
        Ok(Run { bytes: (1 + more.count() as u64) * self.block_bytes - within, place })
    }
}

impl Vhdx {
    fn entry_at(&self, index: u64) -> u64 {
        self.table_at + (index + index / self.ratio) * 8
    }

    /// The run of sectors that are stored, or that belong to the parent, in a block at `at`.
    fn partly(&self, index: u64, at: u64, within: u64) -> io::Result<Run> {
        let chunk = index / self.ratio;
        let bits_entry = self.table_at + (chunk * (self.ratio + 1) + self.ratio) * 8;
        let bits = u64_le(&self.tables.entries(bits_entry, 8)?, 0);
        if bits & 7 != IS_STORED {
            return Err(invalid(format!("the sector bitmap of block {index} is missing")));
        }
        let sectors_each = self.block_bytes / self.sector_bytes;
        let first = index % self.ratio * sectors_each;
        let sector = first + within / self.sector_bytes;
        let bits = self.tables.entries((bits >> 20 << 20) + sector / 8, 1)?;
        let last = (first + sectors_each).min((sector / 8 + bits.len() as u64) * 8);
        let is_here = |at: u64| bits[(at / 8 - sector / 8) as usize] & (1 << (at % 8)) != 0;
        let same = (sector..last).take_while(|&at| is_here(at) == is_here(sector)).count() as u64;
        let bytes = (sector - first + same) * self.sector_bytes - within;
        let place = match is_here(sector) {
            true => Place::Stored { file: 0, at: at + within },
            false => Place::Parent,
        };
        Ok(Run { bytes, place })
    }
}
