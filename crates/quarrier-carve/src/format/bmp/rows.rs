//! Detects rows that cannot belong to the picture: with colours beyond the palette, or with padding
//! that is not zero. Some writers produce such rows throughout; if they begin at some row, foreign
//! bytes begin there.

use super::Header;
use crate::view::{SECTOR_BYTES, TAKE_BYTES_MAX, View};

/// Minimum number of clean rows at the start; then, this many of this many rows must be odd.
const CLEAN_ROWS: u64 = 8;
const ODD_ROWS: (u64, u64) = (6, 8);

/// Returns the start of the sector from which on rows do not belong to the picture.
pub(super) fn foreign(view: &mut View<'_>, header: &Header) -> Option<u64> {
    let row_bytes = header.row_bytes();
    let used = (header.width * header.bits).div_ceil(8) as usize;
    let colours = match header.bits {
        8 if header.colours > 0 => header.colours,
        _ => u64::MAX,
    };
    let is_telling = used as u64 != row_bytes || colours < 256;
    if !is_telling || row_bytes > TAKE_BYTES_MAX as u64 {
        return None;
    }
    let mut first: Option<(u64, u64)> = None;
    let mut odd = 0;
    for row in 0..header.height {
        let at = header.pixels_at + row * row_bytes;
        let Some(bytes) = view.take(at, row_bytes as usize) else { return Some(at) };
        let (pixels, padding) = bytes.split_at(used);
        let beyond = |byte: &u8| u64::from(*byte) >= colours;
        let place = match (colours < 256).then(|| pixels.iter().position(beyond)).flatten() {
            Some(place) => Some(place),
            None => padding.iter().position(|byte| *byte != 0).map(|place| used + place),
        };
        let Some(place) = place else {
            if first.is_some_and(|(first, _)| row >= first + ODD_ROWS.1) {
                return None;
            }
            continue;
        };
        let (begun, from) = *first.get_or_insert((row, at + place as u64));
        if begun < CLEAN_ROWS || row >= begun + ODD_ROWS.1 {
            return None;
        }
        odd += 1;
        if odd == ODD_ROWS.0 {
            return Some(from / SECTOR_BYTES * SECTOR_BYTES);
        }
    }
    None
}
