//! xz: blocks, an index of them, and a footer that says how long the index is.
//!
//! Lasse Collin, *The .xz File Format*, 1.2.1. Headers, index and footer have checksums, and the
//! index says how long each block is. The blocks themselves are not unpacked: LZMA gives some 100
//! MB/s.

mod index;

use super::{Format, Kind, Signature, Verdict};
use crate::crc32;
use crate::view::View;

/// xz. All checksums but those of the packed data are verified, and that every block stands where
/// the index says.
pub struct Xz;

const XZ: Kind = Kind::new("xz");
const HEADER_BYTES: u64 = 12;
/// As far as a footer is looked for, in bytes.
const SEARCH_BYTES_MAX: u64 = 256 << 20;
/// What is searched at once, in bytes.
const PIECE_BYTES: u64 = 64 << 10;

impl Format for Xz {
    fn kinds(&self) -> &[Kind] {
        &[XZ]
    }

    fn signatures(&self) -> &[Signature] {
        &[Signature { hex: "FD 37 7A 58 5A 00 00", at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        if header(view, 0).is_none() {
            return Verdict::Not;
        }
        let Some(mut end) = stream(view, 0) else {
            let at = view.length();
            return Verdict::broken(view, XZ, HEADER_BYTES, at, "no footer fits");
        };
        // What follows and is a stream, too, belongs to it.
        while header(view, end).is_some() {
            let Some(next) = stream(view, end) else { break };
            end = next;
        }
        Verdict::Whole { length: end, kind: XZ }
    }
}

/// The flags of the stream whose header stands at `at`, if one does.
fn header(view: &mut View<'_>, at: u64) -> Option<[u8; 2]> {
    let bytes = view.array::<{ HEADER_BYTES as usize }>(at)?;
    let is_header = bytes[..7] == *b"\xFD7zXZ\0\0"
        && bytes[7] < 16
        && bytes[8..] == crc32::of(&bytes[6..8]).to_le_bytes();
    is_header.then_some([bytes[6], bytes[7]])
}

/// Where the stream that begins at `start` ends.
fn stream(view: &mut View<'_>, start: u64) -> Option<u64> {
    let [zero, check] = header(view, start)?;
    let footer = [zero, check, b'Y', b'Z'];
    let finder = memchr::memmem::Finder::new(&footer);
    let until = view.length().min(start.saturating_add(SEARCH_BYTES_MAX));
    let mut at = start + HEADER_BYTES;
    while at + 4 <= until {
        let most = (until - at).min(PIECE_BYTES) as usize;
        let bytes = view.take(at, most)?;
        let places: Vec<u64> = finder.find_iter(bytes).map(|place| at + place as u64).collect();
        for place in places {
            if index::fits(view, start, place) {
                return Some(place + 4);
            }
        }
        // What is cut by the border of a piece is found in the next one.
        at += (most as u64).saturating_sub(3).max(1);
    }
    None
}
