//! Matroska and WebM: nested elements.
//!
//! RFC 8794 (EBML), RFC 9559 (Matroska).

mod element;

use std::ops::Range;

use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

use element::Element;

/// Films in EBML. The validator verifies the chain of elements, down to each block of a cluster.
/// Nothing marks the end of a live recording, which does not state its length.
pub struct Matroska;

const MKV: Kind = Kind::new("mkv");
const WEBM: Kind = Kind::new("webm");

const EBML: u32 = 0x1A45_DFA3;
const DOC_TYPE: u32 = 0x4282;
const SEGMENT: u32 = 0x1853_8067;
const CLUSTER: u32 = 0x1F43_B675;
const TRACKS: u32 = 0x1654_AE6B;
const VOID: u32 = 0xEC;
const CRC: u32 = 0xBF;

/// The elements of segments: seek head, information, tracks, clusters, cues, attachments, chapters,
/// tags.
const IN_SEGMENT: [u32; 10] = [
    0x114D_9B74,
    0x1549_A966,
    TRACKS,
    CLUSTER,
    0x1C53_BB6B,
    0x1941_A469,
    0x1043_A770,
    0x1254_C367,
    VOID,
    CRC,
];
/// The elements of clusters: time, silent tracks, position, size of the previous cluster, blocks
/// and groups of them, an encrypted block.
const IN_CLUSTER: [u32; 9] = [0xE7, 0x5854, 0xA7, 0xAB, 0xA3, 0xA0, 0xAF, VOID, CRC];

/// A fault in a file: its place and reason. The bytes before `sure` are valid.
struct Fault {
    sure: u64,
    at: u64,
    why: &'static str,
}

impl Format for Matroska {
    fn kinds(&self) -> &[Kind] {
        &[MKV, WEBM]
    }

    fn signatures(&self) -> &[Signature] {
        &[Signature { hex: "1A 45 DF A3", at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let Some((kind, begin)) = header(view) else { return Verdict::Not };
        let Some(segment) = Element::read(view, begin).filter(|one| one.id == SEGMENT) else {
            return Verdict::Not;
        };
        match segment_end(view, &segment) {
            Ok(length) => Verdict::Whole { length, kind },
            Err(fault) => Verdict::broken(view, kind, fault.sure, fault.at, fault.why),
        }
    }
}

/// Returns the type of the file, and the end of its header.
fn header(view: &mut View<'_>) -> Option<(Kind, u64)> {
    let header = Element::read(view, 0).filter(|one| one.id == EBML)?.body()?;
    if header.end - header.start > 1024 {
        return None;
    }
    let mut at = header.start;
    let mut kind = None;
    while at < header.end {
        let element = Element::read(view, at)?;
        let body = element.body().filter(|body| body.end <= header.end)?;
        if element.id == DOC_TYPE {
            kind = match view.take(body.start, (body.end - body.start) as usize)? {
                b"webm" => Some(WEBM),
                b"matroska" => Some(MKV),
                _ => None,
            };
        }
        at = body.end;
    }
    Some((kind?, at))
}

/// Verifies a segment, and returns its end.
fn segment_end(view: &mut View<'_>, segment: &Element) -> Result<u64, Fault> {
    let mut at = segment.begin;
    let mut clusters = 0;
    let mut sure = 0;
    let end = segment.end.unwrap_or(u64::MAX);
    while at < end {
        let fault = |at, why| Fault { sure, at, why };
        let element = Element::read(view, at).filter(|one| IN_SEGMENT.contains(&one.id));
        let Some(element) = element else {
            let why = if end == u64::MAX {
                "nothing shows where it ends"
            } else {
                "no element begins here"
            };
            return Err(fault(at, why));
        };
        let until = element.end.unwrap_or(end);
        if until > end || element.end.is_none() && element.id != CLUSTER {
            return Err(fault(at, "elements do not fit in their segment"));
        }
        if element.id == CLUSTER {
            clusters += 1;
            at = cluster_end(view, element.begin..until, element.end.is_none(), &mut sure)?;
        } else {
            if until > view.length() {
                return Err(fault(view.length(), "truncated"));
            }
            at = until;
        }
    }
    match clusters {
        0 => Err(Fault { sure: 0, at, why: "no clusters" }),
        _ => Ok(at),
    }
}

/// Verifies a cluster, and returns its end. One that `is_open` ends at the next element that a cluster cannot
/// contain.
fn cluster_end(
    view: &mut View<'_>,
    body: Range<u64>,
    is_open: bool,
    sure: &mut u64,
) -> Result<u64, Fault> {
    let mut at = body.start;
    while at < body.end {
        let fault = |at, why| Fault { sure: *sure, at, why };
        let element = Element::read(view, at);
        let known = element.filter(|one| IN_CLUSTER.contains(&one.id)).and_then(|one| one.body());
        let Some(block) = known else {
            return if is_open { Ok(at) } else { Err(fault(at, "no block begins here")) };
        };
        if block.end > body.end {
            return Err(fault(at, "blocks do not fit in their cluster"));
        }
        if block.end > view.length() {
            return Err(fault(view.length(), "truncated"));
        }
        // The contents of this block are unverified, but those before it are valid.
        *sure = at;
        at = block.end;
    }
    Ok(at)
}
