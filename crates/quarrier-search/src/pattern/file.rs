//! Pattern files: one pattern per line.

use std::sync::atomic::AtomicBool;

use super::{PATTERNS_MAX, Pattern, too_many};
use crate::error::{Error, Result};
use crate::wanted::Wanted;

/// Reads a pattern file.
///
/// A line is a literal (its exact bytes, UTF-8 or not), or begins with `hex:`, `re:`, `re16:`,
/// `re16be:`, `utf16:`, `utf16be:`, `xor:` or `base64:`; with `word:` before a literal, `re:`,
/// `re16:`, `re16be:`, `utf16:` or `utf16be:`, it matches only whole words. A name may precede it: `jpeg = hex:FF D8 FF`; a name is
/// letters, digits, `_`, `-`, `.` and `/` without blanks, followed by ` = `. Lines that are empty
/// or begin with `#` are skipped, as are a carriage return at the end of a line and a byte order
/// mark at the start of the file. A regex is parsed here, and compiled together with the set.
///
/// # Errors
/// [`Error::Line`] with the number of the first invalid line; [`Error::Set`] if there is no
/// pattern, or more than [`PATTERNS_MAX`].
pub fn parse_file(bytes: &[u8]) -> Result<Vec<Pattern>> {
    parse_lines(bytes, Wanted::default())
}

/// Reads as [`parse_file`] does, until `stop` becomes true: a million regexes take a while.
///
/// # Errors
/// The errors of [`parse_file`], and [`Error::Stopped`] soon after `stop` becomes true.
pub fn parse_file_until(bytes: &[u8], stop: &AtomicBool) -> Result<Vec<Pattern>> {
    parse_lines(bytes, Wanted::until(stop))
}

fn parse_lines(bytes: &[u8], wanted: Wanted<'_>) -> Result<Vec<Pattern>> {
    let mut patterns = Vec::new();
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    for (index, line) in bytes.split(|&b| b == b'\n').enumerate() {
        wanted.check()?;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() || line[0] == b'#' {
            continue;
        }
        let pattern = parse_line(line)
            .map_err(|error| Error::Line { line: index + 1, reason: error.to_string() })?;
        if patterns.len() == PATTERNS_MAX {
            return Err(too_many());
        }
        patterns.push(pattern);
    }
    if patterns.is_empty() {
        return Err(Error::Set("has no pattern; write one per line".to_string()));
    }
    Ok(patterns)
}

fn parse_line(line: &[u8]) -> Result<Pattern> {
    if let Some((name, rest)) = split_name(line) {
        return Ok(parse_pattern(rest)?.named(name));
    }
    parse_pattern(line)
}

fn parse_pattern(line: &[u8]) -> Result<Pattern> {
    let text = String::from_utf8_lossy(line);
    let rest = |prefix: &str| text.strip_prefix(prefix);
    if let Some(hex) = rest("hex:") {
        Pattern::hex(hex.trim())
    } else if let Some(regex) = rest("re:") {
        utf8(line, &text)?;
        verified(Pattern::regex(regex)?)
    } else if let Some(regex) = rest("re16:") {
        utf8(line, &text)?;
        verified(Pattern::regex_utf16(regex)?)
    } else if let Some(regex) = rest("re16be:") {
        utf8(line, &text)?;
        verified(Pattern::regex_utf16be(regex)?)
    } else if let Some(wide) = rest("utf16:") {
        utf8(line, &text)?;
        Pattern::utf16(wide)
    } else if let Some(wide) = rest("utf16be:") {
        utf8(line, &text)?;
        Pattern::utf16be(wide)
    } else if let (Some(text), Some(bytes)) = (rest("xor:"), line.strip_prefix(b"xor:")) {
        Pattern::xor(bytes, text)
    } else if let (Some(text), Some(bytes)) = (rest("base64:"), line.strip_prefix(b"base64:")) {
        Pattern::base64(bytes, text)
    } else if let Some(rest) = line.strip_prefix(b"word:") {
        // `word:` may occur once, so that a line full of it causes no deep recursion.
        match rest.starts_with(b"word:") {
            true => Err(Error::pattern(&text, "says 'word:' twice")),
            false => parse_pattern(rest)?.word(),
        }
    } else {
        Pattern::bytes(line, &text)
    }
}

