//! EWF version 2 (`.Ex01`).
//!
//! ```text
//!  header  data descriptor  data descriptor …   a descriptor follows its data, and refers to the one before
//!           └ device, case: how large; tables: where each chunk lies; chunks
//! ```
//!
//! *Metz, Expert Witness Compression Format version 2*. Each chunk has a checksum; in compressed chunks
//! it is that of zlib.

use std::io;
use std::sync::{Arc, Mutex};

use quarrier_core::Result;
use quarrier_core::source::{Source, read_full_at};
use quarrier_core::sync::lock;

use crate::around::Around;
use crate::bytes::{u16_le, u32_le, u64_le, utf16};
use crate::disk::{Disk, Layout, Place, Run};
use crate::fault::{damaged, invalid, refused, structure};
use crate::tables::Tables;
use crate::unpack::Unpacker;

const HEADER_BYTES: u64 = 32;
const DESCRIPTOR_BYTES: u64 = 64;
const TABLE_HEADER_BYTES: u64 = 32;
const ENTRY_BYTES: u64 = 16;
/// Maximum number of sections in a segment.
const SECTIONS_MAX: usize = 1 << 20;
const SEGMENTS_MAX: u32 = 10_000;
/// Maximum size of the device and case information, compressed or not.
const TEXT_BYTES_MAX: u64 = 1 << 20;
const CHUNK_BYTES_MAX: u64 = 32 << 20;

const DEVICE: u32 = 1;
const CASE: u32 = 2;
const TABLE: u32 = 4;
const NEXT: u32 = 13;
const IS_ENCRYPTED: u32 = 2;

const IS_PACKED: u32 = 1;
const HAS_CHECKSUM: u32 = 2;
const IS_PATTERN: u32 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    Zlib,
    Bzip2,
}

/// A table of consecutive chunks.
#[derive(Debug, Clone, Copy)]
struct Table {
    first: u64,
    count: u64,
    segment: usize,
    entries_at: u64,
}

/// The device and case information.
#[derive(Debug, Clone, Copy, Default)]
struct Media {
    sectors: u64,
    sector_bytes: u64,
    sectors_each: u64,
}

/// The locations of an image's chunks.
pub(crate) struct Ewf2 {
    segments: Vec<Segment>,
    /// Sorted by first chunk.
    tables: Vec<Table>,
    chunk_bytes: u64,
    length: u64,
    packing: Packing,
    unpackers: Mutex<Vec<Unpacker>>,
}

struct Segment {
    file: Arc<dyn Source>,
    pages: Tables,
}

/// Opens the first segment of an image and the following ones beside it; also returns a notice if
/// segments are missing.
pub(crate) fn open(
    file: &Arc<dyn Source>,
    around: &Around<'_>,
) -> Result<(Disk<Ewf2>, Option<String>)> {
    let (mut media, mut tables, mut files) = (Media::default(), Vec::new(), Vec::new());
    let mut packing = Packing::Zlib;
    let mut next = Some(Arc::clone(file));
    let mut missing = None;
    while let Some(file) = next {
        let number = files.len() as u32 + 1;
        packing = header(&*file, number)?;
        let has_next = sections(&*file, files.len(), packing, &mut media, &mut tables)?;
        files.push(file);
        next = None;
        if has_next && number < SEGMENTS_MAX {
            let name = following(&around.beside.name_of(&*files[0]), number + 1);
            match name.as_deref().map(|name| around.beside.open(name)) {
                Some(Ok(file)) => next = Some(Arc::from(file)),
                _ => {
                    let name = name.unwrap_or_default();
                    missing = Some(format!(
                        "the segment {name} is missing: its part of the disk cannot be read"
                    ));
                }
            }
        }
    }
    let chunk_bytes = media.sector_bytes.checked_mul(media.sectors_each);
    let length = media.sectors.checked_mul(media.sector_bytes);
    let chunk_bytes = chunk_bytes.filter(|&bytes| bytes > 0 && bytes <= CHUNK_BYTES_MAX);
    let length = length.filter(|&length| length <= i64::MAX as u64 - CHUNK_BYTES_MAX);
    let (Some(chunk_bytes), Some(length)) = (chunk_bytes, length) else {
        return Err(damaged(&**file, 0, "it lacks the size of its disk, or has an impossible one"));
    };
    tables.sort_by_key(|table: &Table| table.first);
    let segments = files
        .iter()
        .map(|file| Segment { file: Arc::clone(file), pages: Tables::new(Arc::clone(file)) });
    let segments = segments.collect();
    let unpackers = Mutex::default();
    let layout = Ewf2 { segments, tables, chunk_bytes, length, packing, unpackers };
    Ok((Disk::packed(file.name(), length, layout, files, chunk_bytes as usize), missing))
}

