//! DMG: macOS disk images, in chunks compressed by zlib, bzip2, LZMA, LZFSE or ADC.
//!
//! ```text
//!  chunks ······ property list ─→ tables of chunks   trailer ("koly", the last 512 bytes)
//! ```
//!
//! All numbers are big-endian.

mod adc;
mod list;

use std::io::{self, Read};
use std::sync::{Arc, Mutex};

use lzma_rust2::XzReader;
use quarrier_core::source::{Source, read_full_at};
use quarrier_core::sync::lock;
use quarrier_core::{Result, lzfse};

use crate::bytes::{u32_be, u64_be};
use crate::disk::{Disk, Layout, Place, Run, SECTOR_BYTES};
use crate::fault::{damaged, invalid, refused, structure};
use crate::unpack::Unpacker;

const TRAILER_BYTES: u64 = 512;
const LIST_BYTES_MAX: u64 = 128 << 20;
const CHUNKS_MAX: usize = 1 << 21;
const CHUNK_BYTES_MAX: u64 = 64 << 20;
/// Size of a table's header, and of each entry.
const TABLE_HEADER_BYTES: usize = 204;
const ENTRY_BYTES: usize = 40;
const MEMORY_KIB_MAX: u32 = 200 << 10;

/// The compression of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    Zeros,
    Stored,
    Adc,
    Zlib,
    Bzip2,
    Lzma,
    Lzfse,
}

#[derive(Debug, Clone, Copy)]
struct Chunk {
    start: u64,
    bytes: u64,
    at: u64,
    packed_bytes: u64,
    packing: Packing,
}

/// Whether a file with these first bytes may be an image: its first chunk is often one of zlib.
pub(crate) fn may_begin(head: &[u8]) -> bool {
    matches!(head, [0x78, 0x01 | 0x5E | 0x9C | 0xDA, ..])
}

/// The locations of an image's chunks.
pub(crate) struct Dmg {
    file: Arc<dyn Source>,
    /// Sorted by start.
    chunks: Vec<Chunk>,
    /// At most one per concurrent reader.
    unpackers: Mutex<Vec<Unpacker>>,
}

/// Opens an image.
pub(crate) fn open(file: &Arc<dyn Source>) -> Result<Disk<Dmg>> {
    let at = file.length().saturating_sub(TRAILER_BYTES);
    let trailer = structure(&**file, at, TRAILER_BYTES, "the trailer")?;
    if u32_be(&trailer, 60) > 1 {
        let reason =
            "is one of several segments, which are not supported; join them with hdiutil convert";
        return Err(refused(&**file, reason));
    }
    let (data_at, list_at, list_bytes) =
        (u64_be(&trailer, 24), u64_be(&trailer, 216), u64_be(&trailer, 224));
    let length =
        u64_be(&trailer, 492).checked_mul(SECTOR_BYTES).filter(|&all| all <= i64::MAX as u64);
    let Some(length) = length.filter(|_| (1..=LIST_BYTES_MAX).contains(&list_bytes)) else {
        return Err(damaged(&**file, at, "the trailer has impossible values"));
    };
    let list = structure(&**file, list_at, list_bytes, "the property list")?;
    let mut chunks = Vec::new();
    for table in list::tables(&list) {
        let table = table.map_err(|reason| damaged(&**file, list_at, reason))?;
        add(&**file, &table, data_at, &mut chunks)?;
    }
    chunks.sort_by_key(|chunk: &Chunk| chunk.start);
    let overlap = chunks.windows(2).any(|two| two[0].start + two[0].bytes > two[1].start);
    if chunks.is_empty() || overlap {
        return Err(damaged(&**file, list_at, "its tables list no chunks, or overlapping ones"));
    }
    let is_packed = |chunk: &&Chunk| !matches!(chunk.packing, Packing::Zeros | Packing::Stored);
    let longest = chunks.iter().filter(is_packed).map(|chunk| chunk.bytes).max();
    let layout = Dmg { file: Arc::clone(file), chunks, unpackers: Mutex::default() };
    let files = vec![Arc::clone(file)];
    Ok(match longest {
        Some(bytes) => Disk::packed(file.name(), length, layout, files, bytes as usize),
        None => Disk::stored(file.name(), length, layout, files),
    })
}

