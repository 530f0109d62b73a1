//! Common checks of text formats, which have few distinctive marks.

use quarrier_core::source::read_full_at;

use crate::view::{SECTOR_BYTES, View};

/// Maximum white space after the end that belongs to a file, in bytes.
const SPACE_BYTES_MAX: u64 = 64;

/// Whether a file may begin at the start of the view, which requires the start of a sector.
/// Elsewhere, archives, documents and programs contain too many bytes that look like one.
pub(crate) fn may_begin(view: &View<'_>) -> bool {
    view.offset_of(0).is_some_and(|offset| offset.is_multiple_of(SECTOR_BYTES))
}

/// Whether marked-up text that does not end with `last` is right before the view. Then the file
/// that begins here is within another one, and it is unclear which of them ends later.
pub(crate) fn interrupts(view: &View<'_>, last: &[u8]) -> bool {
    let Some(offset) = view.offset_of(0).filter(|offset| *offset >= SECTOR_BYTES) else {
        return false;
    };
    let mut bytes = [0; SECTOR_BYTES as usize];
    let read = read_full_at(view.source(), offset - SECTOR_BYTES, &mut bytes);
    if !read.is_ok_and(|read| read == bytes.len()) {
        return false;
    }
    let is_markup =
        bytes.iter().all(|byte| is_text(*byte)) && memchr::memmem::find(&bytes, b"</").is_some();
    let end = bytes.trim_ascii_end();
    is_markup && !end[end.len().saturating_sub(last.len())..].eq_ignore_ascii_case(last)
}

/// Whether text may contain this byte, in any single-byte encoding or UTF-8.
pub(crate) fn is_text(byte: u8) -> bool {
    !matches!(byte, 0..=8 | 11 | 14..=26 | 28..=31 | 127 | 254 | 255)
}

/// Returns the end of the white space at `at`; if there is more than allowed, only one line break
/// belongs to the file.
pub(crate) fn after_space(view: &mut View<'_>, at: u64) -> u64 {
    let mut end = at;
    while end < at + SPACE_BYTES_MAX {
        match view.byte(end) {
            Some(b' ' | b'\t' | b'\r' | b'\n') => end += 1,
            _ => return end,
        }
    }
    match (view.byte(at), view.byte(at + 1)) {
        (Some(b'\r'), Some(b'\n')) => at + 2,
        (Some(b'\r' | b'\n'), _) => at + 1,
        _ => at,
    }
}

/// Returns the place of the first byte from `at` on, before `end`, that is not text.
pub(crate) fn no_text(view: &mut View<'_>, at: u64, end: u64) -> Option<u64> {
    let mut place = at;
    while place < end {
        let bytes = view.run(place, (end - place).min(64 << 10) as usize);
        if bytes.is_empty() {
            return Some(place);
        }
        if let Some(found) = bytes.iter().position(|byte| !is_text(*byte)) {
            return Some(place + found as u64);
        }
        place += bytes.len() as u64;
    }
    None
}
