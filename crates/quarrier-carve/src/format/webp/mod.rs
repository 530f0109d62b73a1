//! WebP: a RIFF of a few chunks, each known.
//!
//! *WebP Container Specification*; RFC 9649.

use super::riff::Chunk;
use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// WebP. Has no checksum: what is verified is the chain of chunks, and how their pictures begin.
pub struct Webp;

const WEBP: Kind = Kind::new("webp");

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
        if length < 12 + 8 {
            return Verdict::Not;
        }
        let end = view.length();
        let (mut at, mut sure, mut pictures) = (12, 0, 0u32);
        while at < length {
            let chunk = Chunk::read(view, at).filter(|chunk| is_known(chunk.name));
            let broken = |reason: &str| Verdict::Broken {
                kind: WEBP,
                sure,
                at: (at + 8).min(end),
                reason: reason.to_string(),
            };
            let Some(chunk) = chunk else {
                return if at == 12 { Verdict::Not } else { broken("not a chunk") };
            };
            let next = chunk.next(at);
            // Some forget the padding of the last chunk, or to count it.
            if chunk.end(at) > length {
                return broken("a chunk beyond the end");
            }
            match is_picture(view, at + 8, &chunk) {
                Some(true) => pictures += 1,
                Some(false) => {}
                None if at == 12 => return Verdict::Not,
                None => return broken("a picture that begins as none does"),
            }
            sure = at;
            at = next;
        }
        if length > end {
            return Verdict::Broken { kind: WEBP, sure, at: end, reason: "truncated".to_string() };
        }
        match pictures {
            0 => Verdict::Broken { kind: WEBP, sure, at: length, reason: "no picture".to_string() },
            _ => Verdict::Whole { length, kind: WEBP },
        }
    }
}

fn is_known(name: [u8; 4]) -> bool {
    let names: [&[u8; 4]; 9] =
        [b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF", b"EXIF", b"ICCP", b"XMP "];
    names.contains(&&name)
}

/// Whether the chunk is a picture; `None` where it begins as no picture does.
fn is_picture(view: &mut View<'_>, at: u64, chunk: &Chunk) -> Option<bool> {
    match &chunk.name {
        b"VP8 " => {
            let head = view.array::<10>(at)?;
            let tag = u64::from(head[0]) | u64::from(head[1]) << 8 | u64::from(head[2]) << 16;
            let first_bytes = tag >> 5;
            let is_key = tag & 1 == 0 && head[3..6] == [0x9D, 0x01, 0x2A];
            (is_key && first_bytes < chunk.bytes).then_some(true)
        }
        b"VP8L" => {
            let head = view.array::<5>(at)?;
            (head[0] == 0x2F && head[4] >> 5 == 0 && chunk.bytes > 5).then_some(true)
        }
        b"ANMF" => {
            let inner = Chunk::read(view, at + 16)?;
            let is_inner = matches!(&inner.name, b"VP8 " | b"VP8L" | b"ALPH");
            (is_inner && inner.bytes.checked_add(24)? <= chunk.bytes).then_some(true)
        }
        b"VP8X" => (chunk.bytes == 10).then_some(false),
        _ => Some(false),
    }
}