fn verified(regex: Pattern) -> Result<Pattern> {
    crate::regex::verify(&regex)?;
    Ok(regex)
}

fn utf8(line: &[u8], text: &str) -> Result<()> {
    match std::str::from_utf8(line) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::pattern(text, "is not UTF-8; write other bytes as hex:")),
    }
}

/// Splits `name = rest`.
fn split_name(line: &[u8]) -> Option<(&str, &[u8])> {
    let at = line.windows(3).position(|w| w == b" = ")?;
    let name = std::str::from_utf8(&line[..at]).ok()?.trim_end();
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b"_-./".contains(&b);
    let rest = &line[at + 3..];
    (!name.is_empty() && name.bytes().all(is_name) && !rest.is_empty())
        .then_some((name, rest.trim_ascii_start()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::{Form, Kind, Utf16};

    fn literal(bytes: &[u8], form: Form, is_word: bool) -> Kind {
        Kind::Literal { bytes: bytes.to_vec(), form, is_word }
    }

    #[test]
    fn all_kinds_of_lines_are_read() {
        let file = b"# comment\n\nplain words\njpeg = hex:FF D8\r\nnum = re:[0-9]{3}\nutf16:wide\n\xFF\xFEraw";
        let patterns = parse_file(file).unwrap();
        let labels: Vec<_> = patterns.iter().map(Pattern::label).collect();
        assert_eq!(labels[..4], ["plain words", "jpeg", "num", "wide"]);
        assert_eq!(patterns[1].text, "FF D8");
        assert!(patterns[2].is_regex());
        assert_eq!(patterns[4].kind, literal(b"\xFF\xFEraw", Form::Plain, false));
    }

    #[test]
    fn forms_have_their_prefixes() {
        let file =
            b"utf16be:a\nxor:\xFFb\nbase64:abc\nn = word:c\nword:utf16:d\nword:re:e\nword:re16:f\nre16be:g\n";
        let patterns = parse_file(file).unwrap();
        let kinds: Vec<Kind> = patterns.iter().map(|pattern| pattern.kind.clone()).collect();
        let expected = [
            literal(b"a", Form::Utf16Be, false),
            literal(b"\xFFb", Form::Xor, false),
            literal(b"abc", Form::Base64, false),
            literal(b"c", Form::Plain, true),
            literal(b"d", Form::Utf16Le, true),
        ];
        assert_eq!(kinds[..5], expected);
        assert!(patterns[5].is_regex() && patterns[6].is_regex());
        assert_eq!((patterns[6].wide, &*patterns[6].text), (Some(Utf16::Little), "f"));
        assert_eq!((patterns[7].wide, &*patterns[7].text), (Some(Utf16::Big), "g"));
        assert_eq!(patterns[3].label(), "n");
        assert_eq!(patterns[3].text, "c");
        for line in ["word:hex:41", "word:xor:a", "word:base64:abc", "word:word:a", "base64:ab"] {
            assert!(parse_file(line.as_bytes()).is_err(), "{line}");
        }
    }

    #[test]
    fn an_equals_sign_without_a_name_is_part_of_a_literal() {
        for line in ["a+b = c", " = x", "a=b", "two words = x"] {
            let patterns = parse_file(line.as_bytes()).unwrap();
            assert_eq!(patterns[0].label(), line);
        }
    }

    #[test]
    fn a_wrong_line_is_named_by_number() {
        let error = parse_file(b"good\n# no\nhex:F\n").unwrap_err();
        assert!(error.to_string().starts_with("line 3: "), "{error}");
        assert!(parse_file(b"# nothing\n").is_err());
        for (line, reason) in [("re:(", "unclosed group"), ("n = re:a*", "the empty string")] {
            let text = format!("good\n\n{line}\n");
            let error = parse_file(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("line 3: ") && error.contains(reason), "{error}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_pattern() {
        let first = |file: &[u8]| parse_file(file).unwrap().remove(0);
        assert_eq!(first(b"\xEF\xBB\xBFwords\n").kind, literal(b"words", Form::Plain, false));
        assert_eq!(first(b"\xEF\xBB\xBFhex:FF D8\n").text, "FF D8");
        assert_eq!(first(b"a\n\xEF\xBB\xBFb").text, "a");
        assert!(parse_file(b"\xEF\xBB\xBF# nothing\n").is_err());
    }
}
