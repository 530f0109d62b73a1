//! LIKE. A pattern is split at each `%` into pieces. The first and the last are anchored to the
//! ends of the string; each of the others takes its first occurrence, which never prevents a later
//! match.

use memchr::memmem::Finder;

use crate::Fault;

/// Maximum number of strings of a pattern to prepare for searching. Longer patterns leave the rest
/// unprepared, so that a statement with many patterns takes little memory.
const FINDERS_MAX: usize = 16;

/// Minimum length, in bytes, of a string that is rare enough to search for in many strings at once.
const RARE_BYTES: usize = 3;

/// A compiled pattern of LIKE.
#[derive(Debug)]
pub struct Like {
    /// The pieces between the `%`; one more than there are `%`.
    pieces: Vec<Piece>,
}

/// Literals with gaps; each gap matches one character.
#[derive(Debug, Default)]
struct Piece {
    parts: Vec<Part>,
    /// Number of `_` at the end.
    gap: usize,
}

/// A literal after this many `_`.
#[derive(Debug)]
struct Part {
    gap: usize,
    text: String,
    finder: Option<Box<Finder<'static>>>,
}

/// The simple form of a LIKE, if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape<'a> {
    /// Equal to the string.
    Exact(&'a str),
    /// Begins with the string.
    Prefix(&'a str),
    /// Ends with the string.
    Suffix(&'a str),
    /// Contains the string.
    Contains(&'a str),
    /// Matches everything.
    Everything,
    /// Any other pattern.
    Other,
}

impl Like {
    /// # Errors
    /// [`Fault::Pattern`] if the escape character precedes anything but `%`, `_` and itself.
    pub(super) fn new(pattern: &str, escape: Option<char>) -> Result<Self, Fault> {
        let mut pieces = vec![Piece::default()];
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            let piece = match pieces.last_mut() {
                Some(piece) => piece,
                None => break,
            };
            if Some(character) == escape {
                match characters.next() {
                    Some(next) if matches!(next, '%' | '_') || Some(next) == escape => {
                        piece.push(next);
                    }
                    _ => return Err(wrong_escape(pattern, character)),
                }
            } else if character == '%' {
                pieces.push(Piece::default());
            } else if character == '_' {
                piece.gap += 1;
            } else {
                piece.push(character);
            }
        }
        // Empty pieces between two `%` match everywhere.
        let last = pieces.len() - 1;
        let mut place = 0;
        pieces.retain(|piece| {
            place += 1;
            !piece.is_empty() || place == 1 || place == last + 1
        });
        let parts = pieces.iter_mut().flat_map(|piece| &mut piece.parts);
        for part in parts.take(FINDERS_MAX) {
            part.finder = Some(Box::new(Finder::new(&part.text).into_owned()));
        }
        Ok(Like { pieces })
    }

    /// Returns a string that every match contains, if it is rare and no simpler test decides.
    pub(super) fn rare(&self) -> Option<&Finder<'static>> {
        let [first, between @ .., _] = self.pieces.as_slice() else { return None };
        let parts = between.iter().filter(|_| first.is_empty()).flat_map(|piece| &piece.parts);
        let finders = parts.filter_map(|part| part.finder.as_deref());
        finders
            .filter(|finder| finder.needle().len() >= RARE_BYTES)
            .max_by_key(|finder| finder.needle().len())
    }

    /// Takes time proportional to the length of the text, times that of the longest piece if it
    /// contains `_`.
    pub(super) fn is_match(&self, text: &str) -> bool {
        match self.pieces.as_slice() {
            [] => false,
            [only] => only.fits(text) == Some(text.len()),
            [first, between @ .., last] => {
                let Some(mut at) = first.fits(text) else { return false };
                for piece in between {
                    match piece.find(&text[at..]) {
                        Some(end) => at += end,
                        None => return false,
                    }
                }
                last.fits_end(&text[at..])
            }
        }
    }

    pub(super) fn shape(&self) -> Shape<'_> {
        match self.pieces.as_slice() {
            [only] => only.text().map_or(Shape::Other, Shape::Exact),
            [first, last] => match (first.text(), last.text()) {
                (Some(""), Some("")) => Shape::Everything,
                (Some(text), Some("")) => Shape::Prefix(text),
                (Some(""), Some(text)) => Shape::Suffix(text),
                _ => Shape::Other,
            },
            [first, between, last] if first.is_empty() && last.is_empty() => {
                between.text().map_or(Shape::Other, Shape::Contains)
            }
            _ => Shape::Other,
        }
    }
}

impl Piece {
    fn push(&mut self, character: char) {
        match self.parts.last_mut() {
            Some(part) if self.gap == 0 => part.text.push(character),
            _ => self.parts.push(Part {
                gap: std::mem::take(&mut self.gap),
                text: character.to_string(),
                finder: None,
            }),
        }
    }

    fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.gap == 0
    }

    /// Returns the literal, if there are no gaps.
    fn text(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] if self.gap == 0 => Some(""),
            [part] if self.gap == 0 && part.gap == 0 => Some(&part.text),
            _ => None,
        }
    }

    /// Returns the end of the piece if it matches at the start of `text`.
    fn fits(&self, text: &str) -> Option<usize> {
        let mut rest = text;
        for part in &self.parts {
            rest = after_characters(rest, part.gap)?.strip_prefix(part.text.as_str())?;
        }
        Some(text.len() - after_characters(rest, self.gap)?.len())
    }

    /// Returns the end of the piece's first match in `text`.
    fn find(&self, text: &str) -> Option<usize> {
        let Some(part) = self.parts.first() else { return self.fits(text) };
        if let Some(whole) = self.text() {
            return part.find(text).map(|start| start + whole.len());
        }
        // Search for the first literal of the piece, and step back over the gap before it.
        let mut from = text.len() - after_characters(text, part.gap)?.len();
        loop {
            let found = from + part.find(&text[from..])?;
            let start = match part.gap.checked_sub(1) {
                Some(before) => text[..found].char_indices().rev().nth(before)?.0,
                None => found,
            };
            if let Some(end) = self.fits(&text[start..]) {
                return Some(start + end);
            }
            from = found + text[found..].chars().next()?.len_utf8();
        }
    }

    /// Whether the piece matches at the end of `text`.
    fn fits_end(&self, text: &str) -> bool {
        let characters: usize = self.gap
            + self.parts.iter().map(|part| part.gap + part.text.chars().count()).sum::<usize>();
        if characters == 0 {
            return true;
        }
        if let Some(whole) = self.text() {
            return text.ends_with(whole);
        }
        let start = text.char_indices().rev().nth(characters - 1);
        start.is_some_and(|(start, _)| {
            let tail = &text[start..];
            self.fits(tail) == Some(tail.len())
        })
    }
}

impl Part {
    /// Returns the first position of the literal.
    fn find(&self, text: &str) -> Option<usize> {
        match &self.finder {
            Some(finder) => finder.find(text.as_bytes()),
            None => text.find(self.text.as_str()),
        }
    }
}

/// Returns the rest of `text` after this many characters.
fn after_characters(text: &str, characters: usize) -> Option<&str> {
    if characters == 0 {
        return Some(text);
    }
    let mut left = text.chars();
    left.nth(characters - 1)?;
    Some(left.as_str())
}

fn wrong_escape(pattern: &str, escape: char) -> Fault {
    Fault::Pattern {
        reason: format!(
            "LIKE pattern '{}': the escape character '{escape}' precedes something other than \
             %, _ or itself; write it twice for a literal one",
            super::shortened(pattern)
        ),
    }
}
