//! FLAC: metadata blocks, then frames, each with its number and two checksums.
//!
//! RFC 9639.

mod frames;
mod header;
mod subframe;

use super::{Format, Kind, Signature, Verdict};
use crate::mend::{Broken, MendContext, Reading, Step, in_order};
use crate::view::{Extent, View};

use frames::Frames;

/// Free Lossless Audio Codec, without Ogg around it. Every frame is verified by its checksum and
/// its number. The file ends with the frame that holds its last sample.
pub struct Flac;

const FLAC: Kind = Kind::new("flac");

impl Format for Flac {
    fn kinds(&self) -> &[Kind] {
        &[FLAC]
    }

    fn signatures(&self) -> &[Signature] {
        &[Signature { hex: "66 4C 61 43 ?0 00 00 22", at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let Some(mut frames) = Frames::begin(view) else { return Verdict::Not };
        let begin = frames.at;
        let step = frames.read_to(view, u64::MAX);
        let sure = if frames.count > 0 { frames.at } else { begin };
        match step {
            Step::Whole { length } => Verdict::Whole { length, kind: FLAC },
            Step::Broken { at } => Verdict::broken(view, FLAC, sure, at, "an invalid frame"),
            Step::Going => Verdict::broken(view, FLAC, sure, u64::MAX, "truncated"),
        }
    }

    fn mend(
        &self,
        view: &mut View<'_>,
        broken: &Broken,
        context: &MendContext<'_>,
    ) -> Option<Vec<Extent>> {
        let frames = Frames::begin(view)?;
        in_order(view, context, broken, Box::new(frames))
    }
}
