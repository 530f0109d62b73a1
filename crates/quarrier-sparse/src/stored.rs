//! Serialization of sparse files.
//!
//! ```text
//! "QRYSPRS\n"  8   the magic
//! version      1   1
//! identity         id, modified, etag, length, conflict mode, whether to wipe
//! counters         eight numbers
//! runs             their count; for each: bytes missing before it, its length, how many uses
//!                  ago it was last used
//! bytes            of all runs, back to back
//! CRC-32C      4   of all before, little-endian
//! ```
//!
//! Numbers are LEB128: seven bits per byte, the lowest first, the high bit set in all but the last.
//! Strings are a length in bytes and UTF-8. Optional values are a byte 0, or a byte 1 and the
//! value. Times are IEEE 754 doubles, little-endian.
//!
//! A store is `"QRYSTOR\n"`, version, the number of files, and each file as its length in bytes and
//! the format above, sorted by name.

use std::sync::atomic::Ordering::Relaxed;

use crate::checksum::crc32c;
use crate::file::Identity;
use crate::{Counters, Error, OnConflict, Result, Span, SparseFile};

const MAGIC: &[u8; 8] = b"QRYSPRS\n";
const STORE_MAGIC: &[u8; 8] = b"QRYSTOR\n";
const VERSION: u8 = 1;

impl SparseFile {
    /// Serializes everything except pins; see [`SparseFile::from_bytes`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let held = usize::try_from(self.num_bytes()).unwrap_or(usize::MAX);
        let mut out = Vec::with_capacity(held.saturating_add(256));
        out.extend_from_slice(MAGIC);
        out.push(VERSION);
        self.identity.put(&mut out);
        let Counters { hits, misses, read_bytes, .. } = self.counters();
        let counts = &self.counts;
        for count in [hits, misses, read_bytes, counts.writes, counts.written_bytes] {
            put_number(&mut out, count);
        }
        for count in [counts.wasted_bytes, counts.erased_bytes, counts.evicted_bytes] {
            put_number(&mut out, count);
        }
        let now = self.clock.load(Relaxed);
        put_number(&mut out, self.map.leaves().map(|(_, leaf)| leaf.runs() as u64).sum());
        let mut at = 0;
        for (key, leaf) in self.map.leaves() {
            for run in 0..leaf.runs() {
                put_number(&mut out, key + leaf.start(run) - at);
                put_number(&mut out, leaf.end(run) - leaf.start(run));
                put_number(&mut out, now.saturating_sub(leaf.last_used(run)));
                at = key + leaf.end(run);
            }
        }
        for (_, leaf) in self.map.leaves() {
            (0..leaf.runs()).for_each(|run| out.extend_from_slice(leaf.run_bytes(run)));
        }
        let checksum = crc32c(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Restores a file from the bytes of [`SparseFile::to_bytes`]. For any input, it allocates at
    /// most a small multiple of the input's size.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the bytes are anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<SparseFile> {
        let mut input = Input::checked(bytes, MAGIC)?;
        let mut file = crate::file::Builder::from(Identity::take(&mut input)?).build();
        // Cap counts, so that later additions cannot overflow.
        let counts = input.numbers::<8>()?.map(|count| count.min(u64::MAX / 4));
        let runs = input.number()?;
        let mut table = input;
        let (mut total, mut oldest) = (0u64, 0);
        for _ in 0..runs {
            let [_, length, age] = input.numbers()?;
            if length == 0 {
                return Err(input.corrupt("an empty block"));
            }
            let sum = total.checked_add(length).filter(|&sum| sum <= bytes.len() as u64);
            total = sum.ok_or_else(|| input.corrupt("blocks longer than their bytes"))?;
            oldest = oldest.max(age);
        }
        if oldest > u64::MAX / 4 {
            return Err(input.corrupt("an invalid time of use"));
        }
        if total != input.left() as u64 {
            return Err(input.corrupt("blocks and their bytes differ in length"));
        }
        let now = file.clock.load(Relaxed).saturating_add(oldest);
        let mut at = 0u64;
        for _ in 0..runs {
            let [gap, length, age] = table.numbers()?;
            let span = at.checked_add(gap).map(|start| Span::new(start, length));
            let end = span.and_then(|span| span.checked_end().ok());
            let (Some(span), Some(end)) = (span, end) else {
                return Err(table.corrupt("a block beyond the greatest offset"));
            };
            if file.length().is_some_and(|file_length| end > file_length) {
                return Err(table.corrupt("a block beyond the file's end"));
            }
            file.map.insert(span.offset, input.take(length as usize)?, now - age);
            at = end;
        }
        file.clock.store(now, Relaxed);
        file.reads.set(counts[0], counts[1], counts[2]);
        file.counts = Counters {
            writes: counts[3],
            written_bytes: counts[4],
            wasted_bytes: counts[5],
            erased_bytes: counts[6],
            evicted_bytes: counts[7],
            ..Counters::default()
        };
        Ok(file)
    }
}

