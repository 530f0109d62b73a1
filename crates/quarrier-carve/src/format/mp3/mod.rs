//! MP3: tags, and a chain of consistent frames.
//!
//! ISO/IEC 11172-3 and 13818-3, layer III; ID3v2 (id3.org), APEv2, Lyrics3; the notes of Xing and
//! VBRI.

mod frame;
mod frames;
mod note;
mod tags;

use super::{Format, Kind, Signature, Verdict};
use crate::mend::{Broken, MendContext, Reading, Step, in_order};
use crate::view::{Extent, SECTOR_BYTES, View};

use frame::Frame;
use frames::Frames;

/// MPEG 1, 2 and 2.5, layer III. Frames have no checksum: the validator checks that each begins at
/// the end of the one before, that all have the same version and rate, and that their size is as
/// the note in the first one states. A file without a note and without tags shows neither its start
/// nor its end; it is whole only if it begins at the start of a sector, and zeros fill the last
/// sector.
pub struct Mp3;

const MP3: Kind = Kind::new("mp3");

/// A file without a note has at least this many frames.
const FRAMES_MIN: u64 = 8;
/// The data of a frame do not contain a run of this many zeros.
const ZEROS: u64 = 16;
/// Maximum length of a frame in bytes.
const FRAME_BYTES_MAX: usize = 1441;

impl Format for Mp3 {
    fn kinds(&self) -> &[Kind] {
        &[MP3]
    }

    fn signatures(&self) -> &[Signature] {
        SIGNATURES
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let Some(mut frames) = Frames::begin(view) else { return Verdict::Not };
        let is_bare = frames.start == 0 && frames.note.is_none();
        if is_bare && !frames.is_begun_here(view) {
            return Verdict::Not;
        }
        let step = frames.read_to(view, u64::MAX);
        if let Step::Whole { length } = step {
            return Verdict::Whole { length, kind: MP3 };
        }
        if let Some(length) = cut_by_a_tag(view, &frames) {
            return Verdict::Whole { length, kind: MP3 };
        }
        let least = if frames.note.is_some() { 2 } else { FRAMES_MIN };
        if frames.count < least || is_bare && is_in_stream(view, &frames) {
            return Verdict::Not;
        }
        let broken = |view: &View<'_>, sure, at, why| Verdict::broken(view, MP3, sure, at, why);
        if frames.note.is_some_and(|note| note.bytes.is_some()) {
            return broken(view, frames.last, frames.at, "shorter than its first frame notes");
        }
        let end = match tags::after(view, frames.at) {
            Ok(end) => end,
            Err(at) => return broken(view, frames.at, at, "tag without an end"),
        };
        if is_bare && view.offset_of(0).is_some_and(|offset| offset % SECTOR_BYTES != 0) {
            return broken(view, end, end, "nothing shows where it begins");
        }
        if end == frames.at && !view.is_slack(end) {
            return broken(view, end, end, "nothing shows where it ends");
        }
        if end == frames.at && is_last_cut(view, &frames) {
            return broken(view, frames.last, end, "the last frame is not all there");
        }
        Verdict::Whole { length: end, kind: MP3 }
    }

    fn mend(
        &self,
        view: &mut View<'_>,
        broken: &Broken,
        context: &MendContext<'_>,
    ) -> Option<Vec<Extent>> {
        let frames = Frames::begin(view)?;
        // Without a stated length, nothing shows that the file is complete.
        frames.note?.bytes?;
        in_order(view, context, broken, Box::new(frames))
    }
}

/// Returns the end of the tag that cuts off the last frame, if the file also begins with a tag and
/// nothing else states its end.
fn cut_by_a_tag(view: &mut View<'_>, frames: &Frames) -> Option<u64> {
    let is_noted = frames.note.is_some_and(|note| note.bytes.is_some());
    if frames.count < 2 || frames.start == 0 || is_noted {
        return None;
    }
    match tags::after(view, frames.at) {
        Ok(end) if end == frames.at => {
            tags::amid(view, frames.last..frames.at + FRAME_BYTES_MAX as u64)
        }
        _ => None,
    }
}

/// Whether the last frame ends with zeros in place of its data, as in the unused part of a sector.
fn is_last_cut(view: &mut View<'_>, frames: &Frames) -> bool {
    let Some(frame) = Frame::read(view, frames.last) else { return false };
    let Some(data_end) = frame.main_data_end(view, frames.last) else { return false };
    let data_end = data_end.min(frames.at);
    let Some(from) = data_end.checked_sub(ZEROS) else { return false };
    let bytes = view.take(from, (frames.at - from) as usize);
    bytes.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0))
}

/// Whether the first frame continues a stream that began before it.
fn is_in_stream(view: &View<'_>, frames: &Frames) -> bool {
    let Some(offset) = view.offset_of(0) else { return false };
    let mut before = [0; FRAME_BYTES_MAX];
    let bytes = before.len().min(usize::try_from(offset).unwrap_or(usize::MAX));
    let before = &mut before[..bytes];
    let read = view.source().read_at(offset - bytes as u64, before);
    read.is_ok_and(|read| read == bytes) && frames.is_preceded(before)
}

/// Tags; notes, which follow the side information of a frame; and headers of the usual kinds of
/// frames without padding, which the first frame does not have.
const SIGNATURES: &[Signature] = &[
    Signature { hex: "49 44 33 02 00", at: 0 },
    Signature { hex: "49 44 33 03 00", at: 0 },
    Signature { hex: "49 44 33 04 00", at: 0 },
    Signature { hex: "58 69 6E 67 00 00 00", at: 13 },
    Signature { hex: "58 69 6E 67 00 00 00", at: 21 },
    Signature { hex: "58 69 6E 67 00 00 00", at: 36 },
    Signature { hex: "49 6E 66 6F 00 00 00", at: 13 },
    Signature { hex: "49 6E 66 6F 00 00 00", at: 21 },
    Signature { hex: "49 6E 66 6F 00 00 00", at: 36 },
    Signature { hex: "56 42 52 49 00", at: 36 },
    Signature { hex: "FF FB ?0", at: 0 },
    Signature { hex: "FF FB ?4", at: 0 },
    Signature { hex: "FF FA ?0", at: 0 },
    Signature { hex: "FF FA ?4", at: 0 },
    Signature { hex: "FF F3 ?0", at: 0 },
    Signature { hex: "FF F3 ?4", at: 0 },
    Signature { hex: "FF F3 ?8", at: 0 },
    Signature { hex: "FF E3 ?0", at: 0 },
    Signature { hex: "FF E3 ?8", at: 0 },
];
