//! VHD: Virtual PC and Hyper-V disks. All numbers are big-endian.
//!
//! ```text
//!  fixed         the disk ················································ footer
//!  dynamic       footer  header  table ─→ block: a bit for each sector, the sectors …  footer
//!  differencing  the same, and the sectors whose bit is 0 are the parent's
//! ```

use std::io;
use std::sync::Arc;

use quarrier_core::Result;
use quarrier_core::source::Source;

use crate::around::Around;
use crate::bytes::{guid, u16_be, u16_le, u32_be, u64_be, utf16};
use crate::disk::{Disk, Layout, Place, Run, SECTOR_BYTES};
use crate::fault::{damaged, invalid, refused, structure};
use crate::tables::Tables;

const FOOTER_BYTES: u64 = 512;
const HEADER_BYTES: u64 = 1024;
const IS_FREE: u32 = u32::MAX;
const BLOCK_BYTES_MAX: u64 = 256 << 20;

const FIXED: u32 = 2;
const DYNAMIC: u32 = 3;
const DIFFERENCING: u32 = 4;

/// Whether a file of this length is probably a disk with a footer: before the last sector, there are whole
/// MiB, or whole cylinders of the geometries that writers choose. Raw disks hardly ever have such a length.
pub(crate) fn is_length_with_footer(length: u64) -> bool {
    const CYLINDERS: [u64; 5] = [(1 << 20) / SECTOR_BYTES, 17 * 16, 31 * 16, 63 * 16, 255 * 16];
    let sectors =
        length.checked_sub(FOOTER_BYTES).filter(|&disk| disk.is_multiple_of(SECTOR_BYTES));
    sectors.is_some_and(|disk| {
        let sectors = disk / SECTOR_BYTES;
        sectors > 0 && CYLINDERS.iter().any(|&cylinder| sectors.is_multiple_of(cylinder))
    })
}

/// The footer in the last sector, which has a copy at the start.
struct Footer {
    length: u64,
    kind: u32,
    header_at: u64,
    id: [u8; 16],
}

impl Footer {
    /// Reads the footer, or its copy if it is damaged.
    fn read(file: &dyn Source) -> Result<Footer> {
        let last = file.length().saturating_sub(FOOTER_BYTES);
        // Early writers omitted the last byte.
        let places = [last, last + 1, 0];
        for at in places {
            let bytes = FOOTER_BYTES.min(file.length().saturating_sub(at));
            let mut footer = structure(file, at, bytes, "the footer")?;
            footer.resize(FOOTER_BYTES as usize, 0);
            if footer.starts_with(b"conectix") && is_sealed(&footer, 64) {
                let mut id = [0; 16];
                id.copy_from_slice(&footer[68..84]);
                let (length, kind, header_at) =
                    (u64_be(&footer, 48), u32_be(&footer, 60), u64_be(&footer, 16));
                return Ok(Footer { length, kind, header_at, id });
            }
        }
        Err(damaged(file, last, "the footer is missing, or its checksum is wrong"))
    }
}

/// Whether the checksum at `at` is right: the inverted sum of all other bytes.
fn is_sealed(bytes: &[u8], at: usize) -> bool {
    let sum = |bytes: &[u8]| bytes.iter().fold(0u32, |sum, &byte| sum.wrapping_add(byte.into()));
    !(sum(&bytes[..at]).wrapping_add(sum(&bytes[at + 4..]))) == u32_be(bytes, at)
}

/// Opens an image and its chain of parents.
pub(crate) fn open(file: &Arc<dyn Source>, around: &Around<'_>) -> Result<Disk<Vhd>> {
    let footer = Footer::read(&**file)?;
    if footer.length > i64::MAX as u64 {
        return Err(damaged(
            &**file,
            48,
            format!("the disk has an impossible size of {} bytes", footer.length),
        ));
    }
    let files = vec![Arc::clone(file)];
    match footer.kind {
        FIXED => {
            if footer.length > file.length() {
                let end = file.length();
                return Err(damaged(&**file, end, "it is shorter than its disk"));
            }
            Ok(Disk::stored(file.name(), footer.length, Vhd::Fixed, files))
        }
        DYNAMIC | DIFFERENCING => {
            let header = Header::read(&**file, &footer)?;
            let parent = match footer.kind {
                DIFFERENCING => Some(header.parent(file, around)?),
                _ => None,
            };
            let blocks = Blocks {
                tables: Tables::new(Arc::clone(file)),
                table_at: header.table_at,
                block_bytes: header.block_bytes,
                blocks: header.blocks,
                has_parent: parent.is_some(),
                file_bytes: file.length(),
            };
            let layout = Vhd::Blocks(Box::new(blocks));
            Ok(Disk::stored(file.name(), footer.length, layout, files).over(parent))
        }
        other => Err(refused(&**file, format!("is a VHD image of an unknown type ({other})"))),
    }
}

/// The header of a dynamic disk.
struct Header {
    table_at: u64,
    blocks: u64,
    block_bytes: u64,
    parent_id: [u8; 16],
    parent_names: Vec<String>,
}

