//! 7z archives: a header that refers to a second one, after all packed data.
//!
//! Igor Pavlov, *7zFormat.txt*. Both headers have checksums. The second one, which may itself be
//! packed, describes the packed data, their methods, and the checksums of files. So the validator
//! decompresses everything.

mod fields;
mod files;
mod folder;
mod header;
mod listing;

use std::cell::Cell;
use std::ops::Range;

use super::{Format, Kind, Signature, Verdict};
use crate::crc32;
use crate::unpack::Failed;
use crate::view::View;
use header::Streams;

pub(crate) use listing::{Content, Listed, list};

/// 7z. The validator verifies the checksums of both headers and of all files.
pub struct SevenZip;

const SEVEN_ZIP: Kind = Kind::new("7z");
const MAGIC: [u8; 7] = *b"7z\xBC\xAF\x27\x1C\0";
const START_BYTES: u64 = 32;
/// Existing versions of the format are at most 0.4.
const MINOR_VERSION_MAX: u8 = 15;
/// Maximum size of a header in bytes, packed or not.
const HEADER_BYTES_MAX: u64 = 16 << 20;
/// The first byte of the second header: plain, or packed.
const PLAIN_HEADER: u8 = 0x01;
const PACKED_HEADER: u8 = 0x17;
/// Maximum nesting of packed headers; programs pack them once.
const PACKED_HEADERS_MAX: usize = 4;
const LONG_HEADER: &str =
    "a header of more than 16 MiB and the data that it describes were not read";

impl Format for SevenZip {
    fn kinds(&self) -> &[Kind] {
        &[SEVEN_ZIP]
    }

    fn signatures(&self) -> &[Signature] {
        &[Signature { hex: "37 7A BC AF 27 1C 00", at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let Some((header, crc)) = second_header(view) else { return Verdict::Not };
        let end = header.end;
        if !is_header(view, &header, crc) {
            return Verdict::broken(view, SEVEN_ZIP, START_BYTES, end, "the header at its end");
        }
        match contents(view, header) {
            Ok(()) => Verdict::Whole { length: end, kind: SEVEN_ZIP },
            Err(Failed::NotRead(what)) => Verdict::ended(end, SEVEN_ZIP, what),
            // The end is known, but without this header nothing can be decompressed.
            Err(Failed::Wrong(why)) => Verdict::broken(view, SEVEN_ZIP, START_BYTES, end, why),
        }
    }
}

/// Reads the first header. Returns the range of the second one, and its checksum.
fn second_header(view: &mut View<'_>) -> Option<(Range<u64>, u32)> {
    let stated = view.u32_le(8)?;
    let is_version = view.byte(7).is_some_and(|minor| minor <= MINOR_VERSION_MAX);
    let is_start = view.is_at(0, &MAGIC) && is_version;
    if !is_start || crc32::of_range(view, 12..START_BYTES) != Some(stated) {
        return None;
    }
    let (offset, bytes, crc) = (view.u64_le(12)?, view.u64_le(20)?, view.u32_le(28)?);
    let at = START_BYTES.checked_add(offset)?;
    let end = at.checked_add(bytes).filter(|_| bytes > 0)?;
    Some((at..end, crc))
}

/// Whether the second header is in `range`, with this checksum.
fn is_header(view: &mut View<'_>, range: &Range<u64>, crc: u32) -> bool {
    let is_kind =
        view.byte(range.start).is_some_and(|kind| matches!(kind, PLAIN_HEADER | PACKED_HEADER));
    is_kind && range.end <= view.length() && crc32::of_range(view, range.clone()) == Some(crc)
}

/// Reads everything that the header in `range` lists. Returns the first error or unreadable part.
fn contents(view: &mut View<'_>, range: Range<u64>) -> Result<(), Failed> {
    let end = range.start;
    let header = plain_header(view, range, folder::MEMORY_BYTES_MAX)?;
    main(view, &header, end)
}

/// Reads the header in `range`, decompressed with at most `memory_bytes_max` bytes of memory, after
/// its first byte.
fn plain_header(
    view: &mut View<'_>,
    range: Range<u64>,
    memory_bytes_max: u64,
) -> Result<Vec<u8>, Failed> {
    let Range { start: at, end } = range;
    let mut header = Vec::new();
    if end - at > HEADER_BYTES_MAX {
        return Err(Failed::NotRead(LONG_HEADER));
    }
    view.each(at..end, |piece| header.extend_from_slice(piece));
    for _ in 0..PACKED_HEADERS_MAX {
        match header.split_first() {
            Some((&PACKED_HEADER, rest)) => header = unpacked(view, rest, at, memory_bytes_max)?,
            Some((&PLAIN_HEADER, rest)) => return Ok(rest.to_vec()),
            _ => break,
        }
    }
    Err(Failed::Wrong("a packed header"))
}

/// Decompresses the header that `fields` describe; all packed data are before `end`.
fn unpacked(
    view: &mut View<'_>,
    mut fields: &[u8],
    end: u64,
    memory_bytes_max: u64,
) -> Result<Vec<u8>, Failed> {
    let streams = Streams::read(&mut fields)?;
    let [folder] = &streams.folders[..] else { return Err(Failed::Wrong("a packed header")) };
    if folder.bytes() > HEADER_BYTES_MAX {
        return Err(Failed::NotRead(LONG_HEADER));
    }
    let mut header = Vec::new();
    let packed = streams.packed(folder, end)?;
    streams.verify(view, folder, &packed)?;
    let place = Cell::new(0);
    folder::check(folder, memory_bytes_max)?;
    folder::read(view, folder, &packed, &place, &mut |bytes| header.extend_from_slice(bytes))?;
    match folder.crc.is_none_or(|crc| crc == crc32::of(&header)) {
        true => Ok(header),
        false => Err(Failed::Wrong("CRC of a packed header")),
    }
}

/// Decompresses all folders of the header with these `fields`.
fn main(view: &mut View<'_>, mut fields: &[u8], end: u64) -> Result<(), Failed> {
    let streams = header::main(&mut fields)?;
    let mut result = Ok(());
    for folder in &streams.folders {
        let packed = streams.packed(folder, end)?;
        streams.verify(view, folder, &packed)?;
        match folder::verify(view, folder, &packed) {
            Err(Failed::NotRead(what)) if result.is_ok() => result = Err(Failed::NotRead(what)),
            Ok(()) | Err(Failed::NotRead(_)) => {}
            wrong => return wrong,
        }
    }
    result
}
