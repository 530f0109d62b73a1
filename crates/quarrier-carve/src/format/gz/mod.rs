//! Gzip: a deflate stream between a header and its checksum.
//!
//! RFC 1952. Members that follow one another without a gap form one file.

mod reading;

use super::{Format, Kind, Signature, Verdict};
use crate::crc32::Crc32;
use crate::inflate::{Failed, INFLATER_FUEL, Inflater};
use crate::mend::{Broken, MendContext, streams};
use crate::view::{Extent, View};

/// Gzip. The checksum and length of each member's contents are verified.
pub struct Gz;

const GZ: Kind = Kind::new("gz");
/// A member that breaks before it has inflated this many bytes is not a member, but resembles its
/// header by chance.
const CHANCE_BYTES: u64 = 512;
const NAME_BYTES_MAX: u64 = 4096;
/// Maximum number of codes for literals and lengths in a block, minus 257.
const LENGTH_CODES_MAX: u8 = 29;

impl Format for Gz {
    fn kinds(&self) -> &[Kind] {
        &[GZ]
    }

    fn signatures(&self) -> &[Signature] {
        &[Signature { hex: "1F 8B 08", at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let Some(data_at) = header(view, 0).filter(|at| may_be_deflated(view, *at)) else {
            return Verdict::Not;
        };
        view.spend(INFLATER_FUEL);
        let mut inflater = Inflater::new();
        let mut end = match member(view, &mut inflater, data_at) {
            Ok(end) => end,
            Err((at, _)) if at < data_at + CHANCE_BYTES && !view.is_starved() => {
                return Verdict::Not;
            }
            Err((at, reason)) => {
                let at = at.min(view.length());
                return Verdict::Broken { kind: GZ, sure: 0, at, reason: reason.to_string() };
            }
        };
        // A member that follows directly belongs to the file.
        while let Some(data_at) = header(view, end) {
            match member(view, &mut inflater, data_at) {
                Ok(next) => end = next,
                Err(_) => break,
            }
        }
        Verdict::Whole { length: end, kind: GZ }
    }

    fn mend(
        &self,
        view: &mut View<'_>,
        broken: &Broken,
        context: &MendContext<'_>,
    ) -> Option<Vec<Extent>> {
        streams(view, context, broken, Box::new(reading::GzReading::new()))
    }
}

/// Returns the start of the data of the member whose header is at `at`.
pub(crate) fn header(view: &mut View<'_>, at: u64) -> Option<u64> {
    let [id_1, id_2, method, flags, _, _, _, _, extra_flags, system] = view.array::<10>(at)?;
    if (id_1, id_2, method) != (0x1F, 0x8B, 8)
        || flags & 0xE0 != 0
        || !matches!(extra_flags, 0 | 2 | 4)
        || !matches!(system, 0..=13 | 255)
    {
        return None;
    }
    let mut at = at + 10;
    if flags & 4 != 0 {
        at += 2 + u64::from(view.u16_le(at)?);
    }
    for flag in [8, 16] {
        if flags & flag != 0 {
            let end = view.find(at..at + NAME_BYTES_MAX, &[0])?;
            if view.take(at, (end - at) as usize)?.iter().any(|byte| *byte < b'\t') {
                return None;
            }
            at = end + 1;
        }
    }
    if flags & 2 != 0 {
        at += 2;
    }
    (at < view.length()).then_some(at)
}

/// Returns whether deflated data may begin at `at`, by the header of the first block: this costs
/// nearly nothing, unlike an inflater.
fn may_be_deflated(view: &mut View<'_>, at: u64) -> bool {
    let Some([first, low, high, not_low, not_high]) = view.array::<5>(at) else { return true };
    match first >> 1 & 3 {
        0 => [low, high] == [!not_low, !not_high],
        1 => true,
        2 => first >> 3 <= LENGTH_CODES_MAX,
        _ => false,
    }
}

/// Reads the member whose data begin at `at`. Returns its end, or the place where it breaks and the
/// reason.
fn member(
    view: &mut View<'_>,
    inflater: &mut Inflater,
    at: u64,
) -> Result<u64, (u64, &'static str)> {
    let mut crc = Crc32::new();
    let mut count = 0u64;
    let result = inflater.all(view, at..u64::MAX, &mut |bytes| {
        crc.update(bytes);
        count += bytes.len() as u64;
        true
    });
    let end = match result {
        Ok(end) => end,
        Err(Failed::At(at)) => return Err((at, "deflated data")),
        Err(Failed::Stopped) => return Err((at, "too long")),
    };
    let stated = (view.u32_le(end), view.u32_le(end + 4));
    match stated {
        (Some(told_crc), Some(told_count)) => {
            let is_right = told_crc == crc.value() && told_count == count as u32;
            if is_right { Ok(end + 8) } else { Err((end, "CRC")) }
        }
        _ => Err((view.length(), "truncated")),
    }
}