impl Header {
    fn read(file: &dyn Source, footer: &Footer) -> Result<Header> {
        let at = footer.header_at;
        let header = structure(file, at, HEADER_BYTES, "the header of a dynamic disk")?;
        if !header.starts_with(b"cxsparse") || !is_sealed(&header, 36) {
            return Err(damaged(
                file,
                at,
                "the header of the dynamic disk, or its checksum, is wrong",
            ));
        }
        let (table_at, blocks) = (u64_be(&header, 16), u64::from(u32_be(&header, 28)));
        let block_bytes = u64::from(u32_be(&header, 32));
        let is_block = block_bytes.is_power_of_two()
            && (SECTOR_BYTES..=BLOCK_BYTES_MAX).contains(&block_bytes);
        if !is_block || !table_at.is_multiple_of(4) || footer.length.div_ceil(block_bytes) > blocks
        {
            return Err(damaged(file, at, "the header of the dynamic disk has impossible values"));
        }
        if table_at.checked_add(blocks * 4).is_none_or(|end| end > file.length()) {
            return Err(damaged(file, at, "the table of blocks lies beyond the end of the file"));
        }
        let mut parent_id = [0; 16];
        parent_id.copy_from_slice(&header[40..56]);
        let mut parent_names = Vec::new();
        for locator in header[576..576 + 8 * 24].chunks_exact(24) {
            let (bytes, at) = (u64::from(u32_be(locator, 8)), u64_be(locator, 16));
            let unit = match &locator[..4] {
                b"W2ru" | b"W2ku" => u16_le,
                _ => continue,
            };
            if bytes <= 4096
                && let Ok(name) = structure(file, at, bytes, "the name of the parent")
            {
                parent_names.push(utf16(&name, unit));
            }
        }
        parent_names.push(utf16(&header[64..576], u16_be));
        Ok(Header { table_at, blocks, block_bytes, parent_id, parent_names })
    }

    /// Opens the parent, and checks that it is the one this disk was made for.
    fn parent(&self, file: &Arc<dyn Source>, around: &Around<'_>) -> Result<Arc<dyn Source>> {
        let mut first = None;
        for name in self.parent_names.iter().filter(|name| !name.is_empty()) {
            match around.file(&**file, name, "parent") {
                Ok(parent) => {
                    let id = Footer::read(&*parent)?.id;
                    if id == self.parent_id {
                        return around.disk(&**file, parent);
                    }
                    let reason = format!(
                        "is based on the disk {}, and {} is another one; put the right one beside it",
                        guid(&self.parent_id),
                        parent.name()
                    );
                    first.get_or_insert(refused(&**file, reason));
                }
                Err(error) => {
                    first.get_or_insert(error);
                }
            }
        }
        Err(first
            .unwrap_or_else(|| refused(&**file, "is based on another disk, and does not name it")))
    }
}

/// The locations of an image's bytes.
pub(crate) enum Vhd {
    Fixed,
    Blocks(Box<Blocks>),
}

pub(crate) struct Blocks {
    tables: Tables,
    table_at: u64,
    block_bytes: u64,
    blocks: u64,
    has_parent: bool,
    file_bytes: u64,
}

impl Layout for Vhd {
    fn run(&self, offset: u64) -> io::Result<Run> {
        match self {
            Vhd::Fixed => {
                Ok(Run { bytes: u64::MAX - offset, place: Place::Stored { file: 0, at: offset } })
            }
            Vhd::Blocks(blocks) => blocks.run(offset),
        }
    }
}

impl Blocks {
    fn run(&self, offset: u64) -> io::Result<Run> {
        let (index, within) = (offset / self.block_bytes, offset % self.block_bytes);
        let entries = self.tables.entries(self.table_at + index * 4, 4)?;
        let left = (self.blocks - index) as usize;
        let mut entries = entries.chunks_exact(4).take(left).map(|entry| u32_be(entry, 0));
        let block = entries.next().unwrap_or(IS_FREE);
        if block == IS_FREE {
            let more = entries.take_while(|&entry| entry == IS_FREE).count() as u64;
            return Ok(Run { bytes: (1 + more) * self.block_bytes - within, place: Place::Parent });
        }
        let bitmap_at = u64::from(block) * SECTOR_BYTES;
        let bitmap_bytes =
            (self.block_bytes / SECTOR_BYTES).div_ceil(8).next_multiple_of(SECTOR_BYTES);
        let data_at = bitmap_at + bitmap_bytes;
        if data_at >= self.file_bytes {
            return Err(invalid(format!("block {index} lies beyond the end, at byte {bitmap_at}")));
        }
        let stored = Place::Stored { file: 0, at: data_at + within };
        if !self.has_parent {
            // Unwritten parts of a block are zeros in it.
            return Ok(Run { bytes: self.block_bytes - within, place: stored });
        }
        let sector = within / SECTOR_BYTES;
        let bits = self.tables.entries(bitmap_at + sector / 8, 1)?;
        let last = (self.block_bytes / SECTOR_BYTES).min((sector / 8 + bits.len() as u64) * 8);
        let is_here = |sector: u64, first: u64| {
            bits[(sector / 8 - first / 8) as usize] & (0x80 >> (sector % 8)) != 0
        };
        let first = is_here(sector, sector);
        let same = (sector..last).take_while(|&at| is_here(at, sector) == first).count() as u64;
        let place = if first { stored } else { Place::Parent };
        Ok(Run { bytes: (sector + same) * SECTOR_BYTES - within, place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lengths_with_a_footer_seem_to_have_one() {
        // As `qemu-img` makes them of 256 MiB, 2 GiB and 127 GiB, in cylinders and in MiB.
        for sectors in [525_168, 4_195_296, 266_338_320, 524_288, 4_194_304, 266_338_304u64] {
            assert!(is_length_with_footer(sectors * 512 + 512), "{sectors}");
            assert!(!is_length_with_footer(sectors * 512), "{sectors}");
            assert!(!is_length_with_footer(sectors * 512 + 511), "{sectors}");
        }
        assert!(!is_length_with_footer(512) && !is_length_with_footer(0));
    }
}
