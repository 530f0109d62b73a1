//! PNG and APNG: a chain of chunks, each with its length and its checksum.
//!
//! W3C, *Portable Network Graphics (PNG) Specification*, third edition.

mod chunk;
mod reading;

use super::{Format, Kind, Signature, Verdict};
use crate::inflate::Inflater;
use crate::mend::{Broken, MendContext, streams};
use crate::view::{Extent, View};

use chunk::{Chunk, Wrong};

/// PNG. The validator verifies the checksum of every chunk, and that of the pixels.
pub struct Png;

const PNG: Kind = Kind::new("png");

impl Format for Png {
    fn kinds(&self) -> &[Kind] {
        &[PNG]
    }

    fn signatures(&self) -> &[Signature] {
        &[Signature { hex: "89 50 4E 47 0D 0A 1A 0A", at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let mut pixels = Pixels::new();
        let Some(mut at) = chunk::after_header(view) else { return Verdict::Not };
        let broken = |view: &View<'_>, sure: u64, wrong: Wrong| Verdict::Broken {
            kind: PNG,
            sure,
            at: wrong.at.min(view.length()),
            reason: wrong.why,
        };
        loop {
            let chunk = match Chunk::read(view, at) {
                Ok(chunk) => chunk,
                Err(wrong) => return broken(view, at, wrong),
            };
            let checked = match &chunk.name {
                b"IDAT" => chunk.check(view, &mut |bytes| pixels.add(bytes)),
                _ => chunk.check(view, &mut |_| ()),
            };
            if let Err(wrong) = checked {
                return broken(view, at, wrong);
            }
            view.spend(pixels.fuel());
            at = chunk.end();
            if chunk.name == *b"IEND" {
                return match pixels.is_whole {
                    true => Verdict::Whole { length: at, kind: PNG },
                    false => broken(view, at, Wrong { at, why: "pixels".to_string() }),
                };
            }
        }
    }

    fn mend(
        &self,
        view: &mut View<'_>,
        broken: &Broken,
        context: &MendContext<'_>,
    ) -> Option<Vec<Extent>> {
        streams(view, context, broken, Box::new(reading::PngReading::new()))
    }
}

/// The pixels' zlib stream, which is spread over chunks.
struct Pixels {
    inflater: Inflater,
    is_whole: bool,
    is_wrong: bool,
    count: u64,
}

impl Pixels {
    fn new() -> Self {
        Pixels { inflater: Inflater::zlib(), is_whole: false, is_wrong: false, count: 0 }
    }

    fn add(&mut self, bytes: &[u8]) {
        if self.is_whole || self.is_wrong {
            return;
        }
        let count = &mut self.count;
        let result = self.inflater.more(bytes, &mut |output| {
            *count += output.len() as u64;
            true
        });
        match result {
            Ok(Some(_)) => self.is_whole = true,
            Ok(None) => {}
            Err(_) => self.is_wrong = true,
        }
    }

    /// The cost of inflating since the last call.
    fn fuel(&mut self) -> u64 {
        std::mem::take(&mut self.count) / 8
    }
}
