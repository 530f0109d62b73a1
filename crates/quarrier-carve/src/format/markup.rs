//! Tags of HTML and XML.

use crate::view::{TAKE_BYTES_MAX, View};

/// Maximum length in bytes of a tag, comment or similar markup.
const TAG_BYTES_MAX: usize = 32 << 10;
const COMMENT_BYTES_MAX: u64 = 4 << 20;

/// The kind of markup that a `<` begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tag {
    /// `<name …>`; whether it closes itself.
    Open(Vec<u8>, bool),
    /// `</name>`.
    Close(Vec<u8>),
    /// A declaration, with its name: `DOCTYPE`.
    Declaration(Vec<u8>),
    /// A comment, an instruction, a CDATA section.
    Other,
}

/// Reads the tag that begins at `at`; returns it and its end.
pub(crate) fn tag(view: &mut View<'_>, at: u64) -> Option<(Tag, u64)> {
    for (begin, end) in [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")] {
        if view.is_at(at, begin.as_bytes()) {
            let from = at + begin.len() as u64;
            let place = view.find(from..from + COMMENT_BYTES_MAX, end.as_bytes())?;
            return Some((Tag::Other, place + end.len() as u64));
        }
    }
    for most in [256, TAG_BYTES_MAX.min(TAKE_BYTES_MAX)] {
        let there = view.length().saturating_sub(at).min(most as u64) as usize;
        let bytes = view.take(at, there)?;
        let looked = tag_bytes(bytes);
        let found = looked.ok().map(|length| parse(&bytes[..length]).map(|tag| (tag, length)));
        let (Ok(length) | Err(length)) = looked;
        view.refund((there - length) as u64);
        if let Some(found) = found {
            return found.map(|(tag, length)| (tag, at + length as u64));
        }
        if there < most || length < there {
            break;
        }
    }
    None
}

/// Returns the length of the tag at the start of `bytes`: a `>` in quotes does not end it. `Err`
/// with the number of bytes after which it is certain that this is not a tag.
fn tag_bytes(bytes: &[u8]) -> Result<usize, usize> {
    let mut quote = None;
    let mut depth = 0usize;
    for (index, byte) in bytes.iter().enumerate() {
        match (quote, byte) {
            (Some(open), _) if open == *byte => quote = None,
            (Some(_), _) => {}
            // An apostrophe within a word is not a quote.
            (None, b'"' | b'\'') if index > 0 && b"= \t\n".contains(&bytes[index - 1]) => {
                quote = Some(*byte);
            }
            (None, b'[') if bytes.starts_with(b"<!") => depth += 1,
            (None, b']') => depth = depth.saturating_sub(1),
            (None, b'>') if depth == 0 => return Ok(index + 1),
            (None, b'<') if index > 0 && depth == 0 => return Err(index),
            _ => {}
        }
    }
    Err(bytes.len())
}

fn parse(tag: &[u8]) -> Option<Tag> {
    let inner = &tag[1..tag.len() - 1];
    let (inner, is_close, is_declaration) = match inner.first()? {
        b'/' => (&inner[1..], true, false),
        b'!' => (&inner[1..], false, true),
        _ => (inner, false, false),
    };
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b":_-.".contains(byte) || *byte > 127;
    let length = inner.iter().take_while(|byte| is_name(byte)).count();
    let name = inner[..length].to_vec();
    let rest = &inner[length..];
    if length == 0 || inner[0].is_ascii_digit() {
        return None;
    }
    if rest.first().is_some_and(|byte| !byte.is_ascii_whitespace() && *byte != b'/') {
        return None;
    }
    Some(match (is_declaration, is_close) {
        (true, _) => Tag::Declaration(name),
        (_, true) => Tag::Close(name),
        (..) => Tag::Open(name, inner.ends_with(b"/")),
    })
}
