//! Objects of a PDF in a view.

use super::syntax::{self, head, is_space, skip_space, skip_value};
use crate::view::{TAKE_BYTES_MAX, View};

/// Maximum error of a stated offset in bytes: far less than a block.
pub(super) const SLIP_BYTES: u64 = 32;
/// Maximum length of the start of an object, `12345 0 obj`, with white space before it.
const HEAD_BYTES: usize = 48;
/// How far to search for the end of an object whose length is unknown.
const END_BYTES_MAX: u64 = 16 << 20;

/// Maximum number of objects to remember.
const HEADS_MAX: usize = 4096;

/// Returns up to `most` bytes from `at`, fewer at the end.
pub(super) fn some<'v>(view: &'v mut View<'_>, at: u64, most: usize) -> &'v [u8] {
    let there = view.length().saturating_sub(at).min(most as u64) as usize;
    view.take(at, there).unwrap_or(&[])
}

/// Returns the place of the first byte from `at` on that is not white space; it searches only a few
/// hundred bytes.
pub(super) fn after_space(view: &mut View<'_>, mut at: u64) -> u64 {
    for bytes in [4, 64, 512] {
        let bytes = some(view, at, bytes);
        match bytes.iter().position(|byte| !is_space(*byte)) {
            Some(place) => return at + place as u64,
            None => at += bytes.len() as u64,
        }
    }
    at
}

/// Skips white space and comments, but not `%%EOF`.
pub(super) fn after_comments(view: &mut View<'_>, at: u64) -> u64 {
    let mut at = after_space(view, at);
    for _ in 0..64 {
        let bytes = some(view, at, 512);
        if !bytes.starts_with(b"%") || bytes.starts_with(b"%%EOF") {
            break;
        }
        let Some(end) = memchr::memchr2(b'\r', b'\n', bytes) else { break };
        at = after_space(view, at + end as u64);
    }
    at
}

/// Returns the number of the object that begins at `at`, and the place after `obj`.
pub(super) fn object_at(view: &mut View<'_>, at: u64) -> Option<(u64, u64)> {
    let bytes = some(view, at, HEAD_BYTES);
    let from = bytes.iter().position(|byte| !is_space(*byte))?;
    head(bytes, from).map(|(number, end)| (number, at + end as u64))
}

/// Returns the place of object `number`, whose stated place is `at`.
pub(super) fn object_near(view: &mut View<'_>, at: u64, number: u64) -> Option<u64> {
    if object_at(view, at).is_some_and(|(found, _)| found == number) {
        return Some(at);
    }
    near(view, at, |found| found == number)
}

/// Returns the place of the object whose stated place is `at`.
pub(super) fn head_near(view: &mut View<'_>, at: u64) -> Option<u64> {
    if object_at(view, at).is_some() {
        return Some(at);
    }
    near(view, at, |_| true)
}

fn near(view: &mut View<'_>, at: u64, is_it: impl Fn(u64) -> bool) -> Option<u64> {
    let from = at.saturating_sub(SLIP_BYTES);
    let bytes = some(view, from, 2 * SLIP_BYTES as usize + HEAD_BYTES);
    let starts = (0..bytes.len().min(2 * SLIP_BYTES as usize)).filter(|start| {
        bytes[*start].is_ascii_digit() && (*start == 0 || !bytes[start - 1].is_ascii_digit())
    });
    let mut places = starts.filter(|start| head(bytes, *start).is_some_and(|(n, _)| is_it(n)));
    places.next().map(|place| from + place as u64)
}

/// Returns the place of the word `xref`, whose stated place is `at`.
pub(super) fn table_near(view: &mut View<'_>, at: u64) -> Option<u64> {
    if view.is_at(at, b"xref") {
        return Some(at);
    }
    let from = at.saturating_sub(SLIP_BYTES);
    let bytes = some(view, from, 2 * SLIP_BYTES as usize + 4);
    let mut places = memchr::memmem::find_iter(bytes, b"xref")
        .filter(|place| *place == 0 || is_space(bytes[place - 1]));
    places.next().map(|place| from + place as u64)
}

