//! Windows registry hives: bins of cells.
//!
//! *Windows NT Registry File (REGF) format*, libregf.

use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// Registry hives. The validator verifies the checksum of the header, the bins, and the cells in
/// them.
pub struct Hive;

const HIVE: Kind = Kind { name: "hive", extension: "dat" };
const HEADER_BYTES: u64 = 4096;

impl Format for Hive {
    fn kinds(&self) -> &[Kind] {
        &[HIVE]
    }

    fn signatures(&self) -> &[Signature] {
        // "regf", version 1.
        const HEX: &str = "72 65 67 66 ?? ?? ?? ?? ?? ?? ?? ?? ?? ?? ?? ?? ?? ?? ?? ?? 01 00 00 00";
        &[Signature { hex: HEX, at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let Some(header) = view.array::<512>(0) else { return Verdict::Not };
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|index| header[at + index]));
        let sum = (0..127).map(|index| word(4 * index)).fold(0, |sum, word| sum ^ word);
        let sum = match sum {
            0 => 1,
            u32::MAX => u32::MAX - 1,
            sum => sum,
        };
        let bins = u64::from(word(40));
        if sum != word(508) || bins == 0 || !bins.is_multiple_of(4096) {
            return Verdict::Not;
        }
        let end = HEADER_BYTES + bins;
        let mut at = HEADER_BYTES;
        while at < end {
            match bin(view, at) {
                Some(bytes) if at + bytes <= end => at += bytes,
                _ => return Verdict::broken(view, HIVE, at.min(end), at, "no bin of cells"),
            }
        }
        Verdict::Whole { length: end, kind: HIVE }
    }
}

/// Returns the size of the bin at `at`, if it is one, with valid cells up to its end.
fn bin(view: &mut View<'_>, at: u64) -> Option<u64> {
    let bytes = u64::from(view.u32_le(at + 8)?);
    let is_bin = view.is_at(at, b"hbin") && u64::from(view.u32_le(at + 4)?) == at - HEADER_BYTES;
    if !is_bin || bytes == 0 || !bytes.is_multiple_of(4096) {
        return None;
    }
    let mut cell = 32;
    while cell < bytes {
        // Negative if the cell is in use.
        let length = u64::from((view.u32_le(at + cell)? as i32).unsigned_abs());
        if length < 8 || !length.is_multiple_of(8) {
            return None;
        }
        cell += length;
    }
    // The last byte must exist.
    view.byte(at + bytes - 1)?;
    (cell == bytes).then_some(bytes)
}
