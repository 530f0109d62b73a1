//! Windows event logs: chunks of 64 KiB with checksums.
//!
//! *Windows XML Event Log (EVTX) format*, libevtx.

use super::{Format, Kind, Signature, Verdict};
use crate::crc32::Crc32;
use crate::view::View;

/// Windows event logs. The validator verifies the checksums of the header, and of every chunk and
/// its records.
pub struct Evtx;

const EVTX: Kind = Kind::new("evtx");
const HEADER_BYTES: u64 = 4096;
const CHUNK_BYTES: u64 = 65536;

impl Format for Evtx {
    fn kinds(&self) -> &[Kind] {
        &[EVTX]
    }

    fn signatures(&self) -> &[Signature] {
        // "ElfFile".
        &[Signature { hex: "45 6C 66 46 69 6C 65 00", at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let Some(header) = view.array::<128>(0) else { return Verdict::Not };
        let sum = u32::from_le_bytes([124, 125, 126, 127].map(|at| header[at]));
        if crc32(&header[..120]) != sum {
            return Verdict::Not;
        }
        let chunks = u64::from(u16::from_le_bytes([header[42], header[43]]));
        // A log that was not closed may have more chunks than the header states.
        let mut at = HEADER_BYTES;
        while let Some(true) = is_chunk(view, at) {
            at += CHUNK_BYTES;
        }
        let stated_end = HEADER_BYTES + chunks * CHUNK_BYTES;
        if at >= stated_end && at > HEADER_BYTES && !view.is_starved() {
            return Verdict::Whole { length: at, kind: EVTX };
        }
        let sure = if at > HEADER_BYTES { at } else { 128 };
        Verdict::broken(view, EVTX, sure, at, "checksum of a chunk")
    }
}

/// Returns whether the chunk at `at` is valid.
fn is_chunk(view: &mut View<'_>, at: u64) -> Option<bool> {
    let chunk = view.take(at, CHUNK_BYTES as usize)?;
    let four = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|index| chunk[at + index]));
    let head = [&chunk[..120], &chunk[128..512]].concat();
    if !chunk.starts_with(b"ElfChnk\0") || crc32(&head) != four(124) {
        return Some(false);
    }
    let records = chunk.get(512..four(48) as usize)?;
    Some(crc32(records) == four(52))
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut sum = Crc32::new();
    sum.update(bytes);
    sum.value()
}
