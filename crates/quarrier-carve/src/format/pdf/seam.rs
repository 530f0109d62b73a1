//! Finds the exact place within an object at which a file is interrupted.

use std::ops::Range;

use super::mend::from;
use super::object::{dictionary, head_near, object_at, object_ends, stream_at, stream_ends};
use super::packed::Packed;
use super::sfnt::Sfnt;
use super::syntax::{integer, value_of};
use super::type1::Type1;
use crate::format::jpg;
use crate::mend::{Gap, Reading, Step, likely_gap};
use crate::view::{Extent, View};

/// Maximum number of places to try in a stream.
const PLACES_MAX: usize = 1024;
/// Bytes after a stream that a reader may look at to detect its end.
const AFTER_BYTES: u64 = 64;
/// The first step of a resumed reader.
const STRIDE_BYTES: u64 = 1 << 10;

/// A place at which a file is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seam {
    /// In bytes of the file.
    pub(super) left_at: u64,
    /// The length of the gap.
    pub(super) gap: u64,
}

/// Finds the place in `within` at which a gap of `gap` bytes interrupts the file. An object begins
/// at the start of `within`; `view` shows the file up to there, and the gap somewhere after it.
/// `None` if the place is uncertain.
pub(super) fn find_seam(
    view: &mut View<'_>,
    within: Range<u64>,
    gap: u64,
    block: u64,
) -> Option<Seam> {
    let extents = view.extents().to_vec();
    let start = head_near(view, within.start).unwrap_or(within.start);
    let start = certain_end(view, start, within.end);
    let first = (start.max(within.start + 1)).div_ceil(block) * block;
    let last = within.end / block * block;
    if first >= last {
        return (first == last).then_some(Seam { left_at: first, gap });
    }
    let gap = Gap { first, last, bytes: gap };
    let left_at = match stream_in(view, start) {
        Some(stream) => in_stream(view, &extents, &stream, gap, within.end, block),
        None => in_object(view, &extents, start, gap, within.end, block),
    }?;
    Some(Seam { left_at, gap: gap.bytes })
}

/// Reads consecutive objects while nothing is uncertain.
fn certain_end(view: &mut View<'_>, start: u64, end: u64) -> u64 {
    let mut at = start;
    while let Some((_, body)) = object_at(view, at) {
        match object_ends(view, body, &mut None) {
            (Some(after), true) if after <= end => at = after,
            _ => break,
        }
    }
    at
}

/// The stream in the interrupted object.
struct Stream {
    about: Vec<u8>,
    data: u64,
}

fn stream_in(view: &mut View<'_>, start: u64) -> Option<Stream> {
    let (_, body) = object_at(view, start)?;
    let (about, after) = dictionary(view, body)?;
    let data = stream_at(view, after)?;
    Some(Stream { about, data })
}

/// Returns `extents` without the gap, if it is at `left_at`.
fn split(extents: &[Extent], left_at: u64, gap: u64) -> Vec<Extent> {
    let mut kept = crate::view::cut(extents, left_at);
    kept.extend(from(extents, left_at.saturating_add(gap)));
    kept
}

/// Returns the only possible place of the gap in an object without a stream.
fn in_object(
    view: &mut View<'_>,
    extents: &[Extent],
    start: u64,
    gap: Gap,
    end: u64,
    block: u64,
) -> Option<u64> {
    let places = (gap.first..=gap.last).step_by(block as usize).take(PLACES_MAX);
    let mut found = Vec::new();
    for left_at in places {
        view.look_at(&split(extents, left_at, gap.bytes), view.fuel_bytes());
        let ends = object_at(view, start).map(|(_, body)| object_ends(view, body, &mut None));
        if matches!(ends, Some((Some(after), true)) if after <= end && after > left_at) {
            found.push(left_at);
        }
    }
    view.look_at(extents, view.fuel_bytes());
    match found[..] {
        [] => None,
        [one] => Some(one),
        [first, .., last] => {
            let some = Gap { first, last, ..gap };
            let place = likely_gap(view, some, start..end + gap.bytes, block)?;
            found.contains(&place).then_some(place)
        }
    }
}

