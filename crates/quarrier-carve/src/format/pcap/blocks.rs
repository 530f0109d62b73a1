//! pcapng: blocks with their length at both ends.

use super::super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// pcapng: the validator checks that each block has its length at both of its ends.
pub struct PcapNg;

const PCAPNG: Kind = Kind::new("pcapng");

const SECTION: u32 = 0x0A0D_0D0A;
const ORDER: u32 = 0x1A2B_3C4D;
const BLOCK_BYTES_MAX: u64 = 64 << 20;

impl Format for PcapNg {
    fn kinds(&self) -> &[Kind] {
        &[PCAPNG]
    }

    fn signatures(&self) -> &[Signature] {
        &[
            Signature { hex: "0A 0D 0D 0A ?? ?? ?? ?? 4D 3C 2B 1A", at: 0 },
            Signature { hex: "0A 0D 0D 0A ?? ?? ?? ?? 1A 2B 3C 4D", at: 0 },
        ]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let mut at = 0;
        let mut count = 0;
        let mut is_big = false;
        loop {
            match block(view, at, &mut is_big) {
                Ok(Some(end)) => at = end,
                // A section header alone is not a file.
                Ok(None) if count > 1 => return Verdict::Whole { length: at, kind: PCAPNG },
                Err(place) if count > 1 => {
                    return Verdict::broken(view, PCAPNG, at, place, "block without an end");
                }
                _ => return Verdict::Not,
            }
            count += 1;
        }
    }
}

/// Returns the end of the block at `at`, or `None` if there is none. `Err` with the place where it
/// should end.
fn block(view: &mut View<'_>, at: u64, is_big: &mut bool) -> Result<Option<u64>, u64> {
    let number = |view: &mut View<'_>, at: u64, is_big: bool| {
        if is_big { view.u32_be(at) } else { view.u32_le(at) }
    };
    // The type of a section header is the same in both byte orders, and its contents show the
    // order.
    let Some(kind) = number(view, at, *is_big) else { return Ok(None) };
    let is_section = kind == SECTION;
    if is_section {
        let order = number(view, at + 8, false);
        match order {
            Some(ORDER) => *is_big = false,
            Some(other) if other == ORDER.swap_bytes() => *is_big = true,
            _ => return Ok(None),
        }
    } else if at == 0 || !matches!(kind, 1..=6 | 9 | 10 | 0xBAD | 0x4000_0BAD) {
        return Ok(None);
    }
    let Some(bytes) = number(view, at + 4, *is_big).map(u64::from) else { return Ok(None) };
    if bytes < 12 || bytes % 4 != 0 || bytes > BLOCK_BYTES_MAX {
        return Ok(None);
    }
    let end = at + bytes;
    match number(view, end - 4, *is_big) {
        Some(again) if u64::from(again) == bytes => Ok(Some(end)),
        _ => Err(end),
    }
}
