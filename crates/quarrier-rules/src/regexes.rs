//! Rejects regexes that YARA and YARA-X read differently.
//!
//! boreal reads them as YARA does. To YARA, a backslash before a letter without a meaning is that
//! letter, and a class ends at its first closing bracket; YARA-X knows more escapes, and sets within
//! classes. If both accept such a regex, the same rule holds for different files.

use crate::split::tokens;

/// Returns the first such regex part in the text of a rule: its offset, and why it is rejected.
pub(crate) fn ambiguous(text: &str) -> Option<(usize, String)> {
    let mut regexes = tokens(text).filter(|token| text.as_bytes()[token.start] == b'/');
    regexes.find_map(|token| {
        let regex = &text.as_bytes()[token.start + 1..token.end];
        let (at, reason) = in_regex(regex.strip_suffix(b"/").unwrap_or(regex))?;
        Some((token.start + 1 + at, reason))
    })
}

/// Returns the first such part of a regex, without its slashes.
fn in_regex(regex: &[u8]) -> Option<(usize, String)> {
    let mut at = 0;
    while let Some(&byte) = regex.get(at) {
        match byte {
            b'\\' => {
                if let Some(reason) = escape(&regex[at + 1..]) {
                    return Some((at, reason));
                }
                at += 2;
            }
            b'[' => {
                let end = class_end(regex, at);
                if let Some((offset, reason)) = in_class(regex, at + 1, end) {
                    return Some((offset, reason));
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    None
}

/// Returns why an escape is rejected, given the bytes after its backslash.
fn escape(after: &[u8]) -> Option<String> {
    let (is, to_yara_x, write) = match after.first()? {
        b'A' => ("\\A", "the start of the text", "^ or [A]"),
        b'z' => ("\\z", "the end of the text", "$ or [z]"),
        b'v' => ("\\v", "a vertical tab", "\\x0B or [v]"),
        b'b' if after.starts_with(b"b{start") || after.starts_with(b"b{end") => {
            ("\\b{…}", "the start or the end of a word", "\\b or \\b[{]")
        }
        _ => return None,
    };
    let to_yara = is.trim_start_matches('\\');
    let to_yara = if is.len() > 2 { "a \\b and literal braces" } else { to_yara };
    Some(format!("{is} is {to_yara} to YARA, and {to_yara_x} to YARA-X; write {write}"))
}

/// Returns the first part of a class that is rejected; the class is at `at..end`, without its
/// opening bracket.
fn in_class(regex: &[u8], mut at: usize, end: usize) -> Option<(usize, String)> {
    let of_dashes = regex[at..end].iter().all(|byte| b"^-]".contains(byte));
    while at < end {
        match regex[at] {
            b'\\' => {
                if regex.get(at + 1) == Some(&b'v') {
                    return escape(b"v").map(|reason| (at, reason));
                }
                at += 1;
            }
            // If the brackets are not balanced, YARA-X rejects the regex.
            b'[' if is_balanced(&regex[at..]) => {
                let reason = "[ within a class is that character to YARA, and begins a class to YARA-X; \
                              write \\[, or the characters themselves in place of [:alpha:] and the like";
                return Some((at, reason.to_string()));
            }
            byte @ (b'&' | b'~' | b'-') if regex.get(at + 1) == Some(&byte) && !of_dashes => {
                let twice = String::from_utf8_lossy(&[byte, byte]).into_owned();
                let reason = format!(
                    "{twice} within a class is that character to YARA, and an operator on sets to YARA-X; \
                     write it once, with a backslash"
                );
                return Some((at, reason));
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns the end of the class that begins at `at`, as YARA reads it: after the first closing
/// bracket that is not the first character.
fn class_end(regex: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    end += usize::from(regex.get(end) == Some(&b'^'));
    end += usize::from(regex.get(end) == Some(&b']'));
    while let Some(&byte) = regex.get(end) {
        end += match byte {
            b']' => return end + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    regex.len()
}

/// Whether the class within a class that begins here ends, and the outer one after it.
fn is_balanced(regex: &[u8]) -> bool {
    let (mut depth, mut at) = (1, 0);
    while let Some(&byte) = regex.get(at) {
        match byte {
            b'\\' => at += 1,
            b'[' => depth += 1,
            b']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return true;
        }
        at += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regexes_that_yara_x_reads_differently_are_found() {
        for (regex, part) in [
            (r"\Aabc", r"\Aabc"),
            (r"abc\z", r"\z"),
            (r"a\vb", r"\vb"),
            (r"a[x\v]b", r"\v]b"),
            (r"\b{start}abc", r"\b{start}abc"),
            (r"x[[:alpha:]]y", r"[:alpha:]]y"),
            (r"x[^a[b]]y", r"[b]]y"),
            (r"x[]a[b]]y", r"[b]]y"),
            (r"x[a&&b]y", r"&&b]y"),
            (r"x[a~~b]y", r"~~b]y"),
            (r"x[!--a]y", r"--a]y"),
            (r"x[&&]y", r"&&]y"),
        ] {
            let text =
                format!("rule a {{ strings: $a = \"/[[]]\" $b = /{regex}/i condition: $b }}");
            let (at, reason) = ambiguous(&text).unwrap_or_else(|| panic!("{regex}"));
            assert!(text[at..].starts_with(part), "{regex}: {}", &text[at..]);
            assert!(reason.contains("YARA-X; write"), "{reason}");
            let condition = format!("rule a {{ condition: filename matches /{regex}/ }}");
            assert!(ambiguous(&condition).is_some(), "{regex}");
        }
    }

    #[test]
    fn regexes_that_both_read_alike_are_accepted() {
        for regex in [
            r"\\Abc",
            r"a\.b",
            r"\bx\B",
            r"[\[\]]",
            r"[a\]b]",
            r"x[[]y",
            r"[a-z&~-]",
            r"[&]&&",
            r"[^--]",
            r"\[\[a]]",
            r"[]a]",
            r"[^]]",
            r"a--b",
            r"\x41\d\w",
            r"[A-Za-z\-]",
            r"b{2}",
            r"\b{2}",
            r"[\A]",
            r"[--]",
        ] {
            let text = format!("rule a {{ strings: $a = /{regex}/ condition: $a }}");
            assert_eq!(ambiguous(&text), None, "{regex}");
        }
        for text in [
            "rule a { meta: a = \"/\\\\A/\" strings: $a = \"/\\\\A\" $b = { 00 /* /\\A/ */ } condition: $a // /\\z/\n}",
            "rule a { condition: true } /\\",
            "/[",
            "/[^",
            "/[a",
            "/\\",
            "/*",
            "/[\\",
        ] {
            assert_eq!(ambiguous(text), None, "{text}");
        }
    }
}
