//! Forms of a literal: its bytes in each encoding, in either case, under xor, and in base64.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::encodings::CodePage;
use super::program::{Program, Step};
use super::{Form, Options};

/// The size of a character, to find a word's neighbours: two bytes in UTF-16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Byte,
    Utf16Le,
    Utf16Be,
}

/// A form of a literal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LiteralForm {
    pub(crate) program: Program,
    /// `None` if the characters around it cannot be determined.
    pub(crate) unit: Option<Unit>,
}

/// The properties of a literal that determine its forms.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LiteralSpec<'g> {
    pub(crate) bytes: &'g [u8],
    pub(crate) form: Form,
}

/// Returns all forms of a literal without duplicates, beginning with its own bytes.
pub(crate) fn forms(given: LiteralSpec<'_>, options: Options) -> Vec<LiteralForm> {
    let (bytes, fold) = (given.bytes, options.ignore_case);
    let text = std::str::from_utf8(bytes).ok();
    let mut all: Vec<LiteralForm> = Vec::new();
    let mut add = |steps: Option<Vec<Step>>, unit| {
        if let Some(steps) = steps {
            let formed = LiteralForm { program: Program { steps }, unit };
            if !all.contains(&formed) {
                all.push(formed);
            }
        }
    };
    let is_plain = given.form == Form::Plain;
    if is_plain {
        add(Some(text.map_or_else(|| raw(bytes, fold), |text| utf8(text, fold))), Some(Unit::Byte));
    }
    let wants_le = is_plain && (options.utf16 || options.encodings.has_utf16_le());
    if wants_le || given.form == Form::Utf16Le {
        add(text.map(|text| wide(text, fold, u16::to_le_bytes)), Some(Unit::Utf16Le));
    }
    let wants_be = is_plain && (options.utf16be || options.encodings.has_utf16_be());
    if wants_be || given.form == Form::Utf16Be {
        add(text.map(|text| wide(text, fold, u16::to_be_bytes)), Some(Unit::Utf16Be));
    }
    if is_plain && let Some(text) = text {
        for page in options.encodings.code_pages() {
            add(paged(text, fold, page), Some(Unit::Byte));
        }
    }
    if (is_plain && options.xor) || given.form == Form::Xor {
        // The key 0 leaves the bytes unchanged.
        (u8::from(is_plain)..=u8::MAX).for_each(|key| add(Some(xored(bytes, fold, key)), None));
    }
    if (is_plain && options.base64 && bytes.len() >= BASE64_BYTES_MIN) || given.form == Form::Base64
    {
        (0..3).for_each(|lead| add(Some(base64(bytes, fold, lead)), None));
    }
    all
}

/// Minimum length in bytes of a literal for base64: shorter ones would match everywhere.
pub(crate) const BASE64_BYTES_MIN: usize = 3;

fn ascii(byte: u8, fold: bool) -> Step {
    Step::masked(byte, if fold && byte.is_ascii_alphabetic() { 0xDF } else { 0xFF })
}

/// Returns the steps of arbitrary bytes: only ASCII letters have case.
fn raw(bytes: &[u8], fold: bool) -> Vec<Step> {
    bytes.iter().map(|&byte| ascii(byte, fold)).collect()
}

/// Returns the characters that match a character if case is ignored, by Unicode's simple case
/// folding. ASCII letters match each other only.
fn variants(character: char, fold: bool) -> Vec<char> {
    if !fold || character.is_ascii() {
        return vec![character];
    }
    let mut class = ClassUnicode::new([ClassUnicodeRange::new(character, character)]);
    if class.try_case_fold_simple().is_err() {
        return vec![character];
    }
    class.ranges().iter().flat_map(|range| range.start()..=range.end()).collect()
}

/// Appends the step or steps for one of several strings.
fn push_strings(steps: &mut Vec<Step>, mut strings: Vec<Vec<u8>>) {
    strings.sort_unstable();
    strings.dedup();
    match &strings[..] {
        [one] => steps.extend(one.iter().map(|&byte| Step::byte(byte))),
        _ => steps.push(Step::Strings(strings)),
    }
}

fn utf8(text: &str, fold: bool) -> Vec<Step> {
    let mut steps = Vec::with_capacity(text.len());
    for character in text.chars() {
        match u8::try_from(character) {
            Ok(byte) if byte.is_ascii() => steps.push(ascii(byte, fold)),
            _ => {
                let strings = variants(character, fold).into_iter();
                push_strings(&mut steps, strings.map(|c| c.to_string().into_bytes()).collect());
            }
        }
    }
    steps
}

