//! A sparse extent: a grain directory, grain tables, and grains, which may be compressed.

use std::io;
use std::sync::{Arc, Mutex};

use quarrier_core::Result;
use quarrier_core::source::{Source, read_full_at};
use quarrier_core::sync::lock;

use super::descriptor::Descriptor;
use crate::bytes::{u16_le, u32_le, u64_le};
use crate::disk::{Place, Run, SECTOR_BYTES};
use crate::fault::{damaged, invalid, refused, structure};
use crate::tables::Tables;
use crate::unpack::Unpacker;

const HEADER_BYTES: u64 = 512;
/// The footer and the end marker after it.
const FOOTER_BYTES: u64 = 1024;
/// The directory offset if it is in the footer: stream-optimized images write it last.
const AT_END: u64 = u64::MAX;
const ZEROED_GRAINS: u32 = 1 << 2;
const IS_PACKED: u32 = 1 << 16;
const HAS_MARKERS: u32 = 1 << 17;
const GRAIN_BYTES_MAX: u64 = 64 << 20;
const MARKER_BYTES: usize = 12;

/// The locations of an extent's grains.
pub(super) struct Sparse {
    file: Arc<dyn Source>,
    /// The index of its file in the disk.
    index: usize,
    tables: Tables,
    pub(super) length: u64,
    pub(super) grain_bytes: u64,
    directory_at: u64,
    grains_each: u64,
    has_zeroed: bool,
    pub(super) is_packed: bool,
    has_markers: bool,
    /// At most one per concurrent reader.
    unpackers: Mutex<Vec<Unpacker>>,
}

/// The header of an extent; sizes are in sectors.
struct Header {
    capacity: u64,
    grain: u64,
    descriptor: (u64, u64),
    grains_each: u64,
    directory_at: u64,
    flags: u32,
    packing: u16,
    version: u32,
}

impl Header {
    fn parse(bytes: &[u8]) -> Header {
        if bytes.starts_with(b"COWD") {
            let sectors = |at| u64::from(u32_le(bytes, at));
            return Header {
                version: u32_le(bytes, 4),
                flags: 0,
                capacity: sectors(12),
                grain: sectors(16),
                directory_at: sectors(20),
                grains_each: 4096,
                descriptor: (0, 0),
                packing: 0,
            };
        }
        Header {
            version: u32_le(bytes, 4),
            flags: u32_le(bytes, 8),
            capacity: u64_le(bytes, 12),
            grain: u64_le(bytes, 20),
            descriptor: (u64_le(bytes, 28), u64_le(bytes, 36)),
            grains_each: u64::from(u32_le(bytes, 44)),
            directory_at: u64_le(bytes, 56),
            packing: u16_le(bytes, 77),
        }
    }
}

/// Opens the extent in `file`, which is the disk's file `index`, and the embedded descriptor, if any.
pub(super) fn open(file: &Arc<dyn Source>, index: usize) -> Result<(Sparse, Option<Descriptor>)> {
    let bytes = structure(&**file, 0, HEADER_BYTES, "the header of an extent")?;
    let is_sparse = bytes.starts_with(b"KDMV") || bytes.starts_with(b"COWD");
    if !is_sparse {
        return Err(damaged(&**file, 0, "a sparse extent has a wrong magic number"));
    }
    let mut header = Header::parse(&bytes);
    let (at, sectors) = header.descriptor;
    let descriptor = match at {
        0 => None,
        _ => {
            let bytes = sectors.checked_mul(SECTOR_BYTES);
            let at = at.checked_mul(SECTOR_BYTES).zip(bytes);
            let (at, bytes) =
                at.ok_or_else(|| damaged(&**file, 28, "the descriptor has an impossible offset"))?;
            Some(Descriptor::read(&**file, at, bytes)?)
        }
    };
    if header.directory_at == AT_END {
        let at = file.length().saturating_sub(FOOTER_BYTES);
        let footer = structure(&**file, at, HEADER_BYTES, "the footer of an extent")?;
        if !footer.starts_with(b"KDMV") {
            return Err(damaged(&**file, at, "the footer is missing: the file is incomplete"));
        }
        header = Header::parse(&footer);
    }
    Ok((Sparse::new(file, index, &header)?, descriptor))
}

impl Sparse {
    fn new(file: &Arc<dyn Source>, index: usize, header: &Header) -> Result<Sparse> {
        if !(1..=3).contains(&header.version) {
            let reason = format!("is a VMDK image of unknown version {}", header.version);
            return Err(refused(&**file, reason));
        }
        let is_packed = header.flags & IS_PACKED != 0;
        if is_packed && header.packing != 1 {
            let reason = format!("has an unknown compression ({})", header.packing);
            return Err(refused(&**file, reason));
        }
        let length =
            header.capacity.checked_mul(SECTOR_BYTES).filter(|&all| all <= i64::MAX as u64);
        let grain_bytes = header.grain.checked_mul(SECTOR_BYTES);
        let grain_bytes = grain_bytes.filter(|&bytes| bytes > 0 && bytes <= GRAIN_BYTES_MAX);
        let directory_at = header.directory_at.checked_mul(SECTOR_BYTES);
        let is_table = (1..=1 << 20).contains(&header.grains_each);
        let (Some(length), Some(grain_bytes), Some(directory_at), true) =
            (length, grain_bytes, directory_at, is_table)
        else {
            return Err(damaged(&**file, 12, "the header of the extent has impossible values"));
        };
        let tables = length.div_ceil(grain_bytes * header.grains_each);
        let end = tables.checked_mul(4).and_then(|bytes| directory_at.checked_add(bytes));
        if end.is_none_or(|end| end > file.length()) {
            let reason = "the directory of grains lies beyond the end of the file";
            return Err(damaged(&**file, directory_at, reason));
        }
        Ok(Sparse {
            file: Arc::clone(file),
            index,
            tables: Tables::new(Arc::clone(file)),
            length,
            grain_bytes,
            directory_at,
            grains_each: header.grains_each,
            has_zeroed: header.flags & ZEROED_GRAINS != 0,
            is_packed,
            has_markers: header.flags & HAS_MARKERS != 0,
            unpackers: Mutex::default(),
        })
    }