/// Returns the only possible place of the gap in a stream.
fn in_stream(
    view: &mut View<'_>,
    extents: &[Extent],
    stream: &Stream,
    gap: Gap,
    end: u64,
    block: u64,
) -> Option<u64> {
    let first = gap.first.max(stream.data.div_ceil(block) * block);
    let length = value_of(&stream.about, b"Length").and_then(integer);
    let ends = length.and_then(|length| stream.data.checked_add(length));
    if let Some(ends) = ends {
        // After the gap it must end at its stated end.
        if ends > end || stream_ends(view, ends + gap.bytes, 0).is_none() {
            return None;
        }
    }
    let last = gap.last.min(ends.unwrap_or(end) / block * block);
    let gap = Gap { first, last, ..gap };
    if first == last {
        return Some(first);
    }
    let filter = value_of(&stream.about, b"Filter").unwrap_or(b"");
    let filter = filter.trim_ascii_start().strip_prefix(b"[").unwrap_or(filter).trim_ascii_start();
    let start: Option<Box<dyn Reading>> = if filter.starts_with(b"/FlateDecode") {
        Some(Box::new(Packed::new()))
    } else if filter.starts_with(b"/DCTDecode") {
        Some(Box::new(jpg::Reader::new()))
    } else if filter.is_empty() && value_of(&stream.about, b"Length2").is_some() {
        Some(Box::new(Type1::new()))
    } else if filter.is_empty() && value_of(&stream.about, b"Length1").is_some() {
        Some(Box::new(Sfnt::new()))
    } else {
        None
    };
    let within = stream.data..ends.unwrap_or(end);
    let found = start.map(|start| taken_up(view, extents, within, start, gap, block));
    view.look_at(extents, view.fuel_bytes());
    match found {
        Some(SeamOutcome::At(place)) => Some(place),
        // Fonts may be coded differently.
        Some(SeamOutcome::Nowhere) if !filter.is_empty() => None,
        Some(SeamOutcome::Many) => None,
        Some(SeamOutcome::Unreadable | SeamOutcome::Nowhere) | None => {
            let known = stream.data..ends.unwrap_or(end) + gap.bytes;
            likely_gap(view, gap, known, block)
        }
    }
}

/// Where a stream can continue after the gap.
enum SeamOutcome {
    At(u64),
    Many,
    /// The stream cannot be read to its end from any place.
    Nowhere,
    /// The bytes before the gap are encrypted and show nothing.
    Unreadable,
}

/// Finds the place at which `start`, a reader of the stream in `within`, can be interrupted and
/// resumed after the gap so that it reads to the stream's end.
fn taken_up(
    view: &mut View<'_>,
    extents: &[Extent],
    within: Range<u64>,
    start: Box<dyn Reading>,
    gap: Gap,
    block: u64,
) -> SeamOutcome {
    let data = within.start;
    // The reader does not read past the stream.
    let stream = from(extents, data);
    let length = within.end - data + AFTER_BYTES;
    view.look_at(&stream, view.fuel_bytes());
    let mut reading = start;
    let mut left: Vec<(u64, Box<dyn Reading>)> = Vec::new();
    for place in (gap.first..=gap.last).step_by(block as usize) {
        if reading.read_to(view, place - data) != Step::Going {
            break;
        }
        left.push((place, reading.copy()));
        if left.len() > PLACES_MAX {
            left.remove(0);
        }
    }
    if left.is_empty() {
        return SeamOutcome::Unreadable;
    }
    let mut found = Vec::new();
    for (place, reading) in left.into_iter().rev() {
        let joined = crate::view::cut(&split(&stream, place - data, gap.bytes), length);
        view.look_at(&joined, view.fuel_bytes());
        let (mut reading, mut stride, mut to) = (reading, STRIDE_BYTES, place - data);
        loop {
            to = to.saturating_add(stride);
            match reading.read_to(view, to) {
                Step::Going if !view.is_starved() => stride = stride.saturating_mul(4),
                Step::Whole { .. } => {
                    found.push(place);
                    break;
                }
                _ => break,
            }
        }
    }
    match found[..] {
        [] => SeamOutcome::Nowhere,
        [place] => SeamOutcome::At(place),
        _ => SeamOutcome::Many,
    }
}
