//! Version 5.

use quarrier_core::varint;

use super::{Chain, IN_PARTS, NO_CHECKSUM, PACKED};
use crate::crc32;
use crate::unpack::ENCRYPTED;
use crate::view::View;

const MAIN: u64 = 1;
const FILE: u64 = 2;
const ENCRYPTION: u64 = 4;
const END: u64 = 5;
/// Maximum size of a header that the format allows, in bytes.
const HEADER_BYTES_MAX: u64 = 2 << 20;
/// The size of a volume is a multiple of one of these.
const VOLUME_UNITS: [u64; 2] = [1000, 1024];
/// Maximum number of zeros at the end of a volume.
const FILLING_BYTES_MAX: u64 = 64;

/// A block.
struct Block {
    kind: u64,
    /// For the last block: whether another volume follows.
    is_continued: bool,
    /// The checksum of its contents, if they are stored uncompressed; else the reason why they are
    /// not verified.
    stored_crc: Result<u32, &'static str>,
    /// The range of its data.
    data: std::ops::Range<u64>,
}

/// Reads a number of up to ten bytes.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    varint::take(10, bytes)
}

impl Block {
    fn read(view: &mut View<'_>, at: u64) -> Option<Block> {
        let stated = view.u32_le(at)?;
        let size_at = at + 4;
        let size_field = view.array::<3>(size_at)?;
        let mut rest = &size_field[..];
        let size = number(&mut rest)?;
        let header_at = size_at + (3 - rest.len()) as u64;
        let header_end = header_at + size;
        let is_right = (2..=HEADER_BYTES_MAX).contains(&size)
            && crc32::of_range(view, size_at..header_end) == Some(stated);
        if !is_right {
            return None;
        }
        let seen = size.min(1024) as usize;
        let mut fields = view.take(header_at, seen)?;
        let fields = &mut fields;
        let (kind, flags) = (number(fields)?, number(fields)?);
        let extra_bytes = if flags & 1 != 0 { number(fields)? } else { 0 };
        let data_bytes = if flags & 2 != 0 { number(fields)? } else { 0 };
        let is_part = flags & 0x18 != 0;
        let is_continued = kind == END && fields.first().is_some_and(|flags| flags & 1 != 0);
        let crc = stored_crc(fields, data_bytes);
        let extra = header_end.checked_sub(extra_bytes).filter(|extra| *extra >= header_at)?;
        let stored_crc = match crc {
            _ if is_part => Err(IN_PARTS),
            _ if is_encrypted(view, extra..header_end) => Err(ENCRYPTED),
            crc => crc.unwrap_or(Err(NO_CHECKSUM)),
        };
        let data = header_end..header_end.checked_add(data_bytes)?;
        Some(Block { kind, is_continued, stored_crc, data })
    }
}

/// Returns the checksum in the header of a stored file; `fields` begins with the fields of its
/// type.
fn stored_crc(fields: &mut &[u8], data_bytes: u64) -> Option<Result<u32, &'static str>> {
    let (flags, unpacked, _attributes) = (number(fields)?, number(fields)?, number(fields)?);
    if flags & 2 != 0 {
        *fields = fields.get(4..)?;
    }
    let mut crc = None;
    if flags & 4 != 0 {
        crc = Some(u32::from_le_bytes(fields.get(..4)?.try_into().ok()?));
        *fields = &fields[4..];
    }
    let method = number(fields)? >> 7 & 7;
    Some(match method == 0 && unpacked == data_bytes {
        true => crc.ok_or(NO_CHECKSUM),
        false => Err(PACKED),
    })
}

/// Whether the records at the end of a header state that its data are encrypted.
fn is_encrypted(view: &mut View<'_>, mut extra: std::ops::Range<u64>) -> bool {
    const ENCRYPTION_RECORD: u64 = 1;
    while extra.start < extra.end {
        let most = (extra.end - extra.start).min(20) as usize;
        let Some(mut fields) = view.take(extra.start, most) else { return false };
        let Some(size) = number(&mut fields) else { return false };
        let size_bytes = (most - fields.len()) as u64;
        if number(&mut fields) == Some(ENCRYPTION_RECORD) {
            return true;
        }
        extra.start = extra.start.saturating_add(size_bytes).saturating_add(size);
    }
    false
}

/// Returns the end of a volume that is not the last and whose last block ends at `at`: all such
/// volumes have the same round size, and are padded with a few zeros.
fn filled(view: &mut View<'_>, at: u64) -> u64 {
    let ends = VOLUME_UNITS.map(|unit| at.next_multiple_of(unit));
    let end = ends.into_iter().min().filter(|end| end - at <= FILLING_BYTES_MAX);
    let is_zero = |end: &u64| {
        let filling = view.take(at, (end - at) as usize);
        filling.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0))
    };
    end.filter(is_zero).unwrap_or(at)
}

/// Follows the chain of blocks from the marker on.
pub(super) fn follow(view: &mut View<'_>) -> Chain {
    let mut at = 8;
    let mut sure = 0;
    let mut not_read = "";
    loop {
        let Some(block) = Block::read(view, at) else {
            return match sure {
                0 => Chain::Not,
                _ => Chain::Wrong(sure, at, "no block begins here"),
            };
        };
        if sure == 0 && !matches!(block.kind, MAIN | ENCRYPTION) {
            return Chain::Not;
        }
        sure = block.data.start;
        match block.kind {
            END if block.is_continued => return Chain::End(filled(view, block.data.end), not_read),
            END => return Chain::End(block.data.end, not_read),
            ENCRYPTION => return Chain::Wrong(sure, sure, "its headers are encrypted"),
            _ => {}
        }
        let is_right =
            |view: &mut View<'_>, crc| crc32::of_range(view, block.data.clone()) == Some(crc);
        match block.stored_crc {
            _ if block.data.is_empty() => {}
            Ok(crc) if is_right(view, crc) => {}
            Ok(_) if block.kind == FILE => {
                return Chain::Wrong(sure, block.data.end, "CRC of a file");
            }
            // Recovery records have their own checksums.
            Ok(_) => not_read = NO_CHECKSUM,
            Err(why) if block.kind == FILE || not_read.is_empty() => not_read = why,
            Err(_) => {}
        }
        at = block.data.end;
    }
}
