//! AVI: a RIFF file of pictures and sound, with one chunk per frame.
//!
//! Microsoft, *AVI RIFF File Reference*; *OpenDML AVI File Format Extensions 1.02* (1996).

use super::riff::{Chunk, HEADER_BYTES};
use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// AVI, with the parts that OpenDML appends. It has no checksum: the validator checks the chain of
/// chunks, down to each frame.
pub struct Avi;

const AVI: Kind = Kind::new("avi");

/// Maximum nesting of lists, exclusive.
const DEPTH_MAX: usize = 8;

/// The place of a fault, and the reason.
type Fault = (u64, &'static str);

impl Format for Avi {
    fn kinds(&self) -> &[Kind] {
        &[AVI]
    }

    fn signatures(&self) -> &[Signature] {
        &[Signature { hex: "52 49 46 46 ?? ?? ?? ?? 41 56 49 20 4C 49 53 54", at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        if !view.is_at(20, b"hdrlavih") {
            return Verdict::Not;
        }
        let mut at = 0;
        let mut pictures = 0;
        loop {
            match part(view, at, &mut pictures) {
                Ok(end) => at = end,
                Err((place, why)) => return Verdict::broken(view, AVI, at, place, why),
            }
            let next = at + at % 2;
            if !(view.is_at(next, b"RIFF") && view.is_at(next + 8, b"AVIX")) {
                break;
            }
            at = next;
        }
        match pictures {
            0 => Verdict::broken(view, AVI, 0, at, "no pictures"),
            _ => Verdict::Whole { length: at, kind: AVI },
        }
    }
}

/// Reads the RIFF chunk at `at`; returns its end.
fn part(view: &mut View<'_>, at: u64, pictures: &mut u64) -> Result<u64, Fault> {
    let riff = Chunk::read(view, at).ok_or((at, "truncated"))?;
    let end = riff.end(at);
    // The ends of the open lists.
    let mut open = vec![end];
    let mut at = at + 12;
    while let Some(&until) = open.last() {
        if at >= until {
            open.pop();
            at = at.min(until + until % 2);
            continue;
        }
        let chunk = Chunk::read(view, at).ok_or((at, "no chunk begins here"))?;
        if chunk.end(at) > until {
            return Err((at, "chunks do not fit in their list"));
        }
        if chunk.end(at) > view.length() {
            return Err((view.length(), "truncated"));
        }
        let is_list = chunk.name == *b"LIST";
        if is_list && open.len() < DEPTH_MAX && is_opened(view, at) {
            open.push(chunk.end(at));
            at += HEADER_BYTES + 4;
            continue;
        }
        if !is_list && !is_known(chunk.name, open.len()) {
            return Err((at, "chunk of no known kind"));
        }
        *pictures += u64::from(chunk.name.ends_with(b"dc") || chunk.name.ends_with(b"db"));
        at = chunk.next(at);
    }
    Ok(end)
}

/// Returns whether to descend into the list at `at`.
fn is_opened(view: &mut View<'_>, at: u64) -> bool {
    let kind = view.array::<4>(at + HEADER_BYTES);
    matches!(&kind, Some(kind) if [b"hdrl", b"strl", b"movi", b"rec "].contains(&kind))
}

/// Returns whether AVI files have chunks of this name; inside lists, only few names occur.
fn is_known(name: [u8; 4], depth: usize) -> bool {
    if depth == 1 {
        return name.iter().all(|letter| letter.is_ascii_alphanumeric() || *letter == b' ');
    }
    match &name {
        b"JUNK" | b"avih" | b"strh" | b"strf" | b"strd" | b"strn" | b"indx" | b"vprp" => true,
        [b'i', b'x', a, b] => a.is_ascii_digit() && b.is_ascii_digit(),
        [a, b, kind @ ..] => {
            a.is_ascii_hexdigit()
                && b.is_ascii_hexdigit()
                && [*b"dc", *b"db", *b"wb", *b"pc", *b"tx", *b"iv", *b"__"].contains(kind)
        }
    }
}