fn wide(text: &str, fold: bool, bytes_of: fn(u16) -> [u8; 2]) -> Vec<Step> {
    let mut steps = Vec::with_capacity(text.len() * 2);
    for character in text.chars() {
        let encode = |character: char| -> Vec<u8> {
            character.encode_utf16(&mut [0; 2]).iter().flat_map(|&unit| bytes_of(unit)).collect()
        };
        match u8::try_from(character) {
            Ok(byte) if byte.is_ascii() => {
                steps.extend(bytes_of(u16::from(byte)).map(|half| match half {
                    0 => Step::byte(0),
                    byte => ascii(byte, fold),
                }))
            }
            _ => {
                let strings = variants(character, fold).into_iter().map(encode).collect();
                push_strings(&mut steps, strings);
            }
        }
    }
    steps
}

/// Encodes the text in a code page; `None` if it lacks a character.
fn paged(text: &str, fold: bool, page: CodePage) -> Option<Vec<Step>> {
    let mut steps = Vec::with_capacity(text.len());
    for character in text.chars() {
        match u8::try_from(character) {
            Ok(byte) if byte.is_ascii() => steps.push(ascii(byte, fold)),
            _ => {
                page.encode(character)?;
                let strings = variants(character, fold).into_iter();
                push_strings(&mut steps, strings.filter_map(|c| page.encode(c)).collect());
            }
        }
    }
    Some(steps)
}

/// Returns each byte xored with a key.
fn xored(bytes: &[u8], fold: bool, key: u8) -> Vec<Step> {
    let mask = |byte: u8| if fold && byte.is_ascii_alphabetic() { 0xDF } else { 0xFF };
    bytes.iter().map(|&byte| Step::masked(byte ^ key, mask(byte))).collect()
}

/// Returns the base64 encoding of the bytes if they start `lead` bytes into a group of three, in
/// the standard or the URL-safe alphabet. The first and last characters also hold bits of
/// neighbouring bytes, so several characters match there.
fn base64(bytes: &[u8], fold: bool, lead: usize) -> Vec<Step> {
    let mask = |byte: u8| if fold && byte.is_ascii_alphabetic() { 0xDFu8 } else { 0xFF };
    // Value and mask of a bit, counted from the start of the group; bits outside the bytes are
    // unknown.
    let bit = |at: usize| -> (u8, u8) {
        let byte = (at / 8).checked_sub(lead).and_then(|place| bytes.get(place));
        byte.map_or((0, 0), |&byte| {
            let shift = 7 - at % 8;
            (byte >> shift & 1, mask(byte) >> shift & 1)
        })
    };
    let (first, last) = (8 * lead / 6, (8 * (lead + bytes.len()) - 1) / 6);
    let step = |character: usize| {
        let six = (6 * character..6 * character + 6).map(bit);
        let (value, mask) =
            six.fold((0, 0), |(v, m), (value, mask)| (v << 1 | value, m << 1 | mask));
        let is_meant = |index: u8| index & mask == value & mask;
        let mut set: Vec<u8> =
            (0..64).filter(|&index| is_meant(index)).flat_map(letters_of_base64).collect();
        set.sort_unstable();
        set.dedup();
        match set[..] {
            [one] => Step::byte(one),
            _ => Step::Set(set),
        }
    };
    (first..=last).map(step).collect()
}

/// Returns the characters for six bits, in both alphabets.
fn letters_of_base64(index: u8) -> [u8; 2] {
    match index {
        0..26 => [b'A' + index; 2],
        26..52 => [b'a' + index - 26; 2],
        52..62 => [b'0' + index - 52; 2],
        62 => [b'+', b'-'],
        _ => [b'/', b'_'],
    }
}

/// Whether a word character is just before `start` in `text`, or at `end`.
pub(crate) fn is_in_word(text: &[u8], start: usize, end: usize, unit: Unit) -> bool {
    let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_wide = |low: usize, high: usize| {
        text.get(high) == Some(&0) && text.get(low).is_some_and(|&byte| is_of_word(byte))
    };
    match unit {
        Unit::Byte => {
            let before = start.checked_sub(1).and_then(|at| text.get(at));
            before.is_some_and(|&byte| is_of_word(byte))
                || text.get(end).is_some_and(|&byte| is_of_word(byte))
        }
        Unit::Utf16Le => {
            start.checked_sub(2).is_some_and(|at| is_wide(at, at + 1)) || is_wide(end, end + 1)
        }
        Unit::Utf16Be => {
            start.checked_sub(2).is_some_and(|at| is_wide(at + 1, at)) || is_wide(end + 1, end)
        }
    }
}
