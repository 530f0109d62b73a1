//! HTML: from its declaration or `<html>` to the end of `</html>`.

use super::markup::{Tag, tag};
use super::text::{after_space, interrupts, may_begin, no_text};
use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// HTML has few distinctive marks. The validator checks that it is text, and that all elements that
/// must be closed are closed in order.
pub struct Html;

const HTML: Kind = Kind::new("html");
/// Elements that must be closed in the order in which they were opened.
const CLOSED: &[&str] = &[
    "html", "head", "body", "div", "table", "ul", "ol", "dl", "form", "pre", "select", "title",
    "fieldset", "section", "article", "nav", "main", "iframe", "object", "svg",
];
/// Elements whose contents have no tags.
const RAW: [&str; 3] = ["script", "style", "textarea"];
const DEPTH_MAX: usize = 4096;
/// Maximum length of a page, and of the text between two tags, in bytes.
const PAGE_BYTES_MAX: u64 = 64 << 20;
const TEXT_BYTES_MAX: u64 = 4 << 20;

impl Format for Html {
    fn kinds(&self) -> &[Kind] {
        &[HTML]
    }

    fn signatures(&self) -> &[Signature] {
        &[
            Signature { hex: "3C 21 ?4 ?F ?3 ?4 ?9 ?0 ?5 20 ?8 ?4 ?D ?C", at: 0 },
            Signature { hex: "3C 21 ?4 ?F ?3 ?4 ?9 ?0 ?5 20 ?8 ?4 ?D ?C", at: 3 },
            Signature { hex: "3C 68 74 6D 6C", at: 0 },
            Signature { hex: "3C 48 54 4D 4C", at: 0 },
        ]
    }

    fn is_weak(&self) -> bool {
        true
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let start = if view.is_at(0, b"\xEF\xBB\xBF") { 3 } else { 0 };
        if !view.is_at(start, b"<") || !may_begin(view) {
            return Verdict::Not;
        }
        let mut page = Page { at: start, open: Vec::new(), has_html: false, sure: 0 };
        match page.read(view) {
            Ok(end) if interrupts(view, b"</html>") => Verdict::broken(
                view,
                HTML,
                page.sure,
                end,
                "it is inside another page, which may end",
            ),
            Ok(length) => Verdict::Whole { length, kind: HTML },
            Err((..)) if !page.has_html => Verdict::Not,
            Err((at, reason)) => Verdict::broken(view, HTML, page.sure, at.max(page.sure), reason),
        }
    }
}

struct Page {
    at: u64,
    /// The open elements, by their index in the list.
    open: Vec<u8>,
    has_html: bool,
    /// The end of the last tag in the first sector: the bytes before it certainly belong to this
    /// page.
    sure: u64,
}

impl Page {
    /// Returns the length of the page.
    fn read(&mut self, view: &mut View<'_>) -> Result<u64, (u64, &'static str)> {
        while self.at < PAGE_BYTES_MAX {
            let end = self.at.saturating_add(TEXT_BYTES_MAX).min(view.length());
            let next = view.find(self.at..end, b"<").unwrap_or(end);
            if let Some(place) = no_text(view, self.at, next) {
                return Err((place, "bytes that are not text"));
            }
            let Some((tag, after)) = tag(view, next) else {
                if next >= end {
                    return Err((end, "no </html>"));
                }
                // An unescaped character.
                self.at = next + 1;
                continue;
            };
            if let Some(place) = no_text(view, next, after) {
                return Err((place, "bytes that are not text"));
            }
            self.at = after;
            if after <= 512 {
                self.sure = after;
            }
            if self.take(view, tag, next)? {
                return Ok(self.end(view));
            }
        }
        Err((self.at, "a page without an end"))
    }

    /// Handles a tag. Returns whether it was the last one.
    fn take(
        &mut self,
        view: &mut View<'_>,
        tag: Tag,
        at: u64,
    ) -> Result<bool, (u64, &'static str)> {
        let place = |name: &[u8]| {
            let name = name.to_ascii_lowercase();
            CLOSED.iter().position(|closed| closed.as_bytes() == name).map(|place| place as u8)
        };
        match tag {
            Tag::Open(name, false) => {
                if let Some(element) = place(&name) {
                    if element == 0 && self.has_html || self.open.len() >= DEPTH_MAX {
                        return Err((at, "another page begins"));
                    }
                    self.has_html |= element == 0;
                    self.open.push(element);
                } else if RAW.iter().any(|raw| name.eq_ignore_ascii_case(raw.as_bytes())) {
                    self.at = after_raw(view, self.at, &name).ok_or((at, "a script"))?;
                }
            }
            Tag::Close(name) => {
                if let Some(element) = place(&name) {
                    if self.open.pop() != Some(element) {
                        return Err((at, "elements closed that are not open"));
                    }
                    return Ok(element == 0 && self.open.is_empty());
                }
            }
            Tag::Declaration(name) if self.has_html && name.eq_ignore_ascii_case(b"doctype") => {
                return Err((at, "another page begins"));
            }
            _ => {}
        }
        Ok(false)
    }

    /// Returns the end of the file: white space and comments after its last tag belong to it.
    fn end(&self, view: &mut View<'_>) -> u64 {
        let mut at = after_space(view, self.at);
        while view.is_at(at, b"<!--") {
            match tag(view, at) {
                Some((_, after)) if no_text(view, at, after).is_none() => {
                    at = after_space(view, after);
                }
                _ => break,
            }
        }
        at
    }
}

/// Returns the place of the closing tag of the element `name`, which contains no tags.
fn after_raw(view: &mut View<'_>, at: u64, name: &[u8]) -> Option<u64> {
    let end = at.saturating_add(TEXT_BYTES_MAX);
    let mut from = at;
    loop {
        let place = view.find(from..end, b"</")?;
        let found = view.take(place + 2, name.len())?;
        if found.eq_ignore_ascii_case(name) {
            return no_text(view, at, place).is_none().then_some(place);
        }
        from = place + 2;
    }
}
