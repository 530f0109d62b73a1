//! The chain of metadata blocks and frames.

use super::header::{FRAME_HEADER_BYTES_MAX, Frame, Stream, crc16};
use super::subframe::frame_bytes;
use crate::mend::{Reading, Step};
use crate::view::View;

/// The size of the checksum at the end of a frame.
const CRC_BYTES: u64 = 2;

/// The type of a block with a picture.
const PICTURE: u8 = 6;
/// Maximum size of a plausible picture in bytes.
const PICTURE_BYTES_MAX: u64 = 32 << 20;
/// The maximum length of a picture's type or description, in bytes.
const PICTURE_TEXT_BYTES_MAX: u32 = 64 << 10;

/// The state after the last valid block or frame.
#[derive(Clone)]
pub(super) struct Frames {
    stream: Stream,
    pub(super) at: u64,
    /// Whether frames follow.
    is_past_blocks: bool,
    /// The numbers of frames and of their samples before `at`.
    pub(super) count: u64,
    samples: u64,
    /// The size of the previous frame.
    frame_bytes: u64,
    is_variable: bool,
}

/// The result of reading a block or frame.
enum FrameOutcome {
    /// It ends at this byte.
    End(u64),
    /// It is the last frame, and ends at this byte.
    Last(u64),
    /// It may extend beyond the readable bytes.
    Beyond,
    /// It is invalid at this byte.
    Wrong(u64),
}

impl Frames {
    /// Reads the block with which every file begins; the other blocks and the frames follow.
    pub(super) fn begin(view: &mut View<'_>) -> Option<Frames> {
        let block = view.array::<8>(0)?;
        let is_past_blocks = block[4] & 0x80 != 0;
        let [b'f', b'L', b'a', b'C', 0 | 0x80, 0, 0, bytes] = block else { return None };
        if usize::from(bytes) != Stream::BYTES {
            return None;
        }
        let stream = Stream::read(view, 8)?;
        let at = 8 + Stream::BYTES as u64;
        let is_variable = false;
        Some(Frames {
            stream,
            at,
            is_past_blocks,
            count: 0,
            samples: 0,
            frame_bytes: 4096,
            is_variable,
        })
    }

    /// Reads a metadata block. Only its length can be checked.
    fn block(&mut self, view: &mut View<'_>, to: u64) -> FrameOutcome {
        if self.at + 4 > to {
            return FrameOutcome::Beyond;
        }
        let Some([kind, length @ ..]) = view.array::<4>(self.at) else {
            return FrameOutcome::Beyond;
        };
        let [a, b, c] = length;
        // STREAMINFO occurs only once, as the first block.
        if !(1..=6).contains(&(kind & 0x7F)) {
            return FrameOutcome::Wrong(self.at + 1);
        }
        self.is_past_blocks = kind & 0x80 != 0;
        let mut bytes = u64::from(u32::from_be_bytes([0, a, b, c]));
        if kind & 0x7F == PICTURE {
            bytes = bytes.max(picture_bytes(view, self.at + 4, to).unwrap_or(0));
        }
        FrameOutcome::End(self.at + 4 + bytes)
    }

    /// Reads the frame that begins here, without reading after `to`.
    fn frame(&mut self, view: &mut View<'_>, to: u64) -> FrameOutcome {
        let most = to.saturating_sub(self.at).min(FRAME_HEADER_BYTES_MAX as u64) as usize;
        let stream = self.stream;
        let header = view.take(self.at, most).and_then(|bytes| Frame::parse(bytes, &stream));
        let frame = match header {
            Some(frame) if self.is_next(&frame) => frame,
            None if most < FRAME_HEADER_BYTES_MAX => return FrameOutcome::Beyond,
            _ => return FrameOutcome::Wrong(self.at + 2),
        };
        let end = self.at + frame.bytes_max();
        // Most frames are about as long as the previous one, so that few need a search up to the
        // longest.
        let near = self.at + self.frame_bytes * 5 / 4 + 64;
        for until in [near.min(end), end] {
            let Some(got) = self.frame_before(view, &frame, until.min(to)) else { continue };
            if let FrameOutcome::End(end) = got {
                self.frame_bytes = end - self.at;
                self.samples += u64::from(frame.samples);
                self.is_variable = frame.is_variable;
            }
            self.count += 1;
            return got;
        }
        if to < end { FrameOutcome::Beyond } else { FrameOutcome::Wrong(end) }
    }

