//! SVG: the text of an XML document with the root element `svg`.

use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// SVG. The validator checks that all tags are closed, and that the file is text.
pub struct Svg;

const SVG: Kind = Kind::new("svg");
/// Maximum distance in bytes from the beginning to the root element.
const ROOT_BYTES_MAX: u64 = 16 << 10;
const DEPTH_MAX: u32 = 10_000;
/// Maximum length of a comment, instruction or tag, in bytes.
const MARK_BYTES_MAX: u64 = 64 << 20;

impl Format for Svg {
    fn kinds(&self) -> &[Kind] {
        &[SVG]
    }

    fn signatures(&self) -> &[Signature] {
        &[
            // <svg, <?xml, <!DOCTYPE svg
            Signature { hex: "3C 73 76 67", at: 0 },
            Signature { hex: "3C 3F 78 6D 6C 20", at: 0 },
            Signature { hex: "3C 21 44 4F 43 54 59 50 45 20 73 76 67", at: 0 },
        ]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let mut walk = Walk { at: 0, depth: 0, is_svg: false, text: Text::default() };
        match walk.document(view) {
            Ok(()) => Verdict::Whole { length: walk.end(view), kind: SVG },
            Err(reason) if walk.is_svg => Verdict::Broken {
                kind: SVG,
                sure: 0,
                at: walk.at.min(view.length()),
                reason: reason.to_string(),
            },
            Err(_) => Verdict::Not,
        }
    }

    fn is_weak(&self) -> bool {
        true
    }
}

struct Walk {
    at: u64,
    depth: u32,
    is_svg: bool,
    text: Text,
}

impl Walk {
    /// Reads all tags up to the end of the root.
    fn document(&mut self, view: &mut View<'_>) -> Result<(), &'static str> {
        loop {
            if !self.is_svg && self.at > ROOT_BYTES_MAX {
                return Err("no root");
            }
            match view.byte(self.at) {
                Some(b'<') => {}
                Some(_) => {
                    self.words(view)?;
                    continue;
                }
                None => return Err("truncated"),
            }
            let next = view.array::<4>(self.at).ok_or("truncated")?;
            match &next[1..] {
                b"!--" => self.skip(view, b"-->")?,
                b"![C" => self.skip(view, b"]]>")?,
                [b'?', ..] => self.skip(view, b"?>")?,
                [b'!', ..] if !self.is_svg => self.doctype(view)?,
                [b'/', ..] => {
                    if self.depth == 1 && !view.is_at(self.at, b"</svg") {
                        return Err("another end");
                    }
                    self.skip(view, b">")?;
                    self.depth = self.depth.checked_sub(1).ok_or("an end without a beginning")?;
                }
                [b'a'..=b'z' | b'A'..=b'Z' | b'_', ..] => self.tag(view, &next)?,
                _ => return Err("not a tag"),
            }
            if self.is_svg && self.depth == 0 {
                return Ok(());
            }
        }
    }

    /// Reads text up to the next tag.
    fn words(&mut self, view: &mut View<'_>) -> Result<(), &'static str> {
        let bytes = view.run(self.at, 4096);
        let count = memchr::memchr(b'<', bytes).unwrap_or(bytes.len());
        if bytes.is_empty() {
            return Err("truncated");
        }
        if self.depth == 0 && !bytes[..count].iter().all(u8::is_ascii_whitespace) {
            return Err("words outside of the root");
        }
        self.text.check(&bytes[..count])?;
        self.at += count as u64;
        Ok(())
    }

    /// Skips to the end of a mark.
    fn skip(&mut self, view: &mut View<'_>, end: &[u8]) -> Result<(), &'static str> {
        let range = self.at..self.at + MARK_BYTES_MAX;
        let found = view.find(range, end).ok_or("a mark without an end")?;
        self.check(view, found + end.len() as u64)
    }

    fn check(&mut self, view: &mut View<'_>, to: u64) -> Result<(), &'static str> {
        while self.at < to {
            let bytes = view.run(self.at, (to - self.at).min(1 << 16) as usize);
            if bytes.is_empty() {
                return Err("truncated");
            }
            self.text.check(bytes)?;
            self.at += bytes.len() as u64;
        }
        Ok(())
    }

    /// Skips a document type, which may hold declarations.
    fn doctype(&mut self, view: &mut View<'_>) -> Result<(), &'static str> {
        let close = view.find(self.at..self.at + MARK_BYTES_MAX, b">").ok_or("truncated")?;
        match view.find(self.at..close, b"[") {
            Some(_) => self.skip(view, b"]>").or_else(|_| self.skip(view, b"] >")),
            None => self.check(view, close + 1),
        }
    }

    /// Reads a tag that opens an element, or is an empty element.
    fn tag(&mut self, view: &mut View<'_>, next: &[u8; 4]) -> Result<(), &'static str> {
        if self.depth == 0 {
            let after = view.byte(self.at + 4);
            let is_prefixed = view.is_at(self.at, b"<svg:svg");
            let is_root = next == b"<svg" && after.is_some_and(|b| !b.is_ascii_alphanumeric());
            if !is_root && !is_prefixed {
                return Err("another root");
            }
            self.is_svg = true;
        }
        let mut quote = None;
        let mut last = 0;
        loop {
            let bytes = view.run(self.at, 4096);
            if bytes.is_empty() {
                return Err("truncated");
            }
            let end = bytes.iter().position(|byte| {
                match (quote, *byte) {
                    (None, b'>') => return true,
                    (None, b'"' | b'\'') => quote = Some(*byte),
                    (Some(open), byte) if open == byte => quote = None,
                    _ => {}
                }
                last = *byte;
                false
            });
            let count = end.map_or(bytes.len(), |end| end + 1);
            self.text.check(&bytes[..count])?;
            self.at += count as u64;
            if end.is_some() {
                break;
            }
        }
        if last != b'/' {
            self.depth += 1;
        }
        if self.depth > DEPTH_MAX { Err("too deep") } else { Ok(()) }
    }

    /// Returns the end of the file, including a line break after the root.
    fn end(&self, view: &mut View<'_>) -> u64 {
        match (view.byte(self.at), view.byte(self.at + 1)) {
            (Some(b'\n'), _) => self.at + 1,
            (Some(b'\r'), Some(b'\n')) => self.at + 2,
            _ => self.at,
        }
    }
}

/// Checks incrementally that bytes are UTF-8 text.
#[derive(Default)]
struct Text {
    /// The number of bytes missing from a character.
    open: u32,
}

impl Text {
    fn check(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        for byte in bytes {
            self.open = match (self.open, *byte) {
                (0, 0x20..=0x7F | b'\t' | b'\n' | b'\r' | 0x0C) => 0,
                (0, 0xC2..=0xDF) => 1,
                (0, 0xE0..=0xEF) => 2,
                (0, 0xF0..=0xF4) => 3,
                (open @ 1.., 0x80..=0xBF) => open - 1,
                _ => return Err("not text"),
            };
        }
        Ok(())
    }
}
