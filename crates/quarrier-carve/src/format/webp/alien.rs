//! Finds bytes that no frame of VP8 contains, without decoding: most broken frames show them.

use std::ops::Range;

use super::Fault;
use crate::mend::text_sector;
use crate::view::{SECTOR_BYTES, View};

/// Maximum run of zeros in bytes that occurs by chance, or because an encoder pads.
const ZEROS_BYTES: u64 = 2 * SECTOR_BYTES;
/// An empty macroblock takes 25 almost certain symbols of 1/177 bit each, so that 56 macroblocks
/// take a byte. One zero byte can thus represent this many of them.
const MACROBLOCKS_PER_ZERO: u64 = 56;
/// Bytes per step.
const PIECE_BYTES: u64 = 64 << 10;

/// Fails if a sector of `range` is text, or `range` has a longer run of zeros than that many
/// macroblocks can produce.
pub(super) fn check(view: &mut View<'_>, range: Range<u64>, macroblocks: u64) -> Result<(), Fault> {
    let zeros_max = ZEROS_BYTES + macroblocks / MACROBLOCKS_PER_ZERO;
    let end = range.end.min(view.length());
    let mut at = range.start.next_multiple_of(SECTOR_BYTES);
    let mut zeros = 0;
    while at + SECTOR_BYTES <= end {
        let most = ((end - at) / SECTOR_BYTES * SECTOR_BYTES).min(PIECE_BYTES);
        let bytes = view.take(at, most as usize).ok_or(Fault::new(at, "truncated"))?;
        if let Some(place) = text_sector(bytes) {
            return Err(Fault::new(at + place, "text"));
        }
        for sector in bytes.chunks_exact(SECTOR_BYTES as usize) {
            at += SECTOR_BYTES;
            zeros = if sector.iter().all(|byte| *byte == 0) { zeros + SECTOR_BYTES } else { 0 };
            if zeros > zeros_max {
                return Err(Fault::new(at - zeros, "zeros"));
            }
        }
    }
    Ok(())
}
