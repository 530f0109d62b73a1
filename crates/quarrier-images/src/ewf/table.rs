//! Chunk tables. Entries stay in the segments, four bytes per chunk, and are read again with each
//! chunk, which takes far less time than decompressing it.

use std::io;

use super::layout::{SECTION_BYTES, TABLE_HEADER_BYTES, TableHeader, u32_at};
use super::parts::Held;

/// Maximum number of tables: 512 TiB with the usual 16,375 chunks each.
pub(crate) const TABLES_MAX: usize = 1 << 20;

/// The bit of an entry that marks its chunk as compressed; the rest is its offset.
const COMPRESSED: u32 = 1 << 31;
/// Bytes of a table read at once to verify its checksum.
const STEP_BYTES: usize = 64 << 10;

/// A table, and the range of its chunks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table {
    /// The image-wide number of its first chunk.
    pub(crate) first: u64,
    pub(crate) count: u32,
    /// The index of the segment with the table and its chunks.
    pub(crate) segment: u32,
    /// The offset of its entries in the segment.
    pub(crate) entries_at: u64,
    /// The base offset of the entries.
    pub(crate) base: u64,
    /// Upper bound of the end of its last chunk in the segment.
    pub(crate) data_end: u64,
    /// Whether the checksum of the entries is right.
    pub(crate) is_intact: bool,
}

/// The location of a chunk in its segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) offset: u64,
    /// Maximum stored size: the distance to the next chunk.
    pub(crate) bytes: u64,
    pub(crate) is_compressed: bool,
}

/// Reads the header of a table whose first chunk is `first`, and verifies the checksum of its entries,
/// if any; `None` if the header is damaged, so that its number of chunks is unknown.
///
/// # Errors
/// Those of the segment.
pub(crate) fn read(
    segment: &Held<'_>,
    number: usize,
    (start, end): (u64, u64),
    data_end: u64,
    (first, has_checksum): (u64, bool),
) -> io::Result<Option<Table>> {
    let header_at = start + SECTION_BYTES as u64;
    let entries_at = header_at + TABLE_HEADER_BYTES as u64;
    if entries_at > end {
        return Ok(None);
    }
    let mut bytes = [0; TABLE_HEADER_BYTES];
    segment.read(header_at, &mut bytes)?;
    let Some(header) = TableHeader::parse(&bytes) else { return Ok(None) };
    let entries_bytes = u64::from(header.entries) * 4;
    if entries_bytes + if has_checksum { 4 } else { 0 } > end - entries_at {
        return Ok(None);
    }
    let is_intact = !has_checksum || checksum_holds(segment, entries_at, entries_bytes)?;
    Ok(Some(Table {
        first,
        count: header.entries,
        segment: u32::try_from(number).unwrap_or(u32::MAX),
        entries_at,
        base: header.base,
        data_end,
        is_intact,
    }))
}

/// Whether the checksum that follows the entries is right.
fn checksum_holds(segment: &Held<'_>, start: u64, bytes: u64) -> io::Result<bool> {
    let mut sum = simd_adler32::Adler32::new();
    let mut buffer = vec![0; STEP_BYTES.min(bytes as usize)];
    let mut done = 0;
    while done < bytes {
        let step = buffer.len().min((bytes - done) as usize);
        segment.read(start + done, &mut buffer[..step])?;
        sum.write(&buffer[..step]);
        done += step as u64;
    }
    let mut stored = [0; 4];
    segment.read(start + bytes, &mut stored)?;
    Ok(sum.finish() == u32::from_le_bytes(stored))
}

impl Table {
    /// The location of chunk `number` of the image, which must be in this table.
    ///
    /// # Errors
    /// Those of the segment; `InvalidData` if the entries are invalid.
    pub(crate) fn place(&self, segment: &Held<'_>, number: u64) -> io::Result<Place> {
        if !self.is_intact {
            return Err(invalid(
                "the table with its position is damaged, and so is the copy of the table",
            ));
        }
        let index = number - self.first;
        let is_last = index + 1 == u64::from(self.count);
        let mut entries = [0; 8];
        let known = if is_last { 4 } else { 8 };
        segment.read(self.entries_at + index * 4, &mut entries[..known])?;
        let (entry, next) = (u32_at(&entries, 0), u32_at(&entries, 4));
        let at = |entry: u32| self.base.checked_add(u64::from(entry & !COMPRESSED));
        let end = if is_last { Some(self.data_end) } else { at(next) };
        let (Some(offset), Some(end)) = (at(entry), end) else {
            return Err(invalid("its offset is impossible"));
        };
        if offset >= end {
            return Err(invalid("it ends where it begins, or before"));
        }
        Ok(Place { offset, bytes: end - offset, is_compressed: entry & COMPRESSED != 0 })
    }
}

pub(crate) fn invalid(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}