/// Parses the header of a segment: the compression of its chunks.
fn header(file: &dyn Source, number: u32) -> Result<Packing> {
    let header = structure(file, 0, HEADER_BYTES, "the header")?;
    if !header.starts_with(b"EVF2\x0d\x0a\x81\x00") {
        return Err(damaged(file, 0, "a segment has a wrong magic number"));
    }
    if u32_le(&header, 12) != number {
        let found = u32_le(&header, 12);
        return Err(refused(file, format!("says that it is segment {found}, and not {number}")));
    }
    match u16_le(&header, 10) {
        0 | 1 => Ok(Packing::Zlib),
        2 => Ok(Packing::Bzip2),
        other => Err(refused(file, format!("has an unknown compression ({other})"))),
    }
}

/// Walks the sections of a segment from last to first; returns whether another segment follows.
fn sections(
    file: &dyn Source,
    segment: usize,
    packing: Packing,
    media: &mut Media,
    tables: &mut Vec<Table>,
) -> Result<bool> {
    let mut has_next = false;
    let mut at = file.length().saturating_sub(DESCRIPTOR_BYTES);
    for number in 0..SECTIONS_MAX {
        let descriptor = structure(file, at, DESCRIPTOR_BYTES, "a section")?;
        if simd_adler32::adler32(&&descriptor[..60]) != u32_le(&descriptor, 60) {
            return Err(damaged(
                file,
                at,
                "the checksum of a section is wrong, or the segment is truncated",
            ));
        }
        let (kind, flags) = (u32_le(&descriptor, 0), u32_le(&descriptor, 4));
        let (before, bytes) = (u64_le(&descriptor, 8), u64_le(&descriptor, 16));
        if flags & IS_ENCRYPTED != 0 {
            return Err(refused(file, "is encrypted; decrypt it with the tool that made it"));
        }
        let Some(data_at) = at.checked_sub(bytes).filter(|&data_at| data_at >= HEADER_BYTES) else {
            return Err(damaged(file, at, "a section begins before the file"));
        };
        match kind {
            DEVICE | CASE => media.add(&text(file, data_at, bytes, packing)?),
            TABLE => tables.extend(table(file, segment, data_at, bytes)?),
            NEXT if number == 0 => has_next = true,
            _ => {}
        }
        match before {
            0 => return Ok(has_next),
            _ if before >= data_at => return Err(damaged(file, at, "its sections lead back")),
            before => at = before,
        }
    }
    Err(damaged(file, at, "it has too many sections"))
}

/// Reads a compressed UTF-16 text.
fn text(file: &dyn Source, at: u64, bytes: u64, packing: Packing) -> Result<String> {
    if bytes > TEXT_BYTES_MAX {
        return Err(damaged(file, at, "a string is too long"));
    }
    let packed = structure(file, at, bytes, "a string")?;
    let unpacked =
        Unpacker::default().some(&packed, packing == Packing::Bzip2, TEXT_BYTES_MAX as usize);
    let unpacked = unpacked.map_err(|error| damaged(file, at, error.to_string()))?;
    Ok(utf16(&unpacked, u16_le))
}

/// Reads the table at `at`; `None` if it has no chunks.
fn table(file: &dyn Source, segment: usize, at: u64, bytes: u64) -> Result<Option<Table>> {
    let header = structure(file, at, TABLE_HEADER_BYTES, "a table")?;
    let (first, count) = (u64_le(&header, 0), u64::from(u32_le(&header, 8)));
    if simd_adler32::adler32(&&header[..16]) != u32_le(&header, 16) {
        return Err(damaged(file, at, "the checksum of a table is wrong"));
    }
    if TABLE_HEADER_BYTES + count * ENTRY_BYTES > bytes || first.checked_add(count).is_none() {
        return Err(damaged(file, at, "a table is longer than its section"));
    }
    let entries_at = at + TABLE_HEADER_BYTES;
    Ok((count > 0).then_some(Table { first, count, segment, entries_at }))
}

impl Media {
    /// Adds numbers from a text: a line of names and a line of values, separated by tabs.
    fn add(&mut self, text: &str) {
        let mut lines =
            text.trim_start_matches('\u{FEFF}').lines().skip_while(|line| *line != "main").skip(1);
        let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return };
        for (name, value) in names.split('\t').zip(values.split('\t')) {
            let Ok(value) = value.trim().parse() else { continue };
            match name {
                "ts" => self.sectors = value,
                "bp" => self.sector_bytes = value,
                "sb" => self.sectors_each = value,
                _ => {}
            }
        }
    }
}

