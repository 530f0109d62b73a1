//! The exact parser: reads every message token by token.

use super::number::{Number, number};
use super::string;
use crate::build::{FieldId, Row};
use crate::format::paths::{PathId, Paths};
use crate::format::set_cell;
use crate::{Fault, Limits};

/// The position of a scalar in a message, and its field.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scalar {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) field: Option<FieldId>,
    /// Whether it is in the last element of a list.
    pub(super) is_in_last: bool,
}

/// The exact parser. It has its own stack, of at most `depth_max` containers.
#[derive(Debug)]
pub(super) struct Walker {
    paths: Paths,
    depth_max: usize,
    open: Vec<Open>,
    scalars: Vec<Scalar>,
    /// The number of scalars of the message that are not NULL.
    values: usize,
    /// The lists of the message whose last element has no value, and their lengths.
    list_ends: Vec<(PathId, usize)>,
    /// The contents of a string after replacing its escapes.
    plain: Vec<u8>,
}

/// Maximum number of scalars of a message to record; the template parser does not learn longer
/// messages.
pub(super) const SCALARS_MAX: usize = 1_024;

/// A container that has not ended.
#[derive(Debug, Clone, Copy)]
enum Open {
    Object(PathId),
    Array(PathId, Element),
}

/// The current element of a list.
#[derive(Debug, Clone, Copy)]
struct Element {
    index: usize,
    /// The numbers of values and of recorded scalars of the message before it.
    values_before: usize,
    scalars_before: usize,
}

impl Walker {
    pub(super) fn new(limits: &Limits) -> Self {
        Walker {
            paths: Paths::new(limits.columns_max),
            depth_max: limits.depth_max,
            open: Vec::new(),
            scalars: Vec::new(),
            values: 0,
            list_ends: Vec::new(),
            plain: Vec::new(),
        }
    }

    /// Returns the scalars of the last message, in order.
    pub(super) fn scalars(&self) -> &[Scalar] {
        &self.scalars
    }

    /// Whether a list of the last message ends with an element that has no value.
    pub(super) fn has_list_ends(&self) -> bool {
        !self.list_ends.is_empty()
    }

    /// Forgets all paths and fields.
    pub(super) fn forget(&mut self) {
        self.paths.forget();
    }

    pub(super) fn walk(&mut self, bytes: &[u8], row: &mut impl Row) -> Result<(), Fault> {
        let text = std::str::from_utf8(bytes)
            .map_err(|error| Fault::new(error.valid_up_to(), "bytes that are not UTF-8"))?;
        self.open.clear();
        self.scalars.clear();
        self.list_ends.clear();
        self.values = 0;
        let mut at = 0;
        let mut path = Some(PathId::ROOT);
        while let Some(of) = path {
            at = blank(bytes, at);
            path = match bytes.get(at) {
                Some(b'{') => self.enter(text, &mut at, Open::Object(of))?,
                Some(b'[') => self.enter(text, &mut at, Open::Array(of, self.element(0)))?,
                _ => {
                    self.scalar(text, &mut at, of, row)?;
                    self.next(text, &mut at)?
                }
            };
        }
        at = blank(bytes, at);
        if at < bytes.len() {
            return Err(Fault::new(at, "more data after the value"));
        }
        if self.has_list_ends() && row.takes_list_ends() {
            for &(list, length) in &self.list_ends {
                if let Some(list) = self.paths.name(list) {
                    row.list_end(list, length);
                }
            }
        }
        Ok(())
    }

    /// Returns an element that begins here.
    fn element(&self, index: usize) -> Element {
        Element { index, values_before: self.values, scalars_before: self.scalars.len() }
    }

    /// Enters the container whose opening bracket is at `at`; returns the path of its first value,
    /// or of the value after it if it is empty.
    fn enter(
        &mut self,
        text: &str,
        at: &mut usize,
        container: Open,
    ) -> Result<Option<PathId>, Fault> {
        if self.open.len() >= self.depth_max {
            return Err(Fault::new(*at, "nested deeper than allowed"));
        }
        *at = blank(text.as_bytes(), *at + 1);
        match (container, text.as_bytes().get(*at)) {
            (Open::Object(_), Some(b'}')) | (Open::Array(..), Some(b']')) => {
                *at += 1;
                return self.next(text, at);
            }
            _ => {}
        }
        self.open.push(container);
        match container {
            Open::Object(of) => self.key(text, at, of).map(Some),
            Open::Array(of, _) => Ok(Some(self.paths.element(of, 0))),
        }
    }

