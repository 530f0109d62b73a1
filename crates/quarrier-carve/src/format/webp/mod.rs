//! WebP: RIFF with a few known chunks.
//!
//! *WebP Container Specification*; RFC 9649.

mod alien;
mod bools;
mod lossless;
mod lossy;
mod picture;
mod prefix;
mod tables;
mod tokens;

use super::riff::Chunk;
use super::{Format, Kind, Signature, Verdict};
use crate::mend::{Alien, Broken, MendContext, Rest, without_gaps};
use crate::view::{Extent, View};

use picture::{begins_as_picture, read_picture};

/// WebP. It has no checksum: the validator checks the chain of chunks, and that each picture, when
/// decoded, ends with its chunk.
pub struct Webp;

const WEBP: Kind = Kind::new("webp");
const FIRST_CHUNK: u64 = 12;

/// An error in a picture, and its place in the file.
#[derive(Debug, Clone, Copy)]
struct Fault {
    at: u64,
    reason: &'static str,
}

impl Fault {
    fn new(at: u64, reason: &'static str) -> Self {
        Fault { at, reason }
    }
}

impl Format for Webp {
    fn kinds(&self) -> &[Kind] {
        &[WEBP]
    }

    fn signatures(&self) -> &[Signature] {
        &[Signature { hex: "52 49 46 46 ?? ?? ?? ?? 57 45 42 50 56 50 38", at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let Some(bytes) = view.u32_le(4) else { return Verdict::Not };
        let length = 8 + u64::from(bytes);
        if length < FIRST_CHUNK + 8 {
            return Verdict::Not;
        }
        let (mut at, mut sure, mut pictures, mut canvas) = (FIRST_CHUNK, 0, 0u32, (0, 0));
        while at < length {
            let chunk = Chunk::read(view, at).filter(|chunk| is_known(chunk.name));
            let Some(chunk) = chunk.filter(|chunk| begins_as_picture(view, at, chunk)) else {
                return match at {
                    FIRST_CHUNK => Verdict::Not,
                    _ => Verdict::broken(view, WEBP, sure, at + 8, "not a chunk"),
                };
            };
            // Some writers omit the padding of the last chunk, or do not count it.
            if chunk.end(at) > length {
                return Verdict::broken(view, WEBP, sure, at + 8, "a chunk beyond the end");
            }
            match read_picture(view, at, &chunk, &mut canvas) {
                Err(fault) => return Verdict::broken(view, WEBP, sure, fault.at, fault.reason),
                Ok(is_picture) => pictures += u32::from(is_picture),
            }
            at = chunk.next(at);
            if matches!(&chunk.name, b"VP8X" | b"VP8 " | b"VP8L" | b"ALPH" | b"ANMF") {
                sure = at.min(length);
            }
        }
        if length > view.length() {
            return Verdict::broken(view, WEBP, sure, length, "truncated");
        }
        match pictures {
            0 => Verdict::broken(view, WEBP, sure, length, "no picture"),
            _ => Verdict::Whole { length, kind: WEBP },
        }
    }

    fn mend(
        &self,
        view: &mut View<'_>,
        _: &Broken,
        context: &MendContext<'_>,
    ) -> Option<Vec<Extent>> {
        let end = 8 + u64::from(view.u32_le(4)?);
        let alien = Alien { zeros: true, noise: false };
        without_gaps(view, context, end, alien, self)
    }
}

impl Rest for Webp {
    /// Trusts the header: the mended file is decoded at the end.
    fn check(&self, view: &mut View<'_>) -> Option<u64> {
        let length = 8 + u64::from(view.u32_le(4)?);
        (length <= view.length()).then_some(length)
    }

    fn has_none(&self) -> bool {
        true
    }
}

fn is_known(name: [u8; 4]) -> bool {
    let names: [&[u8; 4]; 9] =
        [b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF", b"EXIF", b"ICCP", b"XMP "];
    names.contains(&&name)
}
