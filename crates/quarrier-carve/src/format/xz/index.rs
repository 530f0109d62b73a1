//! The index of a stream.

use quarrier_core::varint;

use super::{HEADER_BYTES, NUMBER_BYTES_MAX};
use crate::crc32;
use crate::view::View;

/// Maximum number of blocks of a stream; xz makes one for several MiB.
const BLOCKS_MAX: u64 = 1 << 20;

/// A block in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    /// The size of header, compressed data and check, without padding to four bytes.
    pub(super) bytes: u64,
    pub(super) unpacked: u64,
}

/// Returns the blocks of the stream that begins at `start`, if the footer that ends with the four
/// bytes at `place` ends it: the blocks are where its index lists them.
pub(super) fn read(view: &mut View<'_>, start: u64, place: u64) -> Option<Vec<Record>> {
    let footer = place.checked_sub(8)?;
    let stated = view.u32_le(footer)?;
    let index_bytes = (u64::from(view.u32_le(footer + 4)?) + 1) * 4;
    if crc32::of_range(view, footer + 4..place + 2)? != stated {
        return None;
    }
    let index = footer.checked_sub(index_bytes).filter(|at| *at >= start + HEADER_BYTES)?;
    if crc32::of_range(view, index..footer - 4)? != view.u32_le(footer - 4)? {
        return None;
    }
    let mut at = index;
    if view.byte(at)? != 0 {
        return None;
    }
    at += 1;
    let count = number(view, &mut at)?;
    if count > BLOCKS_MAX {
        return None;
    }
    let mut block = start + HEADER_BYTES;
    let mut records = Vec::new();
    for _ in 0..count {
        let bytes = number(view, &mut at)?;
        let unpacked = number(view, &mut at)?;
        is_block(view, block).then_some(())?;
        block = block.checked_add(bytes.checked_next_multiple_of(4)?)?;
        records.push(Record { bytes, unpacked });
    }
    let is_filled = (at..footer - 4).all(|at| view.byte(at) == Some(0));
    (block == index && at <= footer - 4 && footer - 4 - at < 4 && is_filled).then_some(records)
}

/// Whether there is a block header at `at`.
fn is_block(view: &mut View<'_>, at: u64) -> bool {
    let Some(size) = view.byte(at).filter(|size| *size > 0) else { return false };
    let end = at + u64::from(size) * 4;
    view.u32_le(end).is_some_and(|stated| crc32::of_range(view, at..end) == Some(stated))
}

/// Reads the number at `at`.
fn number(view: &mut View<'_>, at: &mut u64) -> Option<u64> {
    varint::read(NUMBER_BYTES_MAX, || {
        let byte = view.byte(*at)?;
        *at += 1;
        Some(byte)
    })
}
