//! XML, from its declaration to the end of the root.
//!
//! *Extensible Markup Language (XML) 1.0*, elements only.

use super::markup::{Tag, tag};
use super::text::{after_space, may_begin, no_text};
use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// XML. It has few distinctive marks. The validator checks that it is text, and that all elements
/// are closed in order.
pub struct Xml;

const XML: Kind = Kind::new("xml");
const PLIST: Kind = Kind { name: "plist", extension: "plist" };
/// Maximum size of the names of all open elements together, in bytes.
const NAMES_BYTES_MAX: usize = 1 << 20;
const TEXT_BYTES_MAX: u64 = 16 << 20;

impl Format for Xml {
    fn kinds(&self) -> &[Kind] {
        &[XML, PLIST]
    }

    fn signatures(&self) -> &[Signature] {
        // "<?xml version=", with or without a UTF-8 byte order mark before it.
        const HEX: &str = "3C 3F 78 6D 6C 20 76 65 72 73 69 6F 6E 3D";
        &[Signature { hex: HEX, at: 0 }, Signature { hex: HEX, at: 3 }]
    }

    fn is_weak(&self) -> bool {
        true
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let start = if view.is_at(0, b"\xEF\xBB\xBF") { 3 } else { 0 };
        if !view.is_at(start, b"<?xml") || !may_begin(view) {
            return Verdict::Not;
        }
        let mut kind = None;
        match read(view, start, &mut kind) {
            Ok(length) => kind.map_or(Verdict::Not, |kind| Verdict::Whole { length, kind }),
            Err((at, reason)) => match kind {
                Some(kind) => Verdict::broken(view, kind, 0, at, reason),
                None => Verdict::Not,
            },
        }
    }
}

/// Returns the length of the file whose declaration is at `at`; sets `kind` to the type of its
/// root.
fn read(
    view: &mut View<'_>,
    mut at: u64,
    kind: &mut Option<Kind>,
) -> Result<u64, (u64, &'static str)> {
    // The concatenated names of open elements, and the start of each.
    let mut names: Vec<u8> = Vec::new();
    let mut starts: Vec<u32> = Vec::new();
    loop {
        let end = at.saturating_add(TEXT_BYTES_MAX).min(view.length());
        let next = view.find(at..end, b"<").ok_or((end, "elements without an end"))?;
        let (tag, after) = tag(view, next).ok_or((next, "no tag"))?;
        if let Some(place) = no_text(view, at, after) {
            return Err((place, "bytes that are not text"));
        }
        at = after;
        match tag {
            Tag::Open(name, is_closed) => {
                if kind.is_none() {
                    *kind = kind_of(&name);
                    if kind.is_none() {
                        return Err((next, "another format"));
                    }
                }
                if names.len() + name.len() > NAMES_BYTES_MAX {
                    return Err((next, "elements in elements"));
                }
                if !is_closed {
                    starts.push(names.len() as u32);
                    names.extend_from_slice(&name);
                } else if starts.is_empty() {
                    return Ok(after_root(view, at));
                }
            }
            Tag::Close(name) => {
                let start = starts.pop().ok_or((next, "an element closed that is not open"))?;
                if names[start as usize..] != name[..] {
                    return Err((next, "elements closed in another order"));
                }
                names.truncate(start as usize);
                if starts.is_empty() {
                    return Ok(after_root(view, at));
                }
            }
            Tag::Declaration(_) if kind.is_some() => return Err((next, "a declaration")),
            Tag::Declaration(_) | Tag::Other => {}
        }
    }
}

/// Returns the type by the root's name. Pictures and pages are separate formats.
fn kind_of(root: &[u8]) -> Option<Kind> {
    match root {
        b"plist" => Some(PLIST),
        b"svg" | b"svg:svg" => None,
        _ => Some(XML),
    }
}

/// Returns the end of the file, whose root ends at `at`: white space and comments may follow.
fn after_root(view: &mut View<'_>, at: u64) -> u64 {
    let mut at = after_space(view, at);
    while view.is_at(at, b"<!--") || (view.is_at(at, b"<?") && !view.is_at(at, b"<?xml ")) {
        match tag(view, at) {
            Some((_, after)) if no_text(view, at, after).is_none() => {
                at = after_space(view, after);
            }
            _ => break,
        }
    }
    at
}
