//! Reads gzip data in steps that can end at any byte.

use crate::crc32::Crc32;
use crate::inflate::{Copyable, InflateStep};
use crate::mend::{Reading, Step};
use crate::view::View;

const RUN_BYTES: u64 = 64 << 10;
const TRAILER_BYTES: u64 = 8;
/// Deflated data look random: 512 of them have 221 different values on average. A part with hardly
/// half of that is a gap of text or zeros. Decoding may not reveal it, since any bits form codes.
const PART_BYTES: usize = 512;
const DIFFERENT_MIN: u32 = 120;

/// One member.
#[derive(Clone)]
pub(super) struct GzReading {
    at: u64,
    stage: Stage,
    inflater: Copyable,
    crc: Crc32,
    count: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Header,
    Data,
    Trailer,
}

impl GzReading {
    pub(super) fn new() -> Self {
        let (inflater, crc) = (Copyable::new(), Crc32::new());
        GzReading { at: 0, stage: Stage::Header, inflater, crc, count: 0 }
    }

    /// Inflates up to byte `to`, or to the end of the data.
    fn data(&mut self, view: &mut View<'_>, to: u64) -> Step {
        while self.at < to {
            let bytes = view.run(self.at, RUN_BYTES.min(to - self.at) as usize);
            if bytes.is_empty() {
                return Step::Broken { at: self.at };
            }
            let (crc, count) = (&mut self.crc, &mut self.count);
            let went = self.inflater.more(bytes, &mut |output| {
                crc.update(output);
                *count += output.len() as u64;
            });
            match went {
                InflateStep::On if has_gap(bytes) => {
                    return Step::Broken { at: self.at + bytes.len() as u64 };
                }
                InflateStep::On => self.at += bytes.len() as u64,
                InflateStep::Wrong(used) => return Step::Broken { at: self.at + used as u64 },
                InflateStep::Ended(used) => {
                    self.at += used as u64;
                    self.stage = Stage::Trailer;
                    break;
                }
            }
        }
        Step::Going
    }

    fn trailer(&mut self, view: &mut View<'_>) -> Step {
        let stated = (view.u32_le(self.at), view.u32_le(self.at + 4));
        let length = self.at + TRAILER_BYTES;
        match stated == (Some(self.crc.value()), Some(self.count as u32)) {
            true => Step::Whole { length },
            false => Step::Broken { at: length },
        }
    }
}

/// Returns whether a part of `bytes` does not look like deflated data.
fn has_gap(bytes: &[u8]) -> bool {
    bytes.chunks_exact(PART_BYTES).any(|part| {
        let mut seen = [0u64; 4];
        part.iter().for_each(|byte| seen[usize::from(byte >> 6)] |= 1 << (byte & 63));
        seen.iter().map(|bits| bits.count_ones()).sum::<u32>() < DIFFERENT_MIN
    })
}

impl Reading for GzReading {
    fn read_to(&mut self, view: &mut View<'_>, to: u64) -> Step {
        if self.stage == Stage::Header {
            match super::header(view, 0) {
                Some(data_at) if data_at <= to => (self.at, self.stage) = (data_at, Stage::Data),
                Some(_) => return Step::Going,
                None => return Step::Broken { at: to },
            }
        }
        if self.stage == Stage::Data
            && let wrong @ Step::Broken { .. } = self.data(view, to)
        {
            return wrong;
        }
        match self.stage == Stage::Trailer && self.at + TRAILER_BYTES <= to {
            true => self.trailer(view),
            false => Step::Going,
        }
    }

    fn copy(&self) -> Box<dyn Reading> {
        Box::new(self.clone())
    }
}
