//! Checks streams of known programs, which consist of records.

use super::table::{Stream, Trouble, trouble};
use crate::view::View;

/// The deepest nesting of records; programs write about eight levels.
const DEPTH_MAX: usize = 64;

/// Checks all known streams.
pub(super) fn check(view: &mut View<'_>, streams: &[Stream]) -> Result<(), Trouble> {
    for stream in streams {
        match stream.name.as_str() {
            "Workbook" | "Book" => workbook(view, stream)?,
            "PowerPoint Document" | "Pictures"
                if is_presentation_encrypted(view, stream, streams) => {}
            "PowerPoint Document" | "Pictures" => records(view, stream)?,
            "WordDocument" => word(view, stream, streams)?,
            "\u{5}SummaryInformation" | "\u{5}DocumentSummaryInformation" => {
                properties(view, stream)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a presentation needs a password: its user stream states that, and all its records are
/// encrypted ([MS-PPT] 2.3.2, `headerToken`).
fn is_presentation_encrypted(view: &mut View<'_>, stream: &Stream, streams: &[Stream]) -> bool {
    let user = stream.sibling(view, streams, "Current User");
    user.and_then(|user| user.array::<4>(view, 12)) == Some([0xDF, 0xC4, 0xD1, 0xF3])
}

fn at(stream: &Stream, place: u64) -> u64 {
    stream.place(place.min(stream.bytes.saturating_sub(1))).unwrap_or(0)
}

/// Reads sheets of records, each with type and length, until each sheet is closed.
fn workbook(view: &mut View<'_>, stream: &Stream) -> Result<(), Trouble> {
    let mut place = 0;
    let mut depth = 0usize;
    loop {
        let Some([a, b, c, d]) = stream.array::<4>(view, place) else {
            return match depth == 0 && place > 0 && !view.is_starved() {
                true => Ok(()),
                false => trouble(at(stream, place), "records of a workbook without an end"),
            };
        };
        let (kind, bytes) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        match kind {
            0x0809 | 0x0409 | 0x0209 | 0x0009 => depth += 1,
            _ if depth == 0 && place > 0 => return padding(view, stream, place),
            0x000A if bytes == 0 => depth -= 1,
            _ if depth == 0 || kind == 0 || kind > 0x1FFF || bytes > 8224 => {
                return trouble(at(stream, place), "an invalid record of a workbook");
            }
            _ => {}
        }
        place += 4 + u64::from(bytes);
    }
}

/// Checks that the bytes after the last record are zero, or all equal.
fn padding(view: &mut View<'_>, stream: &Stream, from: u64) -> Result<(), Trouble> {
    for place in from..stream.bytes.min(from + 64) {
        if stream.array::<1>(view, place) != Some([0]) {
            return trouble(at(stream, place), "records of a workbook");
        }
    }
    Ok(())
}

/// Reads nested records: kind and version, length.
fn records(view: &mut View<'_>, stream: &Stream) -> Result<(), Trouble> {
    let mut place = 0;
    let mut ends: Vec<u64> = Vec::new();
    while place + 8 <= stream.bytes {
        let Some(head) = stream.array::<8>(view, place) else {
            return trouble(at(stream, place), "truncated");
        };
        let kind = u16::from_le_bytes([head[2], head[3]]);
        let bytes = u64::from(u32::from_le_bytes([head[4], head[5], head[6], head[7]]));
        if head == [0; 8] && ends.is_empty() {
            return Ok(());
        }
        let end = place + 8 + bytes;
        let fits = end <= *ends.last().unwrap_or(&stream.bytes);
        if !fits || !matches!(kind, 0x03E8..=0x2FFF | 0xF000..=0xF1FF) {
            return trouble(at(stream, place), "an invalid record of a presentation");
        }
        let is_container = head[0] & 0x0F == 0x0F;
        place = if is_container { place + 8 } else { end };
        if is_container && ends.len() < DEPTH_MAX {
            ends.push(end);
        }
        while ends.last().is_some_and(|end| place >= *end) {
            ends.pop();
        }
    }
    Ok(())
}

/// Checks a document's header, and the pages with the formatting of its text.
fn word(view: &mut View<'_>, stream: &Stream, streams: &[Stream]) -> Result<(), Trouble> {
    let Some(head) = stream.array::<0x120>(view, 0) else {
        return Ok(());
    };
    let two = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    let four = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|index| head[at + index]));
    if !matches!(two(0), 0xA5EC | 0xA5DC | 0xA5DB) {
        return trouble(at(stream, 0), "the head of a document");
    }
    // Only this version keeps its tables in a separate stream.
    let is_encrypted = two(10) & 0x0100 != 0;
    if two(0) != 0xA5EC || two(2) < 0xC1 || is_encrypted {
        return Ok(());
    }
    let name = if two(10) & 0x0200 != 0 { "1Table" } else { "0Table" };
    let Some(table) = stream.sibling(view, streams, name) else { return Ok(()) };
    for (from, bytes) in [(four(0xFA), four(0xFE)), (four(0x102), four(0x106))] {
        let count = u64::from(bytes).saturating_sub(4) / 8;
        let from = u64::from(from);
        for index in 0..count {
            let first = table.array::<4>(view, from + 4 * index);
            let page = table.array::<4>(view, from + 4 * (count + 1) + 4 * index);
            let (Some(first), Some(page)) = (first, page) else {
                return trouble(at(table, from), "truncated");
            };
            let place = u64::from(u32::from_le_bytes(page) & 0x003F_FFFF) * 512;
            let runs = stream.array::<1>(view, place + 511);
            let is_page = matches!(runs, Some([1..=0x65]));
            if !is_page || stream.array::<4>(view, place) != Some(first) {
                return trouble(at(stream, place), "a page of formats");
            }
        }
    }
    Ok(())
}

fn properties(view: &mut View<'_>, stream: &Stream) -> Result<(), Trouble> {
    match stream.array::<4>(view, 0) {
        Some([0xFE, 0xFF, 0 | 1, 0]) | None => Ok(()),
        Some(_) => trouble(at(stream, 0), "properties"),
    }
}
