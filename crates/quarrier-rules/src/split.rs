//! Splits a file of rules into statements: imports, includes, rules.
//!
//! The parser and the compiler receive one statement at a time, so that a limit on its length
//! bounds the nesting of expressions, and a few rules can be compiled without the others.

use std::ops::Range;

use memchr::{memchr, memmem};

/// Returns the statements of `text`, in order, each with the comments and blanks before it.
///
/// The statements cover the file, except for comments and blanks after the last. If the text is
/// invalid, the boundaries may be between any two characters: the parser rejects such statements.
pub(crate) fn statements(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let (mut start, mut at, mut depth, mut is_blank) = (0, 0, 0usize, true);
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1);
        let mut ends = false;
        if let Some(end) = comment_end(bytes, at) {
            // An unclosed comment is an error, not a blank.
            is_blank &= next != Some(&b'*') || is_closed(&bytes[at..end]);
            at = end;
            continue;
        }
        match byte {
            _ if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            // Names of modules and files have no escapes.
            b'"' if depth == 0 => {
                at = memchr(b'"', &bytes[at + 1..]).map_or(bytes.len(), |end| at + 1 + end + 1);
                ends = true;
            }
            b'"' => at = quoted_end(bytes, at + 1, b'"', false),
            b'/' => at = quoted_end(bytes, at + 1, b'/', true),
            b'{' => {
                depth += 1;
                at += 1;
            }
            b'}' => {
                depth = depth.saturating_sub(1);
                ends = depth == 0;
                at += 1;
            }
            _ => at += 1,
        }
        is_blank = false;
        if ends {
            found.push(start..at);
            (start, is_blank) = (at, true);
        }
    }
    if !is_blank {
        found.push(start..bytes.len());
    }
    found
}

/// Returns the end of the comment that begins at `at`: its line, or all bytes if it is not closed.
/// `None` if no comment begins there.
fn comment_end(bytes: &[u8], at: usize) -> Option<usize> {
    let end = match bytes.get(at..at + 2)? {
        b"//" => memchr(b'\n', &bytes[at..]).map(|end| at + end),
        b"/*" => memmem::find(&bytes[at + 2..], b"*/").map(|end| at + 2 + end + 2),
        _ => return None,
    };
    Some(end.unwrap_or(bytes.len()))
}

/// Returns the tokens of a statement, without blanks and comments: quoted strings, regexes, words, and
/// other characters one at a time. The `$` of a string belongs to its word.
pub(crate) fn tokens(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut next = 0;
    std::iter::from_fn(move || {
        loop {
            let start = next;
            let first = text.get(start..)?.chars().next()?;
            if let Some(end) = comment_end(bytes, start) {
                next = end;
                continue;
            }
            next = match first {
                '"' => quoted_end(bytes, start + 1, b'"', false),
                '/' => quoted_end(bytes, start + 1, b'/', true),
                _ => word_end(text, start).max(start + first.len_utf8()),
            };
            if !first.is_whitespace() {
                return Some(start..next);
            }
        }
    })
}

/// Returns the end of the word that begins at `start`, perhaps with a dollar sign.
fn word_end(text: &str, start: usize) -> usize {
    let word = text[start..].strip_prefix('$').unwrap_or(&text[start..]);
    let rest = word.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    text.len() - rest.len()
}

/// Whether a comment that begins with `/*` has an end.
fn is_closed(comment: &[u8]) -> bool {
    comment.len() >= 4 && comment.ends_with(b"*/")
}

/// Returns the end of a quoted string, whose closing quote no backslash precedes; a regex also ends
/// with its line.
fn quoted_end(bytes: &[u8], mut at: usize, quote: u8, ends_with_line: bool) -> usize {
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'\\' => at = (at + 1).min(bytes.len()),
            b'\n' if ends_with_line => return at,
            _ if byte == quote => return at,
            _ => {}
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<&str> {
        statements(text).into_iter().map(|range| text[range].trim()).collect()
    }

    #[test]
    fn statements_end_where_their_braces_or_names_do() {
        assert_eq!(
            cut("import \"pe\" include \"a\\\"\nrule a { condition: true } // end\n"),
            ["import \"pe\"", "include \"a\\\"", "rule a { condition: true }"],
        );
        let strings = r#"rule a { strings: $a = "}\"}" $b = { 4D /* } */ (5A | [2-3] 00) } $c = /[}\/"]{2}/ condition: 1 \ 2 == 0 }"#;
        assert_eq!(cut(&format!("{strings}{strings}")), [strings, strings]);
        assert_eq!(cut("/* rule { */ // }\nrule b { condition: true }").len(), 1);
    }

    #[test]
    fn tokens_are_words_quotes_and_characters() {
        let text = "/* $x */ $a1 in(@b..\"é)\\\"\") // é\n /[/]\\//i é $";
        let found: Vec<&str> = tokens(text).map(|token| &text[token]).collect();
        let expected =
            ["$a1", "in", "(", "@", "b", ".", ".", "\"é)\\\"\"", ")", "/[/", "]", "\\", "é", "$"];
        assert_eq!(found[..10], expected[..10], "{found:?}");
        for text in ["/é", "\"é", "$é", "/*", "é/\\"] {
            assert!(tokens(text).all(|token| text.get(token).is_some()), "{text}");
        }
    }

    #[test]
    fn text_that_is_no_file_of_rules_is_cut_between_characters() {
        for text in
            ["}}", "rule", "rule a { \"é", "/é\\é", "/* x", "\"é", "{ /\\", "rule \\é\u{3000}}"]
        {
            let cuts = statements(text);
            assert!(cuts.iter().all(|range| text.get(range.clone()).is_some()), "{text}");
            assert!(!cuts.is_empty(), "{text}");
        }
        assert!(statements(" // nothing\n/* at all */").is_empty());
    }
}
