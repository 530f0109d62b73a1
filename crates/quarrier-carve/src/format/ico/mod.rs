//! Windows icons and cursors: a list of pictures, each a PNG or a bitmap without its file header.

use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// ICO and CUR. They have no checksum: the validator checks that the list and the pictures agree.
pub struct Ico;

const ICO: Kind = Kind::new("ico");
const CUR: Kind = Kind::new("cur");
const ENTRY_BYTES: u64 = 16;

impl Format for Ico {
    fn kinds(&self) -> &[Kind] {
        &[ICO, CUR]
    }

    fn signatures(&self) -> &[Signature] {
        // The first picture is smaller than 16 MiB and directly follows the list, whose length ends
        // in 6.
        &[
            Signature {
                hex: "00 00 01 00 ?? 00 ?? ?? ?? 00 0? 00 ?? 00 ?? ?? ?? 00 ?6 0? 00 00",
                at: 0,
            },
            Signature {
                hex: "00 00 02 00 ?? 00 ?? ?? ?? 00 ?? 00 ?? 00 ?? ?? ?? 00 ?6 0? 00 00",
                at: 0,
            },
        ]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let (Some(kind), Some(count)) = (view.u16_le(2), view.u16_le(4)) else {
            return Verdict::Not;
        };
        let kind = if kind == 1 { ICO } else { CUR };
        let list_end = 6 + ENTRY_BYTES * u64::from(count);
        if count == 0 || count > 255 {
            return Verdict::Not;
        }
        let end = view.length();
        let mut length = list_end;
        for index in 0..u64::from(count) {
            let entry = 6 + ENTRY_BYTES * index;
            let Some(entry) = view.array::<16>(entry) else { return Verdict::Not };
            let bytes = u64::from(u32::from_le_bytes([entry[8], entry[9], entry[10], entry[11]]));
            let at = u64::from(u32::from_le_bytes([entry[12], entry[13], entry[14], entry[15]]));
            if at < list_end || !(40..=1 << 24).contains(&bytes) || at > 1 << 28 || entry[3] != 0 {
                return Verdict::Not;
            }
            if at + bytes <= end && !is_picture(view, at, bytes, entry[0], entry[1]) {
                return match index {
                    0 => Verdict::Not,
                    _ => Verdict::Broken {
                        kind,
                        sure: 0,
                        at: (at + 40).min(end),
                        reason: "not a picture".to_string(),
                    },
                };
            }
            length = length.max(at + bytes);
        }
        if length > end {
            let reason = "truncated".to_string();
            return Verdict::Broken { kind, sure: 0, at: end, reason };
        }
        Verdict::Whole { length, kind }
    }
}

/// Returns whether a PNG or a bitmap of `width` × `height` pixels (0: 256) takes `bytes` bytes from
/// `at`.
fn is_picture(view: &mut View<'_>, at: u64, bytes: u64, width: u8, height: u8) -> bool {
    if view.is_at(at, b"\x89PNG\r\n\x1A\n") {
        return view.is_at(at + bytes - 8, b"IEND\xAE\x42\x60\x82");
    }
    let Some(header) = view.array::<16>(at) else { return false };
    let number = |at: usize| {
        u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let side = |side: u8| if side == 0 { 256 } else { u64::from(side) };
    let (w, h) = (u64::from(number(4)), u64::from(number(8)));
    let bits = u64::from(header[14]);
    let is_header = number(0) == 40
        && header[12..14] == [1, 0]
        && header[15] == 0
        && matches!(bits, 1 | 4 | 8 | 16 | 24 | 32);
    // Colours, then a mask with a bit per pixel. Sides that do not fit in a byte are stated as 0.
    let is_side = |real: u64, stated: u8| real == side(stated) || (stated == 0 && real > 255);
    is_header
        && is_side(w, width)
        && (is_side(h / 2, height) || h == side(height))
        && w <= 1 << 12
        && h <= 1 << 13
        && bytes >= 40 + (w * bits).div_ceil(32) * 4 * (h / 2)
}
