//! MPEG program streams: packs of packets.
//!
//! ISO/IEC 11172-1 and 13818-1.

use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// MPEG 1 and 2 as on discs. The validator checks the chain of packets, which ends with an end
/// code, or where zeros fill its last sector.
pub struct Mpg;

const MPG: Kind = Kind::new("mpg");

/// A file has at least this many packets.
const PACKETS_MIN: u64 = 8;

impl Format for Mpg {
    fn kinds(&self) -> &[Kind] {
        &[MPG]
    }

    fn signatures(&self) -> &[Signature] {
        // The first pack has a time of zero, or a little later.
        &[
            Signature { hex: "00 00 01 BA 4? 00", at: 0 },
            Signature { hex: "00 00 01 BA 2? 00", at: 0 },
        ]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let mut at = 0;
        let mut last = 0;
        let mut count = 0;
        loop {
            match packet(view, at) {
                Some(end) if end > view.length() => {
                    return match count {
                        0..PACKETS_MIN => Verdict::Not,
                        _ => Verdict::broken(view, MPG, last, view.length(), "truncated"),
                    };
                }
                Some(end) => {
                    last = at;
                    at = end;
                    count += 1;
                }
                None => break,
            }
        }
        if count < PACKETS_MIN {
            return Verdict::Not;
        }
        if view.is_at(at, &[0, 0, 1, 0xB9]) {
            return Verdict::Whole { length: at + 4, kind: MPG };
        }
        match view.is_slack(at) {
            true => Verdict::Whole { length: at, kind: MPG },
            false => Verdict::broken(view, MPG, last, at, "nothing shows where it ends"),
        }
    }

    fn is_weak(&self) -> bool {
        true
    }
}

/// Returns the end of the packet at `at`, if there is one.
fn packet(view: &mut View<'_>, at: u64) -> Option<u64> {
    let begin = view.array::<6>(at)?;
    let [0, 0, 1, code, high, low] = begin else { return None };
    match code {
        0xBA if high >> 6 == 1 => {
            let stuffing = view.byte(at + 13)? & 7;
            Some(at + 14 + u64::from(stuffing))
        }
        0xBA if high >> 4 == 2 => Some(at + 12),
        0xBB..=0xFF => {
            let bytes = u64::from(u16::from_be_bytes([high, low]));
            (bytes > 0).then_some(at + 6 + bytes)
        }
        _ => None,
    }
}
