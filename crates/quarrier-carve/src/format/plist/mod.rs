//! Apple's binary property lists: objects, a table of their offsets, a trailer.
//!
//! *CFBinaryPList.c*. The trailer holds the size of references, but its place is known only after
//! all objects before it have been read.

use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// Property lists. The validator checks that objects, table and trailer agree.
pub struct Plist;

const BPLIST: Kind = Kind { name: "bplist", extension: "plist" };
const HEADER_BYTES: u64 = 8;
const OBJECTS_MAX: u64 = 1 << 24;

impl Format for Plist {
    fn kinds(&self) -> &[Kind] {
        &[BPLIST]
    }

    fn signatures(&self) -> &[Signature] {
        // "bplist00".
        &[Signature { hex: "62 70 6C 69 73 74 30 30", at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let mut furthest = HEADER_BYTES;
        for reference_bytes in [1, 2, 4, 3, 8] {
            match end(view, reference_bytes) {
                Ok(length) => return Verdict::Whole { length, kind: BPLIST },
                Err(at) => furthest = furthest.max(at),
            }
        }
        if furthest == HEADER_BYTES {
            return Verdict::Not;
        }
        Verdict::broken(view, BPLIST, HEADER_BYTES, furthest, "no table of objects")
    }
}

/// Returns the end of the file if references have this size, or the place of an invalid object.
fn end(view: &mut View<'_>, reference_bytes: u64) -> Result<u64, u64> {
    let mut at = HEADER_BYTES;
    for count in 0..OBJECTS_MAX {
        if count > 0 {
            for place_bytes in [1, 2, 3, 4, 8] {
                if let Some(end) = trailer(view, at, count, place_bytes, reference_bytes) {
                    return Ok(end);
                }
            }
        }
        at = object(view, at, reference_bytes).filter(|end| *end <= view.length()).ok_or(at)?;
    }
    Err(at)
}

/// Returns the end of the file if the table of `count` places begins at `at`.
fn trailer(
    view: &mut View<'_>,
    at: u64,
    count: u64,
    place_bytes: u64,
    reference_bytes: u64,
) -> Option<u64> {
    let place = at + count * place_bytes;
    let bytes = view.array::<32>(place)?;
    let eight = |at: usize| u64::from_be_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|n| bytes[at + n]));
    let is_trailer = u64::from(bytes[6]) == place_bytes
        && u64::from(bytes[7]) == reference_bytes
        && eight(8) == count
        && eight(16) < count
        && eight(24) == at;
    is_trailer.then_some(place + 32)
}

/// Returns the end of the object at `at`.
fn object(view: &mut View<'_>, at: u64, reference_bytes: u64) -> Option<u64> {
    let marker = view.byte(at)?;
    let low = u64::from(marker & 0x0F);
    let fixed = match marker >> 4 {
        0 => return matches!(low, 0 | 8 | 9 | 15).then_some(at + 1),
        1 if low <= 4 => return Some(at + 1 + (1 << low)),
        2 if low == 2 || low == 3 => return Some(at + 1 + (1 << low)),
        3 if low == 3 => return Some(at + 9),
        8 => return Some(at + 2 + low),
        4 | 5 => 1,
        6 => 2,
        0xA | 0xC => reference_bytes,
        0xD => 2 * reference_bytes,
        _ => return None,
    };
    let (count, from) = match low {
        0x0F => {
            let marker = view.byte(at + 1)?;
            let bytes = 1usize << (marker & 0x0F).min(3);
            if !(0x10..=0x13).contains(&marker) {
                return None;
            }
            let number = view.take(at + 2, bytes)?;
            let count = number.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
            (count, at + 2 + bytes as u64)
        }
        low => (low, at + 1),
    };
    from.checked_add(count.checked_mul(fixed)?)
}
