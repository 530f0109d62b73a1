//! Splits Rust source into tokens, without comments, literals and test-only items.

/// A word or a punctuation character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'t> {
    pub(crate) text: &'t str,
    /// Counted from 1.
    pub(crate) line: usize,
}

/// Returns all tokens of a file, in order; `::` is one token.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < text.len() {
        let rest = &text[at..];
        let (bytes, is_token) = next(rest);
        if is_token {
            tokens.push(Token { text: &rest[..bytes], line });
        }
        line += rest[..bytes].matches('\n').count();
        at += bytes;
    }
    without_tests(&tokens)
}

/// Returns the length of the next piece, and whether it is a token.
fn next(rest: &str) -> (usize, bool) {
    let first = rest.chars().next().unwrap_or(' ');
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), false);
    }
    if rest.starts_with("/*") {
        return (block_comment(rest), false);
    }
    if let Some(bytes) = literal(rest) {
        return (bytes, false);
    }
    if is_of_word(first) {
        return (rest.find(|c| !is_of_word(c)).unwrap_or(rest.len()), true);
    }
    if rest.starts_with("::") {
        return (2, true);
    }
    (first.len_utf8(), !first.is_whitespace())
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the length of a block comment. Block comments nest.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        let (step, change) = match here {
            [b'/', b'*', ..] => (2, 1),
            [b'*', b'/', ..] => (2, -1),
            _ => (1, 0),
        };
        (at, depth) = (at + step, depth + change);
        if depth == 0 {
            break;
        }
    }
    at
}

/// Returns the length of a string or character literal with its quotes, if one begins here.
fn literal(rest: &str) -> Option<usize> {
    let start = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        let after = rest.strip_prefix(prefix);
        after
            .is_some_and(|after| after.starts_with('"') || (prefix.ends_with('r') && is_raw(after)))
    });
    let Some(prefix) = start else { return character(rest) };
    if prefix.ends_with('r') {
        let marks = rest[prefix.len()..].find('"')?;
        let end = format!("\"{}", "#".repeat(marks));
        let body = prefix.len() + marks + 1;
        return Some(rest[body..].find(&end).map_or(rest.len(), |at| body + at + end.len()));
    }
    Some(quoted(rest, prefix.len(), b'"'))
}

/// Whether `#`s and a quote follow.
fn is_raw(after: &str) -> bool {
    after.starts_with('#') && after.trim_start_matches('#').starts_with('"')
}

/// Returns the end of a quoted literal whose opening quote is at `from`.
fn quoted(rest: &str, from: usize, quote: u8) -> usize {
    let bytes = rest.as_bytes();
    let mut at = from + 1;
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

/// Returns the length of `'x'`; a lifetime has no closing quote.
fn character(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix("b'").or_else(|| rest.strip_prefix('\''))?;
    let from = rest.len() - after.len() - 1;
    let mut characters = after.chars();
    match characters.next()? {
        '\\' => Some(quoted(rest, from, b'\'')),
        one => (characters.next()? == '\'').then(|| from + 1 + one.len_utf8() + 1),
    }
}

/// Removes every item after `#[cfg(test)]`.
fn without_tests<'t>(tokens: &[Token<'t>]) -> Vec<Token<'t>> {
    let mut left = Vec::with_capacity(tokens.len());
    let mut rest = tokens;
    while let [first, after @ ..] = rest {
        if is_for_tests(rest) {
            rest = after_item(&rest[TEST.len()..]);
        } else {
            left.push(*first);
            rest = after;
        }
    }
    left
}

const TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];

fn is_for_tests(tokens: &[Token<'_>]) -> bool {
    tokens.len() >= TEST.len() && tokens.iter().zip(TEST).all(|(token, word)| token.text == word)
}

/// Returns the tokens after the item that begins here: it ends with its braces, or a semicolon
/// outside of any.
fn after_item<'a, 't>(tokens: &'a [Token<'t>]) -> &'a [Token<'t>] {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && matches!(token.text, "}" | ";") {
            return &tokens[at + 1..];
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let found: Vec<&str> = tokens(text).iter().map(|token| token.text).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn comments_and_literals_are_left_out() {
        check("a // b\n/* c /* d */ e */ f", &["a", "f"]);
        check(
            r##"a("crate::b \" c", r#"d "e" f"#, b"g", br"h\")i"##,
            &["a", "(", ",", ",", ",", ")", "i"],
        );
        check(r"'x' '\'' '\u{1F600}' b'\n' <'a> 'b: 'ä'", &["<", "'", "a", ">", "'", "b", ":"]);
        check("crate::x::Y", &["crate", "::", "x", "::", "Y"]);
    }

    #[test]
    fn test_only_items_are_left_out() {
        check("#[cfg(test)] mod tests { use crate::a; } b", &["b"]);
        check("#[cfg(test)] mod tests; b", &["b"]);
        check("#[cfg(test)]\n#[allow(x)] fn f(a: [u8; 3]) -> u8 { 1 } b", &["b"]);
        check("#[cfg(unix)] a", &["#", "[", "cfg", "(", "unix", ")", "]", "a"]);
    }

    #[test]
    fn lines_are_counted_through_everything() {
        let text = "a /*\n*/ b \"\n\" c\n#[cfg(test)] mod d {\n}\ne";
        let lines: Vec<usize> = tokens(text).iter().map(|token| token.line).collect();
        assert_eq!(lines, [1, 2, 3, 6]);
    }
}
