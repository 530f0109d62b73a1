//! Outlook mail stores.
//!
//! MS-PST: the header has the length of the file; allocation maps are at fixed places.

use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// Mail stores. The validator verifies the checksum of the header, the roots of both trees, and
/// every map. It does not read the rest.
pub struct Pst;

const PST: Kind = Kind::new("pst");
const PAGE_BYTES: u64 = 512;
/// The offset of the first map, and the distance between maps, which is the size that each covers.
const FIRST_MAP: u64 = 0x4400;
const MAPPED_BYTES: u64 = 496 * 8 * 64;
const NODES: u8 = 0x81;
const BLOCKS: u8 = 0x80;
const MAP: u8 = 0x84;

impl Format for Pst {
    fn kinds(&self) -> &[Kind] {
        &[PST]
    }

    fn signatures(&self) -> &[Signature] {
        // "!BDN", a checksum, "SM".
        &[Signature { hex: "21 42 44 4E ?? ?? ?? ?? 53 4D", at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let Some(header) = view.array::<512>(0) else { return Verdict::Not };
        let sum = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
        if checksum(&header[8..8 + 471]) != sum {
            return Verdict::Not;
        }
        let eight =
            |at: usize| u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|n| header[at + n]));
        let four =
            |at: usize| u64::from(u32::from_le_bytes([0, 1, 2, 3].map(|index| header[at + index])));
        let version = u16::from_le_bytes([header[10], header[11]]);
        let (length, nodes, blocks, kind_at) = match version {
            14 | 15 => (four(168), four(188), four(196), 500),
            23..=35 => (eight(184), eight(224), eight(240), 496),
            _ => return Verdict::broken(view, PST, 512, 512, "pages of 4 KiB"),
        };
        for (place, kind) in [(nodes, NODES), (blocks, BLOCKS)] {
            if !is_page(view, place, kind, kind_at) {
                return Verdict::broken(view, PST, 512, place.max(512), "the root of a tree");
            }
        }
        let mut map = FIRST_MAP;
        while map < length {
            if !is_page(view, map, MAP, kind_at) {
                return Verdict::broken(view, PST, 512, map, "an allocation map");
            }
            map += MAPPED_BYTES;
        }
        match length >= FIRST_MAP + PAGE_BYTES && length <= view.length() {
            true => Verdict::Whole { length, kind: PST },
            false => Verdict::broken(view, PST, 512, view.length(), "truncated"),
        }
    }
}

/// Whether a page of this kind is at `place`; a page states its kind twice.
fn is_page(view: &mut View<'_>, place: u64, kind: u8, kind_at: u64) -> bool {
    place.checked_add(kind_at).and_then(|at| view.array::<2>(at)) == Some([kind, kind])
}

/// Returns the CRC-32 with an initial value of zero, and without inversion.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xEDB8_8320 * (sum & 1)))
    })
}
