//! 7z archives: a header that says where the other one is, behind all that is packed.
//!
//! Igor Pavlov, *7zFormat.txt*. Both headers have checksums; what lies between them is not read,
//! but the second one stands where it should only if all of it is there.

use super::{Format, Kind, Signature, Verdict};
use crate::crc32;
use crate::view::View;

/// 7z. The checksums of both headers are verified.
pub struct SevenZip;

const SEVEN_ZIP: Kind = Kind::new("7z");
const START_BYTES: u64 = 32;
/// How the second header begins: as it is, or packed.
const HEADER_KINDS: [u8; 2] = [0x01, 0x17];

impl Format for SevenZip {
    fn kinds(&self) -> &[Kind] {
        &[SEVEN_ZIP]
    }

    fn signatures(&self) -> &[Signature] {
        &[Signature { hex: "37 7A BC AF 27 1C 00", at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let told = view.u32_le(8);
        if told.is_none() || crc32::of_range(view, 12..START_BYTES) != told {
            return Verdict::Not;
        }
        let numbers = (view.u64_le(12), view.u64_le(20), view.u32_le(28));
        let (Some(offset), Some(bytes), Some(crc)) = numbers else { return Verdict::Not };
        let Some(at) = START_BYTES.checked_add(offset) else { return Verdict::Not };
        let Some(end) = at.checked_add(bytes).filter(|_| bytes > 0) else { return Verdict::Not };
        let is_kind = view.byte(at).is_some_and(|kind| HEADER_KINDS.contains(&kind));
        match is_kind && end <= view.length() && crc32::of_range(view, at..end) == Some(crc) {
            true => Verdict::Whole { length: end, kind: SEVEN_ZIP },
            false => Verdict::broken(view, SEVEN_ZIP, START_BYTES, end, "the header at its end"),
        }
    }
}
