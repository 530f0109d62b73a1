//! Needles, which engines search for. A pattern has one for each form, or for each prefix of a
//! form.

use super::expand::prefixes;
use super::forms::{LiteralForm, LiteralSpec, Unit, forms, is_in_word};
use super::program::Program;
use super::{Form, Kind, Options, Pattern};
use crate::error::{Error, Result};
use crate::finding::Finding;

/// Maximum number of needles in a set: all patterns, in both byte orders of UTF-16.
pub(crate) const NEEDLES_MAX: usize = 3_000_000;

/// All needles of a set, end to end in two arrays.
#[derive(Debug, Clone, Default)]
pub(crate) struct Needles {
    values: Vec<u8>,
    masks: Vec<u8>,
    spans: Vec<Span>,
    length_bytes_max: usize,
    /// Number of patterns. A needle with a greater number refers to a check.
    patterns: u32,
    checks: Vec<Check>,
    /// Maximum number of bytes of a match that a check verifies.
    checked_bytes_max: usize,
    /// Whether two needles of a pattern may match at the same place.
    has_twins: bool,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    start: u32,
    length: u32,
    pattern: u32,
    is_exact: bool,
}

/// A condition that must hold at a needle's place for its pattern to match there.
#[derive(Debug, Clone)]
struct Check {
    pattern: u32,
    /// Set if the needle is only a prefix of a match.
    program: Option<Program>,
    /// Set if the match must be a whole word.
    word: Option<Unit>,
    match_bytes_max: usize,
}

