//! Decides whether a whole file is a part of another, by the bytes right before it. The pictures
//! and archives inside a fragmented document are often whole on their own.

use crate::view::{Extent, SECTOR_BYTES, View};

/// Number of bytes to examine before a file.
const BEFORE_BYTES: u64 = 32;
/// Minimum length to look for: a smaller number before a file may match by chance.
const LENGTH_BYTES_MIN: u64 = 256;
/// The theme of a workbook: a record of this type, with 20 bytes before the archive.
const THEME: [u8; 2] = [0x96, 0x08];
const THEME_BYTES: usize = 20;

/// Returns whether the file of `length` bytes at `offset` is enclosed in another. Separate files
/// begin at sectors.
pub(super) fn is_enclosed(view: &mut View<'_>, offset: u64, length: u64) -> bool {
    if offset.is_multiple_of(SECTOR_BYTES) || offset < BEFORE_BYTES {
        return false;
    }
    view.look_at(&[Extent { offset: offset - BEFORE_BYTES, length: BEFORE_BYTES }], u64::MAX);
    let Some(before) = view.take(0, BEFORE_BYTES as usize) else { return false };
    is_stream(before)
        || has_length_before(before, length)
        || is_theme(before, length)
        || is_thumbnail(before, length)
}

/// Whether a PDF stream begins after these bytes.
fn is_stream(before: &[u8]) -> bool {
    before.ends_with(b"stream\n") || before.ends_with(b"stream\r\n")
}

/// Whether the file's length is right before it, as in records of documents and chunks of films.
fn has_length_before(before: &[u8], length: u64) -> bool {
    let Some(stated) = before.last_chunk::<4>() else { return false };
    let stated = [u32::from_le_bytes(*stated), u32::from_be_bytes(*stated)].map(u64::from);
    length >= LENGTH_BYTES_MIN
        && stated.iter().any(|stated| *stated == length || *stated == length + 1)
}

fn is_theme(before: &[u8], length: u64) -> bool {
    let Some(record) = before.last_chunk::<THEME_BYTES>() else { return false };
    let bytes = u64::from(u16::from_le_bytes([record[2], record[3]]));
    record[..2] == THEME && bytes == (length + THEME_BYTES as u64 - 4) && record[4..6] == THEME
}

/// Whether a Photoshop thumbnail begins after these bytes: its length, 24 bits per pixel, one
/// plane.
fn is_thumbnail(before: &[u8], length: u64) -> bool {
    before.strip_suffix(&[0, 24, 0, 1]).is_some_and(|before| has_length_before(before, length))
}
