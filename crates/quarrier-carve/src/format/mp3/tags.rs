//! Tags before and after the frames.

use super::frame::Frame;
use crate::view::View;

/// Maximum size of lyrics in bytes.
const LYRICS_BYTES_MAX: u64 = 1 << 20;
/// Size of an ID3v1 tag in bytes.
const ID3V1_BYTES: usize = 128;

/// Returns the end of the ID3v2 tags that begin at `at`, and of the zeros after them.
pub(super) fn before(view: &mut View<'_>, mut at: u64) -> Option<u64> {
    let mut count = 0;
    while let Some(bytes) = id3v2_bytes(view, at) {
        at = at.checked_add(bytes)?;
        count += 1;
        if count > 16 {
            return None;
        }
    }
    Some(at)
}

/// Returns the size of the ID3v2 tag at `at`, with header and footer.
fn id3v2_bytes(view: &mut View<'_>, at: u64) -> Option<u64> {
    let header = view.array::<10>(at)?;
    let [b'I', b'D', b'3', major @ 2..=4, minor, flags, size @ ..] = header else { return None };
    if minor == 0xFF || flags & 0x0F != 0 || size.iter().any(|byte| *byte > 0x7F) {
        return None;
    }
    let bytes = size.iter().fold(0, |bytes, byte| bytes << 7 | u64::from(*byte));
    let footer = if major == 4 && flags & 0x10 != 0 { 10 } else { 0 };
    Some(10 + bytes + footer)
}

/// Returns the end of the tags after the last frame, which begin at `at`: `at` if there are none.
/// `Err` with the place at which one of them is invalid.
pub(super) fn after(view: &mut View<'_>, mut at: u64) -> Result<u64, u64> {
    for _ in 0..8 {
        let Some(begin) = view.array::<8>(at) else {
            return match view.array::<3>(at) {
                Some([b'T', b'A', b'G']) => Err(view.length()),
                _ => Ok(at),
            };
        };
        let end = match &begin {
            b"APETAGEX" => ape_end(view, at).ok_or(at)?,
            b"LYRICSBE" => lyrics_end(view, at).ok_or(at)?,
            [b'T', b'A', b'G', b'+', ..] => at + 227,
            [b'T', b'A', b'G', ..] => at + ID3V1_BYTES as u64,
            [b'I', b'D', b'3', ..] => match id3v2_bytes(view, at) {
                Some(bytes) if Frame::read(view, at + bytes).is_none() => at + bytes,
                // The tag belongs to another file, which begins here.
                _ => return Ok(at),
            },
            _ => return Ok(at),
        };
        if end > view.length() {
            return Err(view.length());
        }
        at = end;
    }
    Ok(at)
}

/// Returns the end of the ID3v1 tag that begins among the frames in `range`: a stream that was cut
/// off before it was tagged.
pub(super) fn amid(view: &mut View<'_>, range: std::ops::Range<u64>) -> Option<u64> {
    let mut from = range.start;
    while let Some(at) = view.find(from..range.end, b"TAG") {
        if view.take(at, ID3V1_BYTES).is_some_and(is_id3v1) {
            return Some(at + ID3V1_BYTES as u64);
        }
        from = at + 1;
    }
    None
}

/// Whether it is a valid tag: its strings are padded with zeros or blanks only, and its year is a
/// year or empty.
fn is_id3v1(tag: &[u8]) -> bool {
    let strings = [3..33, 33..63, 63..93, 97..125].map(|range| &tag[range]);
    let is_text = |text: &[u8]| {
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        text[..end].iter().all(|byte| *byte >= b' ') && text[end..].iter().all(|byte| *byte == 0)
    };
    let is_year = tag[93..97].iter().all(|byte| matches!(byte, b'0'..=b'9' | b' ' | 0));
    is_year && strings.into_iter().all(is_text) && tag[3..93].iter().any(|byte| *byte > b' ')
}

/// Returns the end of an APE tag with a header: items and a footer, whose length the header states.
fn ape_end(view: &mut View<'_>, at: u64) -> Option<u64> {
    let bytes = u64::from(view.u32_le(at + 12)?);
    let flags = view.u32_le(at + 20)?;
    let is_header = flags & 1 << 29 != 0;
    if is_header { at.checked_add(32 + bytes) } else { at.checked_add(32) }
}

fn lyrics_end(view: &mut View<'_>, at: u64) -> Option<u64> {
    let range = at..at + LYRICS_BYTES_MAX;
    let end = view.find(range.clone(), b"LYRICS200").or_else(|| view.find(range, b"LYRICSEND"))?;
    Some(end + 9)
}
