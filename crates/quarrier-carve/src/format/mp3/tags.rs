//! What stands before and behind the frames.

use super::frame::Frame;
use crate::view::View;

/// Lyrics are shorter than this.
const LYRICS_BYTES_MAX: u64 = 1 << 20;

/// Where the ID3v2 tags that begin at `at` end, and the zeros behind them.
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

/// Bytes of the ID3v2 tag at `at`, with header and footer.
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

/// Where the tags that begin at `at`, behind the last frame, end: `at` if there are none. `Err`
/// with the place where one of them is wrong.
pub(super) fn behind(view: &mut View<'_>, mut at: u64) -> Result<u64, u64> {
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
            [b'T', b'A', b'G', ..] => at + 128,
            [b'I', b'D', b'3', ..] => match id3v2_bytes(view, at) {
                Some(bytes) if Frame::read(view, at + bytes).is_none() => at + bytes,
                // That of another file, which begins here.
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

/// An APE tag with a header: items and footer, whose length it says.
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