    /// Returns the path of the next value after one that has ended, if there is one.
    fn next(&mut self, text: &str, at: &mut usize) -> Result<Option<PathId>, Fault> {
        while let Some(container) = self.open.last_mut() {
            *at = blank(text.as_bytes(), *at);
            let byte = text.as_bytes().get(*at);
            match (container, byte) {
                (Open::Object(of), Some(b',')) => {
                    let of = *of;
                    *at = blank(text.as_bytes(), *at + 1);
                    return self.key(text, at, of).map(Some);
                }
                (Open::Array(of, element), Some(b',')) => {
                    let (of, index) = (*of, element.index + 1);
                    *element = Element {
                        index,
                        values_before: self.values,
                        scalars_before: self.scalars.len(),
                    };
                    *at += 1;
                    return Ok(Some(self.paths.element(of, index)));
                }
                (Open::Object(_), Some(b'}')) => {
                    self.open.pop();
                    *at += 1;
                }
                (Open::Array(of, last), Some(b']')) => {
                    if last.values_before == self.values {
                        self.list_ends.push((*of, last.index + 1));
                    }
                    let scalars = &mut self.scalars[last.scalars_before..];
                    scalars.iter_mut().for_each(|scalar| scalar.is_in_last = true);
                    self.open.pop();
                    *at += 1;
                }
                (Open::Object(_), _) => return Err(Fault::new(*at, "no ',' or '}' in an object")),
                (Open::Array(..), _) => return Err(Fault::new(*at, "no ',' or ']' in an array")),
            }
        }
        Ok(None)
    }

    /// Returns the path of the member whose key is at `at`, and moves `at` past its colon.
    fn key(&mut self, text: &str, at: &mut usize, of: PathId) -> Result<PathId, Fault> {
        if text.as_bytes().get(*at) != Some(&b'"') {
            return Err(Fault::new(*at, "no key in an object"));
        }
        let (end, key) = self.string(text, *at + 1)?;
        let path = match key {
            Some(key) => self.paths.member(of, key),
            None => self.paths.member(of, std::str::from_utf8(&self.plain).unwrap_or_default()),
        };
        *at = blank(text.as_bytes(), end + 1);
        if text.as_bytes().get(*at) != Some(&b':') {
            return Err(Fault::new(*at, "no ':' after a key"));
        }
        *at += 1;
        Ok(path)
    }

    /// Returns the end of a string and its contents; `None` if `plain` has the contents, because of
    /// escapes.
    fn string<'t>(&mut self, text: &'t str, at: usize) -> Result<(usize, Option<&'t str>), Fault> {
        let (end, has_escapes) = string::end(text.as_bytes(), at, &mut self.plain)?;
        Ok((end, (!has_escapes).then(|| &text[at..end])))
    }

    fn scalar(
        &mut self,
        text: &str,
        at: &mut usize,
        path: PathId,
        row: &mut impl Row,
    ) -> Result<(), Fault> {
        let bytes = text.as_bytes();
        let start = *at;
        let field = self.paths.field(path, row);
        self.values += usize::from(bytes.get(start) != Some(&b'n'));
        *at = match bytes.get(start) {
            Some(b'"') => {
                let (end, value) = self.string(text, start + 1)?;
                if let Some(field) = field {
                    let plain = || std::str::from_utf8(&self.plain).unwrap_or_default();
                    row.text(field, value.unwrap_or_else(plain));
                }
                end + 1
            }
            Some(b'-' | b'0'..=b'9') => {
                let (value, end) = number(bytes, start)?;
                if let Some(field) = field {
                    set_number(row, field, value);
                }
                end
            }
            _ => {
                let (value, end) = word(bytes, start)?;
                if let Some(field) = field {
                    set_word(row, field, value);
                }
                end
            }
        };
        if self.scalars.len() <= SCALARS_MAX {
            self.scalars.push(Scalar { start, end: *at, field, is_in_last: false });
        }
        Ok(())
    }
}

/// Parses TRUE, FALSE or NULL at `at`; returns it and its end.
#[inline]
pub(super) fn word(bytes: &[u8], at: usize) -> Result<(Option<bool>, usize), Fault> {
    for (word, value) in [(&b"null"[..], None), (b"true", Some(true)), (b"false", Some(false))] {
        if bytes[at..].starts_with(word) {
            return Ok((value, at + word.len()));
        }
    }
    Err(Fault::new(at, "no value"))
}

#[inline(always)]
pub(super) fn set_word(row: &mut impl Row, field: FieldId, value: Option<bool>) {
    match value {
        None => row.null(field),
        Some(value) => row.boolean(field, value),
    }
}

#[inline(always)]
pub(super) fn set_number(row: &mut impl Row, field: FieldId, number: Number) {
    match number {
        Number::Integer(value) => row.integer(field, value),
        Number::Decimal { mantissa, scale } => row.decimal(field, mantissa, scale),
        Number::Float(value) => row.float(field, value),
        Number::Long(cell) => set_cell(row, field, cell),
    }
}

fn blank(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
        at += 1;
    }
    at
}
