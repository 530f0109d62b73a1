//! xz: blocks, an index of them, and a footer with the length of the index.
//!
//! Lasse Collin, *The .xz File Format*, 1.2.1. Headers, index and footer have checksums, and the
//! index states the length of each block. The blocks are decompressed only if all of that is
//! consistent: LZMA yields some 100 MB/s.

mod block;
mod check;
mod index;

use std::cell::Cell;

use super::{Format, Kind, Signature, Verdict};
use crate::crc32;
use crate::unpack::Failed;
use crate::view::View;
use index::Record;

/// xz. The validator decompresses the file, which verifies the check of every block that has one.
pub struct Xz;

const XZ: Kind = Kind::new("xz");
const HEADER_BYTES: u64 = 12;
/// Maximum size of a number, which has seven bits per byte.
const NUMBER_BYTES_MAX: u32 = 9;
/// Maximum distance in bytes within which to look for a footer.
const SEARCH_BYTES_MAX: u64 = 256 << 20;
/// Bytes per step of the search.
const PIECE_BYTES: u64 = 64 << 10;

/// A stream with a known end.
struct Stream {
    end: u64,
    /// The part that was not read, or empty.
    not_read: &'static str,
}

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
        let Stream { mut end, mut not_read } = match stream(view, 0) {
            Ok(stream) => stream,
            Err((at, reason)) => return Verdict::broken(view, XZ, HEADER_BYTES, at, reason),
        };
        // A stream that follows directly belongs to the file.
        while header(view, end).is_some() {
            let Ok(next) = stream(view, end) else { break };
            end = next.end;
            not_read = if not_read.is_empty() { next.not_read } else { not_read };
        }
        Verdict::ended(end, XZ, not_read)
    }
}

/// Returns the flags of the stream whose header is at `at`, if there is one.
fn header(view: &mut View<'_>, at: u64) -> Option<[u8; 2]> {
    let bytes = view.array::<{ HEADER_BYTES as usize }>(at)?;
    let is_header = bytes[..7] == *b"\xFD7zXZ\0\0"
        && bytes[7] < 16
        && bytes[8..] == crc32::of(&bytes[6..8]).to_le_bytes();
    is_header.then_some([bytes[6], bytes[7]])
}

/// Reads the stream that begins at `start`, or returns the place where it breaks and the reason.
fn stream(view: &mut View<'_>, start: u64) -> Result<Stream, (u64, &'static str)> {
    let no_footer = |view: &View<'_>| (view.length(), "no footer fits");
    let Some([_, check]) = header(view, start) else { return Err((start, "header")) };
    let Some((end, records)) = framed(view, start) else { return Err(no_footer(view)) };
    let place = Cell::new(start + HEADER_BYTES);
    let mut at = start + HEADER_BYTES;
    let mut not_read = "";
    for record in records {
        match block::read(view, at, record, check, &place) {
            Ok(()) => {}
            Err(Failed::NotRead(what)) => not_read = what,
            Err(Failed::Wrong(why)) => return Err((place.get(), why)),
        }
        at += record.bytes.next_multiple_of(4);
    }
    Ok(Stream { end, not_read })
}

/// Returns the end of the stream that begins at `start`, and its blocks.
fn framed(view: &mut View<'_>, start: u64) -> Option<(u64, Vec<Record>)> {
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
            if let Some(records) = index::read(view, start, place) {
                return Some((place + 4, records));
            }
        }
        // Overlap the steps, to find a footer across their border.
        at += (most as u64).saturating_sub(3).max(1);
    }
    None
}
