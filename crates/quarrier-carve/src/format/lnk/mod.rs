//! Windows shortcuts.
//!
//! MS-SHLLINK: a header that states which structures follow, each with its length.

use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// Windows shortcuts. They have no checksum: the validator checks the chain of structures up to the
/// block that ends it.
pub struct Lnk;

const LNK: Kind = Kind::new("lnk");
const HEADER_BYTES: u64 = 76;

impl Format for Lnk {
    fn kinds(&self) -> &[Kind] {
        &[LNK]
    }

    fn signatures(&self) -> &[Signature] {
        const HEX: &str = "4C 00 00 00 01 14 02 00 00 00 00 00 C0 00 00 00 00 00 00 46";
        &[Signature { hex: HEX, at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let Some(header) = view.array::<76>(0) else { return Verdict::Not };
        // Reserved bytes are zero.
        if header[66..76] != [0; 10] {
            return Verdict::Not;
        }
        let flags = u32::from_le_bytes([header[20], header[21], header[22], header[23]]);
        match end(view, flags) {
            Ok(length) => Verdict::Whole { length, kind: LNK },
            Err(at) => Verdict::broken(view, LNK, HEADER_BYTES, at, "a structure's length"),
        }
    }
}

/// Returns the end of the file, or the place of an invalid structure.
fn end(view: &mut View<'_>, flags: u32) -> Result<u64, u64> {
    let mut at = HEADER_BYTES;
    if flags & 1 != 0 {
        at = items(view, at).ok_or(at)?;
    }
    if flags & 2 != 0 {
        let bytes = u64::from(view.u32_le(at).ok_or(at)?);
        let head = u64::from(view.u32_le(at + 4).ok_or(at)?);
        if bytes < head || !(0x1C..=0x100).contains(&head) || bytes > 1 << 20 {
            return Err(at);
        }
        at += bytes;
    }
    let unit = if flags & 0x80 != 0 { 2 } else { 1 };
    for flag in [4, 8, 0x10, 0x20, 0x40] {
        if flags & flag != 0 {
            at += 2 + u64::from(view.u16_le(at).ok_or(at)?) * unit;
        }
    }
    loop {
        let bytes = view.u32_le(at).ok_or(at)?;
        if bytes < 4 {
            return Ok(at + 4);
        }
        let signature = view.u32_le(at + 4).ok_or(at)?;
        if !(8..=1 << 20).contains(&bytes) || !(0xA000_0001..=0xA000_000C).contains(&signature) {
            return Err(at);
        }
        at += u64::from(bytes);
    }
}

/// Returns the end of the list of items at `at`: each has its length, and the last is empty.
fn items(view: &mut View<'_>, at: u64) -> Option<u64> {
    let end = at + 2 + u64::from(view.u16_le(at)?);
    let mut item = at + 2;
    while item + 2 <= end {
        match view.u16_le(item)? {
            0 => return (item + 2 == end).then_some(end),
            1 => return None,
            bytes => item += u64::from(bytes),
        }
    }
    None
}
