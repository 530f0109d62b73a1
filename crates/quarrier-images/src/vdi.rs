//! VDI: VirtualBox disks. A map has the location of each block, usually of 1 MiB.
//!
//! A differencing disk identifies its parent only by a UUID, so the files beside it are searched.

use std::io;
use std::sync::Arc;

use quarrier_core::Result;
use quarrier_core::source::{Source, read_full_at};

use crate::around::Around;
use crate::bytes::{guid, u32_le, u64_le};
use crate::disk::{Disk, Layout, Place, Run};
use crate::fault::{damaged, invalid, refused, structure};
use crate::tables::Tables;

const HEADER_BYTES: u64 = 0x1D8;
const SIGNATURE: u32 = 0xBEDA_107F;
const DIFFERENCING: u32 = 4;
const IS_ZERO: u32 = 0xFFFF_FFFE;
const IS_FREE: u32 = 0xFFFF_FFFF;
const ID: usize = 0x188;
const PARENT_ID: usize = 0x1A8;
const BLOCK_BYTES_MAX: u32 = 64 << 20;

/// The locations of an image's blocks.
pub(crate) struct Vdi {
    tables: Tables,
    map_at: u64,
    data_at: u64,
    block_bytes: u64,
    blocks: u64,
    file_bytes: u64,
}

/// Opens an image and its chain of parents.
pub(crate) fn open(file: &Arc<dyn Source>, around: &Around<'_>) -> Result<Disk<Vdi>> {
    let header = structure(&**file, 0, HEADER_BYTES, "the header")?;
    let version = u32_le(&header, 0x44);
    if version >> 16 != 1 {
        let reason = format!("is a VDI image of version {:#x}, and only 1 is supported", version);
        return Err(refused(&**file, reason));
    }
    let (kind, length) = (u32_le(&header, 0x4C), u64_le(&header, 0x170));
    let (block_bytes, extra_bytes) = (u32_le(&header, 0x178), u32_le(&header, 0x17C));
    let blocks = u64::from(u32_le(&header, 0x180));
    if !(1..=DIFFERENCING).contains(&kind) || extra_bytes != 0 {
        return Err(refused(&**file, "is a VDI image of an unsupported type; convert it to raw"));
    }
    let is_block = block_bytes.is_power_of_two() && (512..=BLOCK_BYTES_MAX).contains(&block_bytes);
    let block_bytes = u64::from(block_bytes);
    if !is_block || length > i64::MAX as u64 || length.div_ceil(block_bytes) > blocks {
        return Err(damaged(&**file, 0x170, "the header has impossible values"));
    }
    let map_at = u64::from(u32_le(&header, 0x154));
    if !map_at.is_multiple_of(4) || map_at + blocks * 4 > file.length() {
        return Err(damaged(&**file, map_at, "the map of blocks lies beyond the end of the file"));
    }
    let parent = match kind {
        DIFFERENCING => Some(parent(file, &header[PARENT_ID..PARENT_ID + 16], around)?),
        _ => None,
    };
    let layout = Vdi {
        tables: Tables::new(Arc::clone(file)),
        map_at,
        data_at: u64::from(u32_le(&header, 0x158)),
        block_bytes,
        blocks,
        file_bytes: file.length(),
    };
    Ok(Disk::stored(file.name(), length, layout, vec![Arc::clone(file)]).over(parent))
}

/// Finds the disk with this UUID among the files beside `file`.
fn parent(file: &Arc<dyn Source>, id: &[u8], around: &Around<'_>) -> Result<Arc<dyn Source>> {
    for name in around.beside.names() {
        if !name.to_ascii_lowercase().ends_with(".vdi") {
            continue;
        }
        let Ok(other) = around.beside.open(&name) else { continue };
        let mut header = [0; HEADER_BYTES as usize];
        let is_read =
            matches!(read_full_at(&*other, 0, &mut header), Ok(read) if read == header.len());
        if is_read && u32_le(&header, 0x40) == SIGNATURE && header[ID..ID + 16] == *id {
            return around.disk(&**file, Arc::from(other));
        }
    }
    let reason = format!(
        "is based on the disk {}, and no VDI image beside it has this identity; put it there",
        guid(id)
    );
    Err(refused(&**file, reason))
}

impl Layout for Vdi {
    fn run(&self, offset: u64) -> io::Result<Run> {
        let (index, within) = (offset / self.block_bytes, offset % self.block_bytes);
        let entries = self.tables.entries(self.map_at + index * 4, 4)?;
        let left = (self.blocks - index) as usize;
        let mut entries = entries.chunks_exact(4).take(left).map(|entry| u32_le(entry, 0));
        let first = entries.next().unwrap_or(IS_FREE);
        let place = match first {
            IS_FREE => Place::Parent,
            IS_ZERO => Place::Zeros,
            number => {
                let at = self.data_at + u64::from(number) * self.block_bytes;
                if at >= self.file_bytes {
                    return Err(invalid(format!(
                        "block {index} lies beyond the end, at byte {at}"
                    )));
                }
                Place::Stored { file: 0, at: at + within }
            }
        };
        let step = u32::from(matches!(place, Place::Stored { .. }));
        let mut next = first;
        let more = entries.take_while(|&entry| {
            next = next.wrapping_add(step);
            entry == next
        });
        Ok(Run { bytes: (1 + more.count() as u64) * self.block_bytes - within, place })
    }
}
