//! Tapes (tar): files after headers, in blocks of 512 bytes.
//!
//! POSIX.1-2017, *pax*; GNU tar's manual. Each header has a checksum. Two blocks of zeros end the
//! tape, and most programs pad it to a record of 20 blocks.

pub(crate) mod header;

use quarrier_core::source::read_full_at;

use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

use header::{BLOCK_BYTES, content_bytes, is_header};

/// Tar of POSIX and GNU. The validator verifies the checksum of every header; content has none.
pub struct Tar;

const TAR: Kind = Kind::new("tar");
const RECORD_BYTES: u64 = 10_240;
/// Distances in bytes before a candidate within which to look for an entry: the short one first.
const BEFORE_BYTES: [u64; 2] = [8 << 10, 64 << 10];

/// The cost of that search in bytes of fuel: much less than that of decoding as many bytes.
const BEFORE_FUEL: u64 = 8 << 10;

impl Format for Tar {
    fn kinds(&self) -> &[Kind] {
        &[TAR]
    }

    fn signatures(&self) -> &[Signature] {
        &[Signature { hex: "75 73 74 61 72", at: 257 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let mut at = 0;
        let mut sure = 0;
        loop {
            let Some(block) = view.array::<BLOCK_BYTES>(at) else {
                let at = view.length();
                return Verdict::broken(view, TAR, sure, at, "truncated");
            };
            if sure > 0 && block == [0; BLOCK_BYTES] && is_zero(view, at..at + 1024) {
                return Verdict::Whole { length: end(view, at + 1024), kind: TAR };
            }
            let content = content_bytes(&block).filter(|_| is_header(&block));
            let Some(content) = content else {
                return match sure {
                    0 => Verdict::Not,
                    _ => Verdict::broken(view, TAR, sure, at, "no header begins here"),
                };
            };
            if at == 0 {
                view.spend(BEFORE_FUEL);
                if is_after_an_entry(view) {
                    return Verdict::Not;
                }
            }
            sure = at + BLOCK_BYTES as u64;
            let next = content.checked_next_multiple_of(BLOCK_BYTES as u64);
            let next = next.and_then(|content| sure.checked_add(content));
            match next.filter(|next| *next <= view.length()) {
                Some(next) => at = next,
                None => {
                    let at = view.length();
                    return Verdict::broken(view, TAR, sure, at, "truncated");
                }
            }
        }
    }
}

/// Returns the end of a tape whose last block of zeros ends at `at`, including the padding of its
/// last record.
fn end(view: &mut View<'_>, at: u64) -> u64 {
    let record_end = at.next_multiple_of(RECORD_BYTES);
    if is_zero(view, at..record_end) { record_end } else { at }
}

/// Whether all bytes of `range` exist and are zero.
fn is_zero(view: &mut View<'_>, range: std::ops::Range<u64>) -> bool {
    let mut is_zero = true;
    let bytes = range.end - range.start;
    view.each(range, |piece| is_zero &= piece.iter().all(|byte| *byte == 0)) == bytes && is_zero
}

/// Whether an entry ends right before the candidate, which is then in the middle of a tape.
fn is_after_an_entry(view: &View<'_>) -> bool {
    let Some(offset) = view.offset_of(0) else { return false };
    BEFORE_BYTES.into_iter().any(|reach| {
        let count = offset.min(reach) / BLOCK_BYTES as u64 * BLOCK_BYTES as u64;
        let mut bytes = vec![0; count as usize];
        let read = read_full_at(view.source(), offset - count, &mut bytes);
        let (blocks, _) = bytes.as_chunks::<BLOCK_BYTES>();
        read.is_ok_and(|read| read as u64 == count)
            && blocks.iter().rev().enumerate().any(|(after, block)| {
                let room = (after * BLOCK_BYTES) as u64;
                let content = content_bytes(block).and_then(|n| n.checked_next_multiple_of(512));
                content == Some(room) && is_header(block)
            })
    })
}
