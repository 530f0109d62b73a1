//! Finds the ends of elements, and the first message. Examines only tags, not their contents.

use memchr::{memchr, memchr3, memmem};

use super::XmlPlace;

/// Returns the end of the item at the start of `bytes`: an element with its contents, a comment, an
/// instruction, a declaration, an end tag, or text up to the next of these. `None` if `bytes` does
/// not include that end.
pub(super) fn extent(bytes: &[u8]) -> Option<usize> {
    if bytes.first() != Some(&b'<') {
        return memchr(b'<', bytes);
    }
    let (mut at, mut depth) = (0, 0u64);
    loop {
        let (end, step) = markup(bytes, at)?;
        depth = match step {
            Step::Into => depth + 1,
            Step::Same => depth,
            Step::OutOf => depth.saturating_sub(1),
        };
        if depth == 0 {
            return Some(end);
        }
        at = end + memchr(b'<', &bytes[end..])?;
    }
}

/// The change of depth by markup.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Into,
    Same,
    OutOf,
}

/// Returns the end of the markup whose `<` is at `at`.
fn markup(bytes: &[u8], at: usize) -> Option<(usize, Step)> {
    let rest = &bytes[at..];
    let until = |end: &[u8], from: usize| {
        let found = memmem::find(rest.get(from..)?, end)?;
        Some((at + from + found + end.len(), Step::Same))
    };
    match rest.get(1)? {
        b'?' => until(b"?>", 2),
        b'!' if rest.starts_with(b"<!--") => until(b"-->", 4),
        b'!' if rest.starts_with(b"<![CDATA[") => until(b"]]>", 9),
        // With more bytes it may be one of the above.
        b'!' if b"<!--".starts_with(rest) || b"<![CDATA[".starts_with(rest) => None,
        b'!' => declaration(rest).map(|end| (at + end, Step::Same)),
        b'/' => Some((at + memchr(b'>', rest)? + 1, Step::OutOf)),
        _ => {
            let end = tag(rest)?;
            let is_empty = rest[end - 2] == b'/';
            Some((at + end, if is_empty { Step::Same } else { Step::Into }))
        }
    }
}

/// Returns the end of a start tag; quoted attributes may contain a `>`.
fn tag(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        at += memchr3(b'>', b'"', b'\'', &bytes[at..])?;
        match bytes[at] {
            b'>' => return Some(at + 1),
            quote => at += memchr(quote, &bytes[at + 1..])? + 2,
        }
    }
}

/// Returns the end of a `<!DOCTYPE …>`, which may have more declarations in brackets.
fn declaration(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (1, 0usize);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' | b'\'' => at += memchr(byte, &bytes[at + 1..])? + 1,
            b'<' if bytes[at..].starts_with(b"<!--") => {
                at += memmem::find(&bytes[at..], b"-->")? + 2;
            }
            b'<' | b'[' => depth += 1,
            b'>' if depth == 0 => return Some(at + 1),
            b'>' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// Whether an item is not an element: blanks, a comment, an instruction or a declaration.
pub(super) fn is_nothing(piece: &[u8]) -> bool {
    match piece {
        [b'<', b'?', ..] => true,
        [b'<', b'!', rest @ ..] => !rest.starts_with(b"[CDATA["),
        piece => piece.iter().all(u8::is_ascii_whitespace),
    }
}

/// Returns the place of messages in the document, and the start of the first message or of
/// ignorable bytes before it. `None` if it needs more bytes, unless `is_all`.
pub(super) fn place(
    declared: Option<XmlPlace>,
    bytes: &[u8],
    is_all: bool,
) -> Option<(XmlPlace, usize)> {
    let Some(first) = element(bytes, 0) else {
        return is_all.then_some((declared.unwrap_or(XmlPlace::Outermost), 0));
    };
    let outermost = Some((XmlPlace::Outermost, 0));
    let Some(start) = tag(&bytes[first..]).map(|end| first + end) else {
        return outermost.filter(|_| is_all);
    };
    let within = Some((XmlPlace::Within, start));
    match declared {
        Some(XmlPlace::Outermost) => return outermost,
        Some(XmlPlace::Within) => return within,
        None => {}
    }
    let Some(end) = extent(&bytes[first..]).map(|end| first + end) else {
        return if is_all || bytes.len() >= LOOKED_AT_BYTES { within } else { None };
    };
    match element(bytes, end) {
        Some(_) => outermost,
        None if !is_all => None,
        // The only outermost element: a list if it contains elements.
        None if element(&bytes[..end], start).is_some_and(|at| bytes[at + 1] != b'/') => within,
        None => outermost,
    }
}

/// An outermost element longer than this counts as a list of messages.
const LOOKED_AT_BYTES: usize = 1 << 20;

/// Returns the first start tag or end tag at or after `at`.
fn element(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr(b'<', bytes.get(at..)?)?;
        match bytes.get(at + 1)? {
            b'?' | b'!' => at = markup(bytes, at)?.0,
            _ => return Some(at),
        }
    }
}