    /// The run at `offset` of the extent.
    pub(super) fn run(&self, offset: u64) -> io::Result<Run> {
        let covered = self.grain_bytes * self.grains_each;
        let (number, last) = (offset / covered, self.length.div_ceil(covered));
        let directory = self.tables.entries(self.directory_at + number * 4, 4)?;
        let left = last.saturating_sub(number) as usize;
        let free = directory.chunks_exact(4).take(left).take_while(|entry| u32_le(entry, 0) == 0);
        let free = free.count() as u64;
        if free > 0 {
            return Ok(Run { bytes: (number + free) * covered - offset, place: Place::Parent });
        }
        let table_at = u64::from(u32_le(&directory, 0)) * SECTOR_BYTES;
        let grain = offset % covered / self.grain_bytes;
        let within = offset % self.grain_bytes;
        let entries = self.tables.entries(table_at + grain * 4, 4)?;
        let left = (self.grains_each - grain) as usize;
        let mut entries = entries.chunks_exact(4).take(left).map(|entry| u32_le(entry, 0));
        let first = entries.next().unwrap_or(0);
        let at = u64::from(first) * SECTOR_BYTES;
        let place = match first {
            0 => Place::Parent,
            1 if self.has_zeroed => Place::Zeros,
            _ if at >= self.file.length() => {
                return Err(invalid(format!("a grain lies beyond the end, at byte {at}")));
            }
            _ if self.is_packed => {
                let bytes = self.grain_bytes.min(self.length - (offset - within)) as usize;
                let place = Place::Packed { key: 0, start: offset - within, bytes };
                return Ok(Run { bytes: bytes as u64 - within, place });
            }
            _ => Place::Stored { file: self.index, at: at + within },
        };
        let is_stored = matches!(place, Place::Stored { .. });
        let step = if is_stored { (self.grain_bytes / SECTOR_BYTES) as u32 } else { 0 };
        let mut next = first;
        let more = entries.take_while(|&entry| {
            next = next.wrapping_add(step);
            entry == next
        });
        Ok(Run { bytes: (1 + more.count() as u64) * self.grain_bytes - within, place })
    }

    /// Decompresses the grain that begins at `offset` of the extent.
    pub(super) fn unpack(&self, offset: u64, block: &mut [u8]) -> io::Result<()> {
        let covered = self.grain_bytes * self.grains_each;
        let directory = self.tables.entries(self.directory_at + offset / covered * 4, 4)?;
        let table_at = u64::from(u32_le(&directory, 0)) * SECTOR_BYTES;
        let grain = offset % covered / self.grain_bytes;
        let entry = u32_le(&self.tables.entries(table_at + grain * 4, 4)?, 0);
        let at = u64::from(entry) * SECTOR_BYTES;
        let wrong = |why: String| {
            invalid(format!("a grain is damaged (byte {at} of {}): {why}", self.file.name()))
        };
        let packed = self.packed(at, offset).map_err(wrong)?;
        let mut unpacker = lock(&self.unpackers).pop().unwrap_or_default();
        // The last grain may be complete although the disk ends in it.
        let done = unpacker.zlib_up_to(&packed, block, self.grain_bytes as usize);
        lock(&self.unpackers).push(unpacker);
        done.map_err(|error| wrong(error.to_string()))
    }

    /// Reads the compressed grain at `at` of the file: after a marker with its length, or without one.
    fn packed(&self, at: u64, offset: u64) -> std::result::Result<Vec<u8>, String> {
        // The fastest level of deflate expands incompressible data by an eighth.
        let most = self.grain_bytes + (self.grain_bytes >> 3) + 1024;
        let read = |at: u64, bytes: u64| {
            let bytes = bytes.min(self.file.length().saturating_sub(at));
            let mut packed = vec![0; bytes as usize];
            let read =
                read_full_at(&*self.file, at, &mut packed).map_err(|error| error.to_string())?;
            packed.truncate(read);
            Ok(packed)
        };
        if !self.has_markers {
            return read(at, most);
        }
        let marker = read(at, MARKER_BYTES as u64)?;
        let (sector, bytes) = (u64_le(&marker, 0), u64::from(u32_le(&marker, 8)));
        if sector != offset / SECTOR_BYTES {
            return Err(format!("its marker states that it is the grain of sector {sector}"));
        }
        if bytes > most {
            return Err(format!("it is longer ({bytes} bytes) than a grain can be"));
        }
        read(at + MARKER_BYTES as u64, bytes)
    }
}
