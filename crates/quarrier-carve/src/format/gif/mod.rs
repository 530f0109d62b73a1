//! GIF: a chain of blocks, each with its length, up to a trailer.
//!
//! CompuServe, *Graphics Interchange Format, Version 89a* (1990).

use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// GIF 87a and 89a. It has no checksum: the validator checks the chain of blocks, and that every
/// picture has LZW codes.
pub struct Gif;

const GIF: Kind = Kind::new("gif");

impl Format for Gif {
    fn kinds(&self) -> &[Kind] {
        &[GIF]
    }

    fn signatures(&self) -> &[Signature] {
        &[
            Signature { hex: "47 49 46 38 37 61", at: 0 },
            Signature { hex: "47 49 46 38 39 61", at: 0 },
        ]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let Some(screen) = view.array::<13>(0) else { return Verdict::Not };
        let (width, height) = (&screen[6..8], &screen[8..10]);
        if width == [0, 0] || height == [0, 0] {
            return Verdict::Not;
        }
        let mut at = 13 + table_bytes(screen[10]);
        let mut sure = 0;
        let mut pictures = 0;
        loop {
            let next = match view.byte(at) {
                Some(0x21) => blocks(view, at + 2),
                Some(0x2C) => picture(view, at).inspect(|_| pictures += 1),
                Some(0x3B) if pictures > 0 => return Verdict::Whole { length: at + 1, kind: GIF },
                Some(0x3B) => return Verdict::Not,
                Some(_) => return Verdict::broken(view, GIF, sure, at, "no block begins here"),
                None => return Verdict::broken(view, GIF, sure, at, "truncated"),
            };
            match next {
                Ok(next) => at = next,
                Err(place) => {
                    return Verdict::broken(view, GIF, sure, place, "blocks without an end");
                }
            }
            if pictures > 0 {
                sure = at;
            }
        }
    }
}

/// Returns the size of the colour table by the flags of a screen or a picture.
fn table_bytes(flags: u8) -> u64 {
    if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) }
}

/// Returns the end of the chain of blocks that begins at `at`, or the place where it breaks.
fn blocks(view: &mut View<'_>, mut at: u64) -> Result<u64, u64> {
    loop {
        match view.byte(at) {
            Some(0) => return Ok(at + 1),
            Some(bytes) => at += 1 + u64::from(bytes),
            None => return Err(at),
        }
    }
}

/// Returns the end of the picture whose descriptor begins at `at`.
fn picture(view: &mut View<'_>, at: u64) -> Result<u64, u64> {
    let descriptor = view.array::<10>(at).ok_or(at)?;
    let codes = at + 10 + table_bytes(descriptor[9]);
    // The minimum number of bits per code.
    match view.byte(codes) {
        Some(1..=11) => blocks(view, codes + 1),
        _ => Err(codes),
    }
}
