//! The chain of frames.

use super::frame::{Frame, HEADER_BYTES};
use super::note::Note;
use super::tags;
use crate::mend::{Reading, Step};
use crate::view::View;

/// Maximum number of zeros between tags and the first frame.
const ZEROS_BYTES_MAX: u64 = 16 << 10;

/// The state after the last frame that another one follows.
#[derive(Clone)]
pub(super) struct Frames {
    /// The start of the first frame.
    pub(super) start: u64,
    first: Frame,
    pub(super) note: Option<Note>,
    /// The start of the next frame.
    pub(super) at: u64,
    /// The start of the previous frame.
    pub(super) last: u64,
    pub(super) count: u64,
}

impl Frames {
    /// Finds the first frame of a file.
    pub(super) fn begin(view: &mut View<'_>) -> Option<Frames> {
        let mut start = tags::before(view, 0)?;
        if start > 0 {
            let zeros = start..start + ZEROS_BYTES_MAX;
            start = first_byte(view, zeros)?;
        }
        let first = Frame::read(view, start)?;
        let note = Note::read(view, &first, start);
        Some(Frames { start, first, note, at: start, last: start, count: 0 })
    }

    /// Whether the first frame needs no data from earlier frames.
    pub(super) fn is_begun_here(&self, view: &mut View<'_>) -> bool {
        self.first.borrowed_bytes(view, self.start) == Some(0)
    }

    /// Whether `before`, the bytes before the first frame, end with another frame of its stream.
    pub(super) fn is_preceded(&self, before: &[u8]) -> bool {
        self.first.is_follower(before)
    }

    /// Whether as many frames or bytes were read as the note states.
    pub(super) fn is_complete(&self) -> bool {
        match self.note {
            Some(Note { bytes: Some(bytes), .. }) => self.at - self.start == bytes,
            Some(Note { frames: Some(frames), .. }) => {
                self.count > 1 && (frames + 1 == self.count || frames == self.count)
            }
            _ => false,
        }
    }
}

impl Reading for Frames {
    fn read_to(&mut self, view: &mut View<'_>, to: u64) -> Step {
        let length = view.length();
        let to_seen = to.min(length);
        loop {
            if self.count > 0 && self.is_complete() {
                return match tags::after(view, self.at) {
                    Ok(length) => Step::Whole { length },
                    Err(at) => Step::Broken { at },
                };
            }
            if self.at + HEADER_BYTES > to_seen {
                break;
            }
            match Frame::read(view, self.at) {
                Some(frame) if frame.stream == self.first.stream => {
                    if self.at + frame.bytes > to_seen {
                        break;
                    }
                    self.last = self.at;
                    self.at += frame.bytes;
                    self.count += 1;
                }
                _ => return Step::Broken { at: self.at },
            }
        }
        if to_seen < length && !view.is_starved() {
            Step::Going
        } else {
            Step::Broken { at: length }
        }
    }

    fn copy(&self) -> Box<dyn Reading> {
        Box::new(self.clone())
    }
}

/// Returns the first byte of `range` that is not zero.
fn first_byte(view: &mut View<'_>, range: std::ops::Range<u64>) -> Option<u64> {
    let mut at = range.start;
    while at < range.end {
        let bytes = view.run(at, (range.end - at) as usize);
        if bytes.is_empty() {
            return None;
        }
        match bytes.iter().position(|byte| *byte != 0) {
            Some(place) => return Some(at + place as u64),
            None => at += bytes.len() as u64,
        }
    }
    None
}
