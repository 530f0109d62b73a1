//! Compressed strips: measures their uncompressed size without keeping the data. TIFF 6.0, sections
//! 9, 13 and 22.

use std::ops::Range;

use crate::view::View;

/// Maximum number of bytes after the last code.
const SLACK_BYTES: u64 = 4;
const CLEAR: u16 = 256;
const END: u16 = 257;
const CODES_MAX: u16 = 4096;

/// Reads codes of 9 to 12 bits, the most significant bit first.
struct Codes {
    at: u64,
    end: u64,
    bits: u32,
    count: u32,
}

impl Codes {
    fn next(&mut self, view: &mut View<'_>, width: u32) -> Option<u16> {
        while self.count < width {
            if self.at >= self.end {
                return None;
            }
            self.bits = self.bits << 8 | u32::from(view.byte(self.at)?);
            self.at += 1;
            self.count += 8;
        }
        self.count -= width;
        Some((self.bits >> self.count & ((1 << width) - 1)) as u16)
    }
}

/// Checks that the LZW codes of `range` yield `expected` bytes. `Err` with the byte at which they
/// do not.
pub(super) fn lzw(view: &mut View<'_>, range: Range<u64>, expected: u64) -> Result<(), u64> {
    // The first code clears the table; before TIFF 6.0 the order of bits was reversed.
    if view.byte(range.start) == Some(0) {
        return Ok(());
    }
    let mut codes = Codes { at: range.start, end: range.end, bits: 0, count: 0 };
    let mut lengths = vec![1u32; usize::from(CODES_MAX)];
    let (mut next, mut width, mut before) = (END + 1, 9, None);
    let mut count = 0u64;
    while count < expected {
        let Some(code) = codes.next(view, width) else { return Err(codes.at) };
        match (code, before) {
            (CLEAR, _) => {
                (next, width, before) = (END + 1, 9, None);
                continue;
            }
            (END, _) => return Err(codes.at),
            (_, None) if code > END => return Err(codes.at),
            (_, None) => {}
            (_, Some(_)) if code > next || next >= CODES_MAX => return Err(codes.at),
            (_, Some(before)) => {
                lengths[usize::from(next)] = lengths[usize::from(before)] + 1;
                next += 1;
                // The width changes one code earlier than necessary.
                width = match next {
                    0..=510 => 9,
                    511..=1022 => 10,
                    1023..=2046 => 11,
                    _ => 12,
                };
            }
        }
        count += u64::from(lengths[usize::from(code)]);
        before = Some(code);
    }
    let is_end = count == expected && codes.end - codes.at <= SLACK_BYTES;
    if is_end { Ok(()) } else { Err(codes.at) }
}

/// Checks that the runs of `range` yield `expected` bytes. `Err` with the byte at which they do
/// not.
pub(super) fn pack_bits(view: &mut View<'_>, range: Range<u64>, expected: u64) -> Result<(), u64> {
    let mut at = range.start;
    let mut count = 0;
    while count < expected {
        let length = view.byte(at).filter(|_| at < range.end).ok_or(at)?;
        let (bytes, pixels) = match length {
            0..=127 => (1 + u64::from(length), 1 + u64::from(length)),
            128 => (0, 0),
            129..=255 => (1, 257 - u64::from(length)),
        };
        at += 1 + bytes;
        count += pixels;
    }
    let is_end = count == expected && at <= range.end && range.end - at <= SLACK_BYTES;
    if is_end { Ok(()) } else { Err(at) }
}

/// Checks the markers of the JPEG stream in `range`. `Err` with the byte at which it is invalid.
pub(super) fn jpeg(view: &mut View<'_>, range: Range<u64>) -> Result<(), u64> {
    if !view.is_at(range.start, &[0xFF, 0xD8]) {
        return Err(range.start);
    }
    let mut at = range.start + 2;
    loop {
        let [mark, kind, high, low] = view.array::<4>(at).unwrap_or([0xFF, 0xD9, 0, 0]);
        let end = at + 2 + u64::from(u16::from_be_bytes([high, low]));
        match (mark, kind) {
            (0xFF, 0xD9) if at + 2 <= range.end => return Ok(()),
            (0xFF, 0xC0..=0xFE) if !(0xD0..=0xD9).contains(&kind) && end <= range.end => at = end,
            _ => return Err(at),
        }
        if kind == 0xDA {
            at = scan_end(view, at, range.end)?;
        }
    }
}

/// Returns the end of the scan whose data begin at `at`: the first marker that is not part of a
/// scan.
fn scan_end(view: &mut View<'_>, mut at: u64, end: u64) -> Result<u64, u64> {
    loop {
        let mark = view.find(at..end, &[0xFF]).ok_or(end)?;
        match view.byte(mark + 1) {
            Some(0 | 0xD0..=0xD7) => at = (mark + 2).min(end),
            Some(0xFF) => at = mark + 1,
            _ => return Ok(mark),
        }
    }
}