/// Reads the dictionary that begins at `at`; returns it and its end.
pub(super) fn dictionary(view: &mut View<'_>, at: u64) -> Option<(Vec<u8>, u64)> {
    for most in [512, 4096, TAKE_BYTES_MAX] {
        let bytes = some(view, at, most);
        let from = skip_space(bytes, 0);
        if !bytes.get(from..)?.starts_with(b"<<") {
            return None;
        }
        if let Some(end) = skip_value(bytes, from) {
            return Some((bytes[from..end].to_vec(), at + end as u64));
        }
        if bytes.len() < most {
            return None;
        }
    }
    None
}

/// Returns the start of the stream whose dictionary ends at `at`.
pub(super) fn stream_at(view: &mut View<'_>, at: u64) -> Option<u64> {
    let word = after_space(view, at);
    if !view.is_at(word, b"stream") {
        return None;
    }
    Some(match some(view, word + 6, 2) {
        [b'\r', b'\n'] => word + 8,
        [b'\n' | b'\r', ..] => word + 7,
        _ => word + 6,
    })
}

/// Returns the stated end of the stream that begins at `from` and has `length` bytes, if it ends
/// there.
pub(super) fn stream_ends(view: &mut View<'_>, from: u64, length: u64) -> Option<u64> {
    let end = from.checked_add(length)?;
    let word = after_space(view, end);
    (word - end <= 4 && view.is_at(word, b"endstream")).then_some(word + 9)
}

/// The result of reading consecutive objects.
pub(super) struct Walked {
    /// All bytes before this one certainly belong to the file.
    pub(super) sure: u64,
    /// The first place at which no object begins.
    pub(super) at: u64,
    /// The starts of the first objects.
    pub(super) heads: Vec<u64>,
    /// The stated end of the first stream that does not end there.
    pub(super) doubt: Option<u64>,
}

/// Reads consecutive objects from `from` on.
pub(super) fn walk(view: &mut View<'_>, from: u64) -> Walked {
    let mut walked = Walked { sure: from, at: from, heads: Vec::new(), doubt: None };
    let mut is_sure = true;
    loop {
        walked.at = after_comments(view, walked.at);
        let Some((_, body)) = object_at(view, walked.at) else { return walked };
        if walked.heads.len() < HEADS_MAX {
            walked.heads.push(walked.at);
        }
        let (end, is_certain) = object_ends(view, body, &mut walked.doubt);
        let Some(end) = end else { return walked };
        walked.at = end;
        is_sure &= is_certain;
        if is_sure {
            walked.sure = end;
        }
    }
}

/// Returns the end of the object whose contents begin at `body`, and whether that end is certain.
pub(super) fn object_ends(
    view: &mut View<'_>,
    body: u64,
    doubt: &mut Option<u64>,
) -> (Option<u64>, bool) {
    let Some((dictionary, after)) = dictionary(view, body) else {
        let bytes = some(view, body, 4096);
        let after = skip_value(bytes, 0).map_or(body, |end| body + end as u64);
        return end_after(view, after);
    };
    let Some(data) = stream_at(view, after) else { return end_after(view, after) };
    let length = syntax::value_of(&dictionary, b"Length").and_then(syntax::integer);
    if let Some(length) = length {
        if let Some(end) = stream_ends(view, data, length) {
            return end_after(view, end);
        }
        doubt.get_or_insert(data.saturating_add(length));
    }
    let end = view.find(data..data.saturating_add(END_BYTES_MAX), b"endstream");
    (end.and_then(|end| object_end_from(view, end)), false)
}

/// Returns the end of the `endobj` that should be at `at` or is later, and whether it is at `at`.
fn end_after(view: &mut View<'_>, at: u64) -> (Option<u64>, bool) {
    let end = after_space(view, at);
    match view.is_at(end, b"endobj") {
        true => (Some(end + 6), true),
        false => (object_end_from(view, at), false),
    }
}

fn object_end_from(view: &mut View<'_>, at: u64) -> Option<u64> {
    view.find(at..at.saturating_add(1 << 20), b"endobj").map(|place| place + 6)
}
