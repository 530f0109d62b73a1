//! The length of the file, as encoders note it in the first frame.

use super::frame::Frame;
use crate::view::View;

/// The contents of a note; `None` for missing ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Note {
    /// The number of frames, with or without the one that holds the note.
    pub(super) frames: Option<u64>,
    /// Bytes from the start of the frame with the note to the end of the last frame.
    pub(super) bytes: Option<u64>,
}

impl Note {
    /// Reads the note in the frame at `at`.
    pub(super) fn read(view: &mut View<'_>, frame: &Frame, at: u64) -> Option<Note> {
        if frame.bytes < 64 {
            return None;
        }
        let note = at + frame.note_at();
        match &view.array::<4>(note)? {
            b"Xing" | b"Info" => xing(view, note),
            _ if view.is_at(at + 36, b"VBRI") => Some(Note {
                bytes: view.u32_be(at + 46).map(u64::from),
                frames: view.u32_be(at + 50).map(u64::from),
            }),
            _ => None,
        }
    }
}

fn xing(view: &mut View<'_>, at: u64) -> Option<Note> {
    let flags = view.u32_be(at + 4)?;
    if flags > 15 {
        return None;
    }
    let mut at = at + 8;
    let mut next = |is_there: bool| -> Option<u64> {
        is_there.then(|| {
            at += 4;
            view.u32_be(at - 4).map(u64::from)
        })?
    };
    let frames = next(flags & 1 != 0);
    let bytes = next(flags & 2 != 0);
    Some(Note { frames, bytes: bytes.filter(|bytes| *bytes > 0) })
}