/// Serializes many files.
pub(crate) fn files_to_bytes(files: &[Vec<u8>]) -> Vec<u8> {
    let mut out = STORE_MAGIC.to_vec();
    out.push(VERSION);
    put_number(&mut out, files.len() as u64);
    for file in files {
        put_number(&mut out, file.len() as u64);
        out.extend_from_slice(file);
    }
    let checksum = crc32c(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

/// Restores the files of [`files_to_bytes`].
pub(crate) fn files_from_bytes(bytes: &[u8]) -> Result<Vec<SparseFile>> {
    let mut input = Input::checked(bytes, STORE_MAGIC)?;
    let mut files = Vec::new();
    for _ in 0..input.number()? {
        let length = usize::try_from(input.number()?).unwrap_or(usize::MAX);
        files.push(SparseFile::from_bytes(input.take(length)?)?);
    }
    if input.left() > 0 {
        return Err(input.corrupt("bytes after the last file"));
    }
    Ok(files)
}

impl Identity {
    fn put(&self, out: &mut Vec<u8>) {
        put_text(out, &self.id);
        out.push(u8::from(self.modified.is_some()));
        out.extend(self.modified.iter().flat_map(|seconds| seconds.to_le_bytes()));
        out.push(u8::from(self.etag.is_some()));
        self.etag.iter().for_each(|etag| put_text(out, etag));
        out.push(u8::from(self.length.is_some()));
        self.length.iter().for_each(|&length| put_number(out, length));
        out.push(u8::from(self.on_conflict == OnConflict::Replace));
        out.push(u8::from(self.wipe));
    }

    fn take(input: &mut Input<'_>) -> Result<Identity> {
        Ok(Identity {
            id: input.text()?,
            modified: match input.flag()? {
                true => Some(f64::from_le_bytes(input.array()?)),
                false => None,
            },
            etag: if input.flag()? { Some(input.text()?) } else { None },
            length: if input.flag()? { Some(input.number()?) } else { None },
            on_conflict: if input.flag()? { OnConflict::Replace } else { OnConflict::Raise },
            wipe: input.flag()?,
        })
    }
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// A cursor over stored bytes.
#[derive(Clone, Copy)]
struct Input<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Input<'b> {
    /// The bytes between magic number and checksum, if both are valid.
    fn checked(bytes: &'b [u8], magic: &[u8; 8]) -> Result<Self> {
        let corrupt = |at, reason| Err(Error::Corrupt { at, reason });
        let Some((body, checksum)) = bytes.split_last_chunk::<4>() else {
            return corrupt(bytes.len(), "it is truncated");
        };
        if !body.starts_with(magic) {
            return corrupt(0, "it has a wrong magic number");
        }
        if crc32c(body) != u32::from_le_bytes(*checksum) {
            return corrupt(body.len(), "its checksum is wrong");
        }
        if body.get(magic.len()) != Some(&VERSION) {
            return corrupt(magic.len(), "it has an unsupported version");
        }
        Ok(Input { bytes: body, at: magic.len() + 1 })
    }

    fn corrupt(&self, reason: &'static str) -> Error {
        Error::Corrupt { at: self.at, reason }
    }

    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    fn take(&mut self, count: usize) -> Result<&'b [u8]> {
        if count > self.left() {
            return Err(self.corrupt("it is truncated"));
        }
        self.at += count;
        Ok(&self.bytes[self.at - count..self.at])
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn flag(&mut self) -> Result<bool> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(self.corrupt("an invalid boolean")),
        }
    }

    fn number(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7F);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.corrupt("a number beyond 64 bits"))
    }

    fn numbers<const N: usize>(&mut self) -> Result<[u64; N]> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = self.number()?;
        }
        Ok(numbers)
    }

    fn text(&mut self) -> Result<String> {
        let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        let text = std::str::from_utf8(self.take(length)?);
        text.map(str::to_string).map_err(|_| self.corrupt("a string that is not UTF-8"))
    }
}
