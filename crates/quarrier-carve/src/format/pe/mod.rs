//! PE: Windows programs and libraries.
//!
//! Microsoft, *PE Format*.

use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// Portable Executable. It ends with the last of its sections, symbols and certificates. Data that
/// installers append do not belong to it. The validator verifies the checksum if there is one; it
/// is wrong if something was appended.
pub struct Pe;

const EXE: Kind = Kind::new("exe");
const DLL: Kind = Kind::new("dll");

const SECTIONS_MAX: u64 = 96;

/// The contents of the headers.
struct Headers {
    kind: Kind,
    /// The offset of the optional header.
    optional: u64,
    is_64: bool,
    symbols: (u64, u64),
    sections: u64,
    sections_count: u64,
}

impl Format for Pe {
    fn kinds(&self) -> &[Kind] {
        &[EXE, DLL]
    }

    fn signatures(&self) -> &[Signature] {
        &[Signature { hex: "4D 5A ?? 0? 0? 00 00 00 ?? 00", at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let Some(headers) = headers(view) else { return Verdict::Not };
        let kind = headers.kind;
        let Some(end) = end(view, &headers) else {
            return Verdict::broken(view, kind, 0, view.length(), "tables");
        };
        if end > view.length() {
            return Verdict::broken(view, kind, 0, view.length(), "truncated");
        }
        let stated = view.u32_le(headers.optional + 64).unwrap_or(0);
        match stated == 0 || checksum(view, end, headers.optional + 64) == Some(stated) {
            true => Verdict::Whole { length: end, kind },
            false => Verdict::broken(view, kind, 0, end, "checksum, or something is appended"),
        }
    }
}

fn headers(view: &mut View<'_>) -> Option<Headers> {
    let at = u64::from(view.u32_le(60)?);
    if !(64..=0x1000).contains(&at) || !view.is_at(at, b"PE\0\0") {
        return None;
    }
    let sections_count = u64::from(view.u16_le(at + 6)?);
    let symbols = (u64::from(view.u32_le(at + 12)?), u64::from(view.u32_le(at + 16)?));
    let optional_bytes = u64::from(view.u16_le(at + 20)?);
    let flags = view.u16_le(at + 22)?;
    let optional = at + 24;
    let is_64 = match view.u16_le(optional)? {
        0x10B => false,
        0x20B => true,
        _ => return None,
    };
    // A program, not an object file.
    let is_right = flags & 2 != 0
        && (1..=SECTIONS_MAX).contains(&sections_count)
        && (96..=1024).contains(&optional_bytes);
    let kind = if flags & 0x2000 != 0 { DLL } else { EXE };
    let sections = optional + optional_bytes;
    is_right.then_some(Headers { kind, optional, is_64, symbols, sections, sections_count })
}

/// Returns the end of the file's last part; `None` if tables cannot be read.
fn end(view: &mut View<'_>, headers: &Headers) -> Option<u64> {
    let mut end = u64::from(view.u32_le(headers.optional + 60)?);
    for index in 0..headers.sections_count {
        let at = headers.sections + index * 40;
        let [bytes, offset] = [view.u32_le(at + 16)?, view.u32_le(at + 20)?].map(u64::from);
        if bytes > 0 && offset > 0 {
            end = end.max(offset + bytes);
        }
    }
    let (symbols, count) = headers.symbols;
    if symbols > 0 && count > 0 {
        let strings = symbols + count * 18;
        end = end.max(strings + u64::from(view.u32_le(strings)?));
    }
    let folders = headers.optional + if headers.is_64 { 112 } else { 96 };
    if view.u32_le(folders - 4)? > 4 && folders + 40 <= headers.sections {
        let [offset, bytes] =
            [view.u32_le(folders + 32)?, view.u32_le(folders + 36)?].map(u64::from);
        if bytes > 0 {
            end = end.max(offset + bytes);
        }
    }
    Some(end)
}

/// Returns the sum of all words but the two at `field`, folded to 16 bits, plus the length.
fn checksum(view: &mut View<'_>, end: u64, field: u64) -> Option<u32> {
    let mut sum = 0u64;
    let mut odd: Option<u8> = None;
    let mut add = |bytes: &[u8]| {
        let mut bytes = bytes;
        if let (Some(low), Some((high, rest))) = (odd, bytes.split_first()) {
            sum += u64::from(u16::from_le_bytes([low, *high]));
            odd = None;
            bytes = rest;
        }
        let (pairs, rest) = bytes.as_chunks::<2>();
        sum += pairs.iter().map(|pair| u64::from(u16::from_le_bytes(*pair))).sum::<u64>();
        odd = rest.first().copied().or(odd);
    };
    let after = field + 4;
    let read = view.each(0..field, &mut add) + view.each(after..end, &mut add);
    if read + 4 != end {
        return None;
    }
    sum += u64::from(odd.unwrap_or(0));
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    Some((sum as u32).wrapping_add(end as u32))
}
