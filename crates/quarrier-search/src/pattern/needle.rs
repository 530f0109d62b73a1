//! Needles: what engines search for. A pattern yields one or two (UTF-16).

use super::{Kind, Options, Pattern};
use crate::error::{Error, Result};

/// All needles of a set, end to end in two arrays.
#[derive(Debug, Clone, Default)]
pub(crate) struct Needles {
    values: Vec<u8>,
    masks: Vec<u8>,
    spans: Vec<Span>,
    length_bytes_max: usize,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    start: u32,
    length: u32,
    pattern: u32,
    is_exact: bool,
}

/// A needle: a text byte `t` matches at `i` when `t & mask[i] == value[i]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needle<'n> {
    pub(crate) value: &'n [u8],
    pub(crate) mask: &'n [u8],
    pub(crate) pattern: u32,
    /// All mask bytes are 0xFF.
    pub(crate) is_exact: bool,
}

impl Needle<'_> {
    pub(crate) fn len(&self) -> usize {
        self.value.len()
    }

    /// Whether it matches `text`, which has the needle's length.
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        if self.is_exact {
            return text == self.value;
        }
        text.iter().zip(self.mask).zip(self.value).all(|((t, m), v)| t & m == *v)
    }

    /// Whether it matches zeros.
    pub(crate) fn matches_zeros(&self) -> bool {
        self.value.iter().all(|&v| v == 0)
    }
}

impl Needles {
    /// The needles of all patterns that are not regexes.
    ///
    /// # Errors
    /// When there are more bytes than 32 bits can count.
    pub(crate) fn new(patterns: &[Pattern], options: Options) -> Result<Self> {
        let mut needles = Needles::default();
        for (index, pattern) in patterns.iter().enumerate() {
            let index = u32::try_from(index).map_err(|_| too_many())?;
            match &pattern.kind {
                Kind::Regex(_) => {}
                Kind::Masked { value, mask } => needles.push(index, value, mask)?,
                Kind::Utf16(text) => needles.push_wide(index, text, options.ignore_case)?,
                Kind::Literal(bytes) => {
                    needles.push_text(index, bytes, options.ignore_case)?;
                    if let (true, Ok(text)) = (options.utf16, std::str::from_utf8(bytes)) {
                        needles.push_wide(index, text, options.ignore_case)?;
                    }
                }
            }
        }
        Ok(needles)
    }

    fn push_text(&mut self, pattern: u32, bytes: &[u8], ignore_case: bool) -> Result<()> {
        let fold = |b: u8| if ignore_case && b.is_ascii_alphabetic() { 0xDF } else { 0xFF };
        let mask: Vec<u8> = bytes.iter().map(|&b| fold(b)).collect();
        self.push(pattern, bytes, &mask)
    }

    /// The UTF-16LE form of `text`. Only characters of ASCII have case: the bytes of others
    /// may look like letters.
    fn push_wide(&mut self, pattern: u32, text: &str, ignore_case: bool) -> Result<()> {
        let (mut value, mut mask) = (Vec::new(), Vec::new());
        for unit in text.encode_utf16() {
            let [low, high] = unit.to_le_bytes();
            let folds = ignore_case && high == 0 && low.is_ascii_alphabetic();
            value.extend([low, high]);
            mask.extend([if folds { 0xDF } else { 0xFF }, 0xFF]);
        }
        self.push(pattern, &value, &mask)
    }

    fn push(&mut self, pattern: u32, value: &[u8], mask: &[u8]) -> Result<()> {
        let start = self.values.len();
        if start + value.len() > u32::MAX as usize {
            return Err(too_many());
        }
        self.values.extend(value.iter().zip(mask).map(|(v, m)| v & m));
        self.masks.extend_from_slice(mask);
        self.length_bytes_max = self.length_bytes_max.max(value.len());
        self.spans.push(Span {
            start: start as u32,
            length: value.len() as u32,
            pattern,
            is_exact: mask.iter().all(|&m| m == 0xFF),
        });
        Ok(())
    }

    /// Some of the needles, as a set of their own.
    pub(crate) fn subset(&self, indexes: &[usize]) -> Self {
        let mut some = Needles::default();
        for &index in indexes {
            let needle = self.get(index);
            let start = some.values.len() as u32;
            some.values.extend_from_slice(needle.value);
            some.masks.extend_from_slice(needle.mask);
            some.length_bytes_max = some.length_bytes_max.max(needle.len());
            some.spans.push(Span { start, ..self.spans[index] });
        }
        some
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The longest needle in bytes.
    pub(crate) fn length_bytes_max(&self) -> usize {
        self.length_bytes_max
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Needle<'_> {
        let span = self.spans[index];
        let range = span.start as usize..(span.start + span.length) as usize;
        Needle {
            value: &self.values[range.clone()],
            mask: &self.masks[range],
            pattern: span.pattern,
            is_exact: span.is_exact,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Needle<'_>> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Whether some needle asks for letters without case.
    pub(crate) fn has_folded_letters(&self) -> bool {
        self.masks.contains(&0xDF)
    }
}

fn too_many() -> Error {
    Error::Set("the patterns are too many or too long: 4 GiB together at most".to_string())
}
