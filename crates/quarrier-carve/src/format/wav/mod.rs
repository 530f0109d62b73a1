//! WAV: a RIFF file of samples.
//!
//! Microsoft and IBM, *Multimedia Programming Interface and Data Specifications 1.0* (1991);
//! EBU Tech 3306 for `RF64`.

mod foreign;
mod joint;

use super::riff::{Chunk, HEADER_BYTES};
use super::{Format, Kind, Signature, Verdict};
use crate::mend::{Alien, Broken, MendContext, Rest, without_gaps};
use crate::view::{Extent, View};

use foreign::Samples;
use joint::Frames;

/// Samples in RIFF. They have no checksum: the validator checks the chain of chunks, and that no
/// foreign bytes are between samples.
pub struct Wav;

const WAV: Kind = Kind::new("wav");

/// A length that is stated elsewhere, or unknown.
const ELSEWHERE: u64 = 0xFFFF_FFFF;
/// Maximum number of chunks of a file.
const CHUNKS_MAX: usize = 1 << 16;

/// The lengths and the sample format that the chunks state.
struct ChunkInfo {
    /// The length of the file.
    length: u64,
    data: std::ops::Range<u64>,
    samples: Samples,
}

/// The place of a fault, and the reason.
type Fault = (u64, &'static str);

impl Format for Wav {
    fn kinds(&self) -> &[Kind] {
        &[WAV]
    }

    fn signatures(&self) -> &[Signature] {
        &[
            Signature { hex: "52 49 46 46 ?? ?? ?? ?? 57 41 56 45", at: 0 },
            Signature { hex: "52 46 36 34 FF FF FF FF 57 41 56 45 64 73 36 34", at: 0 },
        ]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let Some(info) = chunks(view) else { return Verdict::Not };
        let info = match info {
            Ok(info) => info,
            Err((at, why)) => return Verdict::broken(view, WAV, 0, at, why),
        };
        match foreign::find(view, info.data.clone(), info.samples) {
            Ok(()) => Verdict::Whole { length: info.length, kind: WAV },
            Err(at) => {
                let sure = info.data.start;
                Verdict::broken(view, WAV, sure, at, "the data here is not sound")
            }
        }
    }

    fn mend(
        &self,
        view: &mut View<'_>,
        _: &Broken,
        context: &MendContext<'_>,
    ) -> Option<Vec<Extent>> {
        let info = chunks(view)?.ok()?;
        let frames = Frames::read(view, info.data.start)?;
        let alien = Alien { zeros: false, noise: true };
        let sound = Sound { frames, format: self };
        without_gaps(view, context, info.length, alien, &sound)
    }
}

/// Reads all chunks. `None` if it does not begin like a file of samples.
fn chunks(view: &mut View<'_>) -> Option<Result<ChunkInfo, Fault>> {
    let riff = Chunk::read(view, 0)?;
    let format = Chunk::read(view, 12)?;
    let mut length = riff.end(0);
    let mut long_data = None;
    if format.name == *b"ds64" {
        length = view.u64_le(20)?.checked_add(8)?;
        long_data = Some(view.u64_le(28)?);
    }
    let mut samples = None;
    let mut data = None;
    let mut at = 12;
    for _ in 0..CHUNKS_MAX {
        if at >= length {
            break;
        }
        let Some(mut chunk) = Chunk::read(view, at) else {
            samples?;
            return Some(Err((at, "no chunk begins here")));
        };
        if chunk.name == *b"fmt " {
            samples = Some(Samples::read(view, at + HEADER_BYTES, chunk.bytes)?);
        } else if chunk.name == *b"data" {
            samples?;
            if chunk.bytes == ELSEWHERE {
                chunk.bytes = long_data.unwrap_or(ELSEWHERE);
            }
            data = data.or(Some(at + HEADER_BYTES..chunk.end(at)));
        }
        if chunk.end(at) > length {
            samples?;
            return Some(Err((at, "chunks do not fit in their file")));
        }
        if chunk.end(at) > view.length() {
            return samples.map(|_| Err((view.length(), "truncated")));
        }
        // The length of the file may exclude the padding of the last chunk.
        at = chunk.next(at);
    }
    match (samples, data) {
        (Some(samples), Some(data)) => Some(Ok(ChunkInfo { length, data, samples })),
        (Some(_), None) => Some(Err((at, "no samples"))),
        (None, _) => None,
    }
}

/// The sound of a fragmented file.
struct Sound<'s> {
    frames: Frames,
    format: &'s Wav,
}

impl Rest for Sound<'_> {
    fn check(&self, view: &mut View<'_>) -> Option<u64> {
        let length = Verdict::length(self.format.validate(view))?;
        (!Frames::has_silence(view, 0..length)).then_some(length)
    }

    fn fits(&self, view: &mut View<'_>, joint: u64) -> bool {
        self.frames.continues(view, joint)
    }
}
