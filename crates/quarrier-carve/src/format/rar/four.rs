//! Version 4 and earlier.

use super::{Chain, IN_PARTS, NO_CHECKSUM, PACKED};
use crate::crc32::{self, Crc32};
use crate::unpack::ENCRYPTED;
use crate::view::View;

const MAIN: u8 = 0x73;
const FILE: u8 = 0x74;
const COMMENT: u8 = 0x75;
const EXTRA: u8 = 0x76;
const SUB: u8 = 0x77;
const AUTHENTICITY: u8 = 0x79;
/// Additional data of a file: owners and streams, in version 4.
const SERVICE: u8 = 0x7A;
const END: u8 = 0x7B;
/// Flags of the main header: the rest is encrypted.
const ENCRYPTED_HEADERS: u16 = 0x80;
/// Flags of every block: data follows the header.
const HAS_DATA: u16 = 0x8000;
/// Flags of the main header. Programs that set them end an archive with an end block: the volume is
/// named by the newer rule, or is the first one.
const NEWER_VOLUME: u16 = 0x10 | 0x100;
/// Flags of files: their sizes have eight bytes.
const WIDE: u16 = 0x100;
/// Flags of files: parts of the file are in other archives.
const PART: u16 = 0x03;
/// Flags of files: the file is encrypted.
const IS_ENCRYPTED: u16 = 0x04;
/// Flags of the main header and of files: the header contains a comment.
const MAIN_COMMENT: u16 = 0x02;
const FILE_COMMENT: u16 = 0x08;
const STORED: u8 = 0x30;
/// Maximum amount of data that a header's checksum covers, in bytes.
const SUB_BYTES_MAX: u64 = 64 << 10;
/// Programs from this version on end an archive with an end block.
const VERSION_WITH_END: u8 = 29;

/// A block.
struct Block {
    kind: u8,
    flags: u16,
    header: Vec<u8>,
    /// The range of its data.
    data: std::ops::Range<u64>,
}

impl Block {
    fn read(view: &mut View<'_>, at: u64) -> Option<Block> {
        let [crc_0, crc_1, kind, flags_0, flags_1, size_0, size_1] = view.array::<7>(at)?;
        let flags = u16::from_le_bytes([flags_0, flags_1]);
        let size = u16::from_le_bytes([size_0, size_1]);
        if !(0x72..=END).contains(&kind) || size < 7 {
            return None;
        }
        let header = view.take(at, size.into())?.to_vec();
        let u32_at = |place: usize| {
            let bytes = header.get(place..place + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        };
        let mut data_bytes = 0;
        if flags & HAS_DATA != 0 || kind == FILE {
            data_bytes = u64::from(u32_at(7)?);
            if matches!(kind, FILE | SERVICE) && flags & WIDE != 0 {
                data_bytes |= u64::from(u32_at(32)?) << 32;
            }
        }
        let data_at = at + u64::from(size);
        let data = data_at..data_at.checked_add(data_bytes)?;
        let stated = u16::from_le_bytes([crc_0, crc_1]);
        let mut crc = Crc32::new();
        crc.update(header.get(2..verified_bytes(kind, flags, &header))?);
        if is_verified_with_data(kind, &header) && data_bytes <= SUB_BYTES_MAX {
            view.each(data.clone(), |piece| crc.update(piece));
        }
        (crc.value() as u16 == stated).then_some(Block { kind, flags, header, data })
    }

    /// Returns whether its data match its checksum. `Err` with the part that was not read.
    fn is_right(&self, view: &mut View<'_>) -> Result<bool, &'static str> {
        let has_file_header = matches!(self.kind, FILE | SERVICE);
        let is_small = self.data.end - self.data.start <= SUB_BYTES_MAX;
        match self.kind {
            _ if self.data.is_empty() => return Ok(true),
            _ if is_verified_with_data(self.kind, &self.header) && is_small => return Ok(true),
            _ if !has_file_header => return Err(NO_CHECKSUM),
            _ if self.flags & IS_ENCRYPTED != 0 => return Err(ENCRYPTED),
            _ if self.flags & PART != 0 => return Err(IN_PARTS),
            _ => {}
        }
        let is_stored = self.header.get(25) == Some(&STORED)
            && self.header.get(7..11) == self.header.get(11..15);
        if !is_stored {
            return Err(PACKED);
        }
        let stated = self.header.get(16..20).and_then(|bytes| bytes.try_into().ok());
        let is_right = crc32::of_range(view, self.data.clone()) == stated.map(u32::from_le_bytes);
        match self.kind {
            FILE => Ok(is_right),
            // Recovery records have their own checksums.
            _ if is_right => Ok(true),
            _ => Err(NO_CHECKSUM),
        }
    }
}

/// Returns the number of bytes of a header that its checksum covers: comments in it have their own
/// checksum.
fn verified_bytes(kind: u8, flags: u16, header: &[u8]) -> usize {
    let name_bytes = || match header.get(26..28) {
        Some([low, high]) => usize::from(u16::from_le_bytes([*low, *high])),
        _ => 0,
    };
    let sizes_bytes = if flags & WIDE != 0 { 8 } else { 0 };
    let bytes = match kind {
        MAIN if flags & MAIN_COMMENT != 0 => 13,
        FILE if flags & FILE_COMMENT != 0 => 32 + sizes_bytes + name_bytes(),
        AUTHENTICITY => 15,
        COMMENT => 13,
        EXTRA => 14,
        _ => header.len(),
    };
    bytes.min(header.len())
}

/// Whether the checksum of a header also covers the data after it.
fn is_verified_with_data(kind: u8, header: &[u8]) -> bool {
    kind == SUB && matches!(header.get(11..13), Some([1 | 2, 1]))
}

/// Follows the chain of blocks from the marker on.
pub(super) fn follow(view: &mut View<'_>) -> Chain {
    let Some(main) = Block::read(view, 7).filter(|block| block.kind == MAIN) else {
        return Chain::Not;
    };
    let mut at = main.data.end;
    let mut sure = at;
    if main.flags & ENCRYPTED_HEADERS != 0 {
        return Chain::Wrong(sure, at, "its headers are encrypted");
    }
    let mut has_end = main.flags & NEWER_VOLUME != 0;
    let mut files = 0;
    let mut not_read = "";
    loop {
        let Some(block) = Block::read(view, at) else {
            return match files > 0 && !has_end && at <= view.length() {
                true => Chain::End(at, not_read),
                false => Chain::Wrong(sure, at, "no block begins here"),
            };
        };
        sure = block.data.start;
        if block.kind == END {
            return Chain::End(block.data.end, not_read);
        }
        match block.is_right(view) {
            Ok(true) => {}
            Ok(false) => return Chain::Wrong(sure, block.data.end, "CRC of a file"),
            Err(why) if block.kind == FILE || not_read.is_empty() => not_read = why,
            Err(_) => {}
        }
        if block.kind == FILE {
            files += 1;
            has_end |= block.header.get(24).is_some_and(|version| *version >= VERSION_WITH_END);
        }
        at = block.data.end;
    }
}