    /// Returns the end of the frame that begins here with the header `frame`, if it is valid. It
    /// reads nothing after `until` except the header of the next one.
    fn frame_before(&self, view: &mut View<'_>, frame: &Frame, until: u64) -> Option<FrameOutcome> {
        let mut bytes = Vec::new();
        view.each(self.at..until, |run| bytes.extend_from_slice(run));
        let next = || self.followed(&bytes, frame).map(|bytes| FrameOutcome::End(self.at + bytes));
        let last = || last(&bytes, frame).map(|bytes| FrameOutcome::Last(self.at + bytes));
        match self.stream.samples {
            0 => next().or_else(last),
            all if self.samples + u64::from(frame.samples) < all => next(),
            _ => last(),
        }
    }

    /// Returns whether this is the frame that should follow.
    fn is_next(&self, frame: &Frame) -> bool {
        let number = if frame.is_variable { self.samples } else { self.count };
        frame.number == number && (self.count == 0 || frame.is_variable == self.is_variable)
    }

    /// Returns the size of the frame at the start of `bytes`, if the next one follows it.
    fn followed(&self, bytes: &[u8], frame: &Frame) -> Option<u64> {
        let next = match frame.is_variable {
            true => self.samples + u64::from(frame.samples),
            false => self.count + 1,
        };
        let sync = [0xFF, if frame.is_variable { 0xF9 } else { 0xF8 }];
        let least = (self.stream.frame_bytes_min.max(frame.bytes as u64 + 3)) as usize;
        let places = memchr::memmem::find_iter(bytes.get(least..)?, &sync);
        for place in places {
            let place = least + place;
            let Some(follower) = Frame::parse(&bytes[place..], &self.stream) else { continue };
            if follower.number == next && is_checksum_right(&bytes[..place]) {
                return Some(place as u64);
            }
        }
        None
    }
}

/// Returns the size of the picture block whose body begins at `at`, by the lengths inside: for
/// pictures of more than 16 MiB, the block's three-byte length overflows. `None` if a length is
/// after `to`.
fn picture_bytes(view: &mut View<'_>, at: u64, to: u64) -> Option<u64> {
    let mut length_at = |at: u64| if at + 4 <= to { view.u32_be(at) } else { None };
    let mut end = at + 4;
    for _ in ["its kind of file", "what it shows"] {
        let bytes = length_at(end).filter(|bytes| *bytes <= PICTURE_TEXT_BYTES_MAX)?;
        end += 4 + u64::from(bytes);
    }
    // Width, height, bits per pixel, colours.
    end += 16;
    end += 4 + u64::from(length_at(end)?);
    Some(end - at).filter(|bytes| *bytes <= PICTURE_BYTES_MAX)
}

/// Returns the size of the frame at the start of `bytes`, by decoding it.
fn last(bytes: &[u8], frame: &Frame) -> Option<u64> {
    let end = frame_bytes(bytes, frame)? + CRC_BYTES as usize;
    is_checksum_right(bytes.get(..end)?).then_some(end as u64)
}

/// Returns whether a frame ends with its checksum.
fn is_checksum_right(frame: &[u8]) -> bool {
    crc16(frame) == 0
}

impl Reading for Frames {
    fn read_to(&mut self, view: &mut View<'_>, to: u64) -> Step {
        let length = view.length();
        let to_seen = to.min(length);
        while self.at < to {
            let got = match self.is_past_blocks {
                true => self.frame(view, to_seen),
                false => self.block(view, to_seen),
            };
            match got {
                FrameOutcome::End(end) => self.at = end,
                FrameOutcome::Last(length) => return Step::Whole { length },
                FrameOutcome::Beyond if to_seen < length && !view.is_starved() => {
                    return Step::Going;
                }
                FrameOutcome::Beyond => return Step::Broken { at: length },
                FrameOutcome::Wrong(at) => return Step::Broken { at: at.min(length) },
            }
        }
        Step::Going
    }

    fn copy(&self) -> Box<dyn Reading> {
        Box::new(self.clone())
    }
}