/// A needle: a text byte `t` matches at `i` when `t & mask[i] == value[i]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needle<'n> {
    pub(crate) value: &'n [u8],
    pub(crate) mask: &'n [u8],
    /// Number of the pattern, or of the check; checks are numbered after the patterns, see
    /// [`Needles::confirm`].
    pub(crate) pattern: u32,
    /// Whether all mask bytes are 0xFF.
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
    /// Makes the needles of all patterns that are not regexes.
    ///
    /// # Errors
    /// For more than [`NEEDLES_MAX`], or more bytes than 32 bits can count; for a hexadecimal
    /// pattern whose matches are longer than a match of a regex may be, or have too many prefixes.
    pub(crate) fn new(patterns: &[Pattern], options: Options) -> Result<Self> {
        let count = u32::try_from(patterns.len()).map_err(|_| too_many())?;
        let mut needles = Needles { patterns: count, ..Needles::default() };
        for (index, pattern) in (0..count).zip(patterns) {
            match &pattern.kind {
                Kind::Regex(_) => {}
                Kind::Masked { value, mask } => needles.push(index, value, mask)?,
                Kind::Program(program) => needles.push_hex(index, pattern, program, options)?,
                Kind::Literal { bytes, form, is_word } => {
                    let given = LiteralSpec { bytes, form: *form };
                    let is_ascii = !options.ignore_case || bytes.is_ascii();
                    let is_plain = *form == Form::Plain && !is_word && !options.has_more_forms();
                    if is_plain && is_ascii {
                        needles.push_plain(index, bytes, options)?;
                    } else {
                        needles.push_forms(index, given, *is_word, options)?;
                    }
                }
            }
        }
        Ok(needles)
    }

    /// Adds the needles of a literal whose only other form is UTF-16LE.
    fn push_plain(&mut self, pattern: u32, bytes: &[u8], options: Options) -> Result<()> {
        let fold = |b: u8| if options.ignore_case && b.is_ascii_alphabetic() { 0xDF } else { 0xFF };
        let mask: Vec<u8> = bytes.iter().map(|&b| fold(b)).collect();
        self.push(pattern, bytes, &mask)?;
        let text = std::str::from_utf8(bytes).ok().filter(|_| options.utf16);
        let Some(text) = text else { return Ok(()) };
        let (mut value, mut mask) = (Vec::new(), Vec::new());
        for unit in text.encode_utf16() {
            let [low, high] = unit.to_le_bytes();
            value.extend([low, high]);
            // Fold case in ASCII only: the bytes of other characters may look like letters.
            mask.extend([if high == 0 { fold(low) } else { 0xFF }, 0xFF]);
        }
        self.push(pattern, &value, &mask)
    }

    fn push_forms(
        &mut self,
        pattern: u32,
        given: LiteralSpec<'_>,
        is_word: bool,
        options: Options,
    ) -> Result<()> {
        let first = self.spans.len();
        for LiteralForm { program, unit } in forms(given, options) {
            if is_word && unit.is_none() {
                continue;
            }
            let word = unit.filter(|_| is_word);
            if !self.push_program(pattern, &program, word, usize::MAX)? {
                let text = String::from_utf8_lossy(given.bytes);
                return Err(Error::pattern(&text, "may match anything if case is ignored"));
            }
        }
        self.has_twins |= self.spans.len() - first > 1;
        Ok(())
    }

    fn push_hex(
        &mut self,
        index: u32,
        pattern: &Pattern,
        program: &Program,
        options: Options,
    ) -> Result<()> {
        let most = options.regex_length_bytes_max;
        let wrong = |reason: String| Error::pattern(&pattern.text, reason);
        let shortest = program.length_bytes_min();
        if shortest > most {
            return Err(wrong(format!(
                "matches at least {shortest} bytes; raise --regex-max-length, which is {most}"
            )));
        }
        let longest = program.length_bytes_max(usize::MAX);
        if longest > most && longest < usize::MAX {
            return Err(wrong(format!(
                "may match {longest} bytes; raise --regex-max-length, which is {most}"
            )));
        }
        if !self.push_program(index, program, None, most)? {
            return Err(wrong(
                "begins with too many possibilities; begin it with bytes, or shorten its first jump"
                    .to_string(),
            ));
        }
        Ok(())
    }

    /// Adds the needles of a program, with a check if they do not express it exactly. Returns false
    /// if the program has none.
    fn push_program(
        &mut self,
        pattern: u32,
        program: &Program,
        word: Option<Unit>,
        most: usize,
    ) -> Result<bool> {
        let Some(begins) = prefixes(program) else { return Ok(false) };
        let mut number = pattern;
        if !begins.are_matches || word.is_some() {
            let check = u32::try_from(self.checks.len()).map_err(|_| too_many())?;
            number = self.patterns.checked_add(check).ok_or_else(too_many)?;
            let match_bytes_max = program.length_bytes_max(most);
            let of_word = if word.is_some() { 2 } else { 0 };
            self.checked_bytes_max = self.checked_bytes_max.max(match_bytes_max + of_word);
            let program = (!begins.are_matches).then(|| program.clone());
            self.checks.push(Check { pattern, program, word, match_bytes_max });
        }
        self.has_twins |= begins.all.len() > 1;
        for begin in &begins.all {
            self.push(number, &begin.value, &begin.mask)?;
        }
        Ok(true)
    }

    /// Adds a needle of `pattern`.
    ///
    /// # Errors
    /// For more bytes than 32 bits can count.
    pub(crate) fn push(&mut self, pattern: u32, value: &[u8], mask: &[u8]) -> Result<()> {
        let start = self.values.len();
        if start + value.len() > u32::MAX as usize || self.spans.len() == NEEDLES_MAX {
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

    /// Returns the finding for a needle at `finding`, in `text` that begins at `offset`: the needle
    /// itself, the pattern's match there, or nothing.
    pub(crate) fn confirm(&self, finding: Finding, text: &[u8], offset: u64) -> Option<Finding> {
        let Some(number) = finding.pattern.checked_sub(self.patterns) else { return Some(finding) };
        let check = self.checks.get(number as usize)?;
        let start = usize::try_from(finding.offset.checked_sub(offset)?).ok()?;
        let length = match &check.program {
            Some(program) => program.shortest(text.get(start..)?, check.match_bytes_max)?,
            None => finding.length as usize,
        };
        if check.word.is_some_and(|unit| is_in_word(text, start, start + length, unit)) {
            return None;
        }
        Some(Finding { pattern: check.pattern, length: u32::try_from(length).ok()?, ..finding })
    }

    /// Whether some needles refer to checks, so that their findings have to be confirmed.
    pub(crate) fn has_checks(&self) -> bool {
        !self.checks.is_empty()
    }

    /// Whether the same finding may occur twice.
    pub(crate) fn has_twins(&self) -> bool {
        self.has_twins
    }

    /// Returns the number of bytes before a finding that affect it.
    pub(crate) fn before_bytes(&self) -> usize {
        if self.checks.iter().any(|check| check.word.is_some()) { 2 } else { 0 }
    }

    /// Returns the number of bytes after a finding's first that affect it.
    pub(crate) fn after_bytes(&self) -> usize {
        self.length_bytes_max.max(self.checked_bytes_max).saturating_sub(1)
    }

    /// Returns some of the needles as a separate set; the whole set confirms its findings.
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

    /// Whether some needle matches letters in either case.
    pub(crate) fn has_folded_letters(&self) -> bool {
        self.masks.contains(&0xDF)
    }
}

fn too_many() -> Error {
    Error::Set(format!(
        "the patterns are too many or too long: {NEEDLES_MAX} forms and 4 GiB together at most; search \
         for them in several runs"
    ))
}