/// Adds the chunks of a table.
fn add(file: &dyn Source, table: &[u8], data_at: u64, chunks: &mut Vec<Chunk>) -> Result<()> {
    if !table.starts_with(b"mish") || table.len() < TABLE_HEADER_BYTES {
        return Err(damaged(file, data_at, "a table of chunks has a wrong magic number"));
    }
    let (first, data_from) = (u64_be(table, 8), u64_be(table, 24));
    let count = u32_be(table, 200) as usize;
    for entry in table[TABLE_HEADER_BYTES..].chunks_exact(ENTRY_BYTES).take(count) {
        let packing = match u32_be(entry, 0) {
            0 | 2 => Packing::Zeros,
            1 => Packing::Stored,
            0x8000_0004 => Packing::Adc,
            0x8000_0005 => Packing::Zlib,
            0x8000_0006 => Packing::Bzip2,
            0x8000_0007 => Packing::Lzfse,
            0x8000_0008 => Packing::Lzma,
            0x7FFF_FFFE => continue,
            0xFFFF_FFFF => break,
            other => {
                let reason = format!("has chunks with an unknown compression ({other:#x})");
                return Err(refused(file, reason));
            }
        };
        let start = first.checked_add(u64_be(entry, 8)).and_then(|at| at.checked_mul(SECTOR_BYTES));
        let bytes = u64_be(entry, 16).checked_mul(SECTOR_BYTES);
        let at = data_at.checked_add(data_from).and_then(|at| at.checked_add(u64_be(entry, 24)));
        let packed_bytes = u64_be(entry, 32);
        let (Some(start), Some(bytes), Some(at)) = (start, bytes, at) else {
            return Err(damaged(file, data_at, "a chunk is at an impossible offset"));
        };
        let is_stored = matches!(packing, Packing::Zeros | Packing::Stored);
        let is_right = start.checked_add(bytes).is_some_and(|end| end <= i64::MAX as u64)
            && (is_stored || bytes <= CHUNK_BYTES_MAX && packed_bytes <= 2 * bytes + 4096);
        if !is_right || chunks.len() == CHUNKS_MAX {
            return Err(damaged(file, at, "a chunk is too large, or there are too many"));
        }
        if bytes > 0 {
            chunks.push(Chunk { start, bytes, at, packed_bytes, packing });
        }
    }
    Ok(())
}

impl Layout for Dmg {
    fn run(&self, offset: u64) -> io::Result<Run> {
        let next = self.chunks.partition_point(|chunk| chunk.start <= offset);
        let chunk = next.checked_sub(1).map(|index| (index, self.chunks[index]));
        let Some((index, chunk)) = chunk.filter(|(_, chunk)| offset - chunk.start < chunk.bytes)
        else {
            // No chunk covers the offset.
            let end = self.chunks.get(next).map_or(u64::MAX, |chunk| chunk.start);
            return Ok(Run { bytes: end - offset, place: Place::Zeros });
        };
        let within = offset - chunk.start;
        let place = match chunk.packing {
            Packing::Zeros => Place::Zeros,
            Packing::Stored => Place::Stored { file: 0, at: chunk.at.saturating_add(within) },
            _ => {
                Place::Packed { key: index as u64, start: chunk.start, bytes: chunk.bytes as usize }
            }
        };
        Ok(Run { bytes: chunk.bytes - within, place })
    }

    fn unpack(&self, key: u64, block: &mut [u8]) -> io::Result<()> {
        let chunk = self.chunks[key as usize];
        let bytes = chunk.packed_bytes.min(self.file.length().saturating_sub(chunk.at));
        let mut packed = vec![0; bytes as usize];
        let read = read_full_at(&*self.file, chunk.at, &mut packed)?;
        packed.truncate(read);
        let mut unpacker = lock(&self.unpackers).pop().unwrap_or_default();
        let done = match chunk.packing {
            Packing::Adc => adc::unpack(&packed, block),
            Packing::Bzip2 => unpacker.bzip2(&packed, block),
            Packing::Lzfse => lzfse::unpack(&packed, block),
            Packing::Lzma => {
                let mut reader = XzReader::new_mem_limit(&packed[..], false, MEMORY_KIB_MAX);
                reader.read_exact(block).and_then(|()| match reader.read(&mut [0])? {
                    0 => Ok(()),
                    _ => Err(invalid("it is too long")),
                })
            }
            _ => unpacker.zlib(&packed, block),
        };
        lock(&self.unpackers).push(unpacker);
        let (at, name) = (chunk.at, self.file.name());
        done.map_err(|error| invalid(format!("a chunk is damaged (byte {at} of {name}): {error}")))
    }
}