/// The name of segment `number`, derived from the first one: `image.Ex01`, …, `Ex99`, `ExAA`, ….
fn following(first: &str, number: u32) -> Option<String> {
    let (stem, ending) = first.rsplit_once('.')?;
    let letters = ending.get(..2).filter(|_| ending.len() == 4 && ending.ends_with("01"))?;
    if number < 100 {
        return Some(format!("{stem}.{letters}{number:02}"));
    }
    let letter = |index: u32| u8::try_from(index).ok().map(|index| char::from(b'A' + index));
    let index = number - 100;
    let (high, low) = (index / 26, index % 26);
    (high < 26).then(|| {
        format!("{stem}.{letters}{}{}", letter(high).unwrap_or('A'), letter(low).unwrap_or('A'))
    })
}

/// A table entry.
struct Entry {
    at: u64,
    bytes: u64,
    flags: u32,
}

impl Ewf2 {
    fn entry(&self, chunk: u64) -> io::Result<(&Segment, Entry)> {
        let next = self.tables.partition_point(|table| table.first <= chunk);
        let table = next.checked_sub(1).map(|index| self.tables[index]);
        let Some(table) = table.filter(|table| chunk - table.first < table.count) else {
            return Err(invalid(format!("no table has chunk {chunk}")));
        };
        let segment = &self.segments[table.segment];
        let at = table.entries_at + (chunk - table.first) * ENTRY_BYTES;
        let mut entry = [0; ENTRY_BYTES as usize];
        segment.pages.read(at, &mut entry)?;
        let (bytes, flags) = (u64::from(u32_le(&entry, 8)), u32_le(&entry, 12));
        Ok((segment, Entry { at: u64_le(&entry, 0), bytes, flags }))
    }
}

impl Layout for Ewf2 {
    fn run(&self, offset: u64) -> io::Result<Run> {
        let (chunk, within) = (offset / self.chunk_bytes, offset % self.chunk_bytes);
        let (_, entry) = self.entry(chunk)?;
        let start = offset - within;
        let bytes = self.chunk_bytes.min(self.length - start);
        let is_zero = entry.flags & IS_PATTERN != 0 && entry.at == 0;
        let place = match is_zero {
            true => Place::Zeros,
            false => Place::Packed { key: chunk, start, bytes: bytes as usize },
        };
        Ok(Run { bytes: bytes - within, place })
    }

    fn unpack(&self, key: u64, block: &mut [u8]) -> io::Result<()> {
        let (segment, Entry { at, bytes, flags }) = self.entry(key)?;
        if flags & IS_PATTERN != 0 {
            let pattern = at.to_le_bytes().into_iter().cycle();
            block.iter_mut().zip(pattern).for_each(|(byte, value)| *byte = value);
            return Ok(());
        }
        let wrong = |why: &dyn std::fmt::Display| {
            invalid(format!("chunk {key} (byte {at} of {}) is damaged: {why}", segment.file.name()))
        };
        if bytes > self.chunk_bytes + (self.chunk_bytes >> 3) + 1024 {
            return Err(wrong(&format!("it is too long ({bytes} bytes)")));
        }
        let mut packed = vec![0; bytes as usize];
        if read_full_at(&*segment.file, at, &mut packed)? < packed.len() {
            return Err(wrong(&"the segment is truncated"));
        }
        if flags & IS_PACKED == 0 {
            let data = match flags & HAS_CHECKSUM {
                0 => &packed[..],
                _ => sealed(&packed).ok_or_else(|| wrong(&"its checksum is wrong"))?,
            };
            let data = data.get(..block.len()).ok_or_else(|| wrong(&"it is too short"))?;
            block.copy_from_slice(data);
            return Ok(());
        }
        let mut unpacker = lock(&self.unpackers).pop().unwrap_or_default();
        let is_bzip2 = self.packing == Packing::Bzip2;
        let done = unpacker.some(&packed, is_bzip2, self.chunk_bytes as usize);
        lock(&self.unpackers).push(unpacker);
        let data = done.map_err(|error| wrong(&error))?;
        // The last chunk may be padded to full length.
        block.copy_from_slice(data.get(..block.len()).ok_or_else(|| wrong(&"it is too short"))?);
        Ok(())
    }
}

/// The bytes before the trailing checksum, if it is right.
fn sealed(bytes: &[u8]) -> Option<&[u8]> {
    let (data, sum) = bytes.split_at(bytes.len().checked_sub(4)?);
    (simd_adler32::adler32(&data) == u32_le(sum, 0)).then_some(data)
}

#[cfg(test)]
mod tests {
    use super::following;

    #[test]
    fn segments_count_by_numbers_and_then_by_letters() {
        assert_eq!(following("b.Ex01", 2).as_deref(), Some("b.Ex02"));
        assert_eq!(following("b.Ex01", 100).as_deref(), Some("b.ExAA"));
        assert_eq!(following("b.Ex01", 126).as_deref(), Some("b.ExBA"));
        assert_eq!(following("b.bin", 2), None);
    }
}
