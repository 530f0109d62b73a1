//! Splits SQL into words, names, strings and punctuation, with their positions.

use crate::failure::{Failure, Result, state};

/// A token of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    /// The text as written.
    pub(super) text: &'a str,
    /// The offset of the start.
    pub(super) start: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    /// A name in double quotes.
    Name,
    /// A string in single quotes or between dollar signs.
    Text,
    Number,
    /// A single character of punctuation.
    Mark,
}

impl Token<'_> {
    /// Whether the token is this word, ignoring case.
    pub(super) fn is(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }

    pub(super) fn is_mark(&self, mark: &str) -> bool {
        self.kind == Kind::Mark && self.text == mark
    }

    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Returns the name, in lower case unless it was quoted.
    pub(super) fn name(&self) -> Option<String> {
        match self.kind {
            Kind::Word => Some(self.text.to_ascii_lowercase()),
            Kind::Name => Some(self.text[1..self.text.len() - 1].replace("\"\"", "\"")),
            _ => None,
        }
    }

    /// Returns the contents of a string.
    pub(super) fn string(&self) -> Option<String> {
        if self.kind != Kind::Text {
            return None;
        }
        let text = self.text;
        if let Some(inner) = text.strip_prefix('\'') {
            return Some(inner[..inner.len() - 1].replace("''", "'"));
        }
        if let Some(tagged) = text.strip_prefix('$') {
            let tag = tagged.find('$')? + 2;
            return Some(text[tag..text.len() - tag].to_string());
        }
        Some(escaped(&text[2..text.len() - 1]))
    }
}

/// Decodes the contents of `E'…'`.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => {
                letters.next_if_eq(&'\'');
                out.push('\'');
            }
            '\\' => out.push(match letters.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('b') => '\x08',
                Some('f') => '\x0c',
                Some('x') => {
                    let mut code = 0;
                    for _ in 0..2 {
                        let Some(digit) = letters.peek().and_then(|l| l.to_digit(16)) else {
                            break;
                        };
                        letters.next();
                        code = code * 16 + digit;
                    }
                    char::from_u32(code).unwrap_or('?')
                }
                Some(other) => other,
                None => '\\',
            }),
            other => out.push(other),
        }
    }
    out
}

fn open(what: &str) -> Failure {
    Failure::new(state::SYNTAX, format!("unterminated {what}"))
}

/// Returns the tokens of a statement, without comments.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(token) = next(text, &mut at)? {
        tokens.push(token);
    }
    Ok(tokens)
}

/// Returns the next token from `at` on, and moves `at` past it.
fn next<'a>(text: &'a str, at: &mut usize) -> Result<Option<Token<'a>>> {
    let bytes = text.as_bytes();
    skip(bytes, at)?;
    let start = *at;
    let Some(first) = bytes.get(start) else { return Ok(None) };
    let kind = match first {
        b'\'' => {
            *at = end_of_quoted(bytes, start, b'\'', false).ok_or_else(|| open("quoted string"))?;
            Kind::Text
        }
        b'"' => {
            *at = end_of_quoted(bytes, start, b'"', false)
                .ok_or_else(|| open("quoted identifier"))?;
            Kind::Name
        }
        b'e' | b'E' if bytes.get(start + 1) == Some(&b'\'') => {
            *at = end_of_quoted(bytes, start + 1, b'\'', true)
                .ok_or_else(|| open("quoted string"))?;
            Kind::Text
        }
        b'$' => match end_of_dollars(text, start)? {
            Some(end) => {
                *at = end;
                Kind::Text
            }
            None => {
                *at += 1;
                Kind::Mark
            }
        },
        b'0'..=b'9' => {
            *at = end_while(bytes, start, |byte| byte.is_ascii_alphanumeric() || byte == b'.');
            Kind::Number
        }
        byte if is_start(*byte) => {
            *at = end_while(bytes, start, |byte| {
                is_start(byte) || byte.is_ascii_digit() || byte == b'$'
            });
            Kind::Word
        }
        _ => {
            *at += 1;
            Kind::Mark
        }
    };
    Ok(Some(Token { kind, text: &text[start..*at], start }))
}

fn is_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn end_while(bytes: &[u8], start: usize, is_one: impl Fn(u8) -> bool) -> usize {
    let length = bytes[start..].iter().take_while(|byte| is_one(**byte)).count();
    start + length
}

/// Skips spaces and comments, which nest.
fn skip(bytes: &[u8], at: &mut usize) -> Result<()> {
    loop {
        match bytes.get(*at..) {
            Some([byte, ..]) if byte.is_ascii_whitespace() || *byte == 0x0b => *at += 1,
            Some([b'-', b'-', ..]) => *at = end_while(bytes, *at, |byte| byte != b'\n'),
            Some([b'/', b'*', ..]) => {
                let mut depth = 0_usize;
                loop {
                    match bytes.get(*at..) {
                        Some([b'/', b'*', ..]) => (depth, *at) = (depth + 1, *at + 2),
                        Some([b'*', b'/', ..]) => (depth, *at) = (depth - 1, *at + 2),
                        Some([_, ..]) => *at += 1,
                        _ => return Err(open("/* comment")),
                    }
                    if depth == 0 {
                        break;
                    }
                }
            }
            _ => return Ok(()),
        }
    }
}

fn end_of_quoted(bytes: &[u8], start: usize, quote: u8, has_escapes: bool) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'\\' if has_escapes => at += 2,
            byte if *byte == quote => {
                if bytes.get(at + 1) != Some(&quote) {
                    return Some(at + 1);
                }
                at += 2;
            }
            _ => at += 1,
        }
    }
}

/// Returns the end of `$tag$ … $tag$`; `None` if it is not such a string but a parameter.
fn end_of_dollars(text: &str, start: usize) -> Result<Option<usize>> {
    let bytes = text.as_bytes();
    let tag_end = end_while(bytes, start + 1, |byte| is_start(byte) || byte.is_ascii_digit());
    let is_number = bytes.get(start + 1).is_some_and(u8::is_ascii_digit);
    if is_number || bytes.get(tag_end) != Some(&b'$') {
        return Ok(None);
    }
    let tag = &text[start..=tag_end];
    let end = text[tag_end + 1..].find(tag).ok_or_else(|| open("dollar-quoted string"))?;
    Ok(Some(tag_end + 1 + end + tag.len()))
}

/// Splits a string into its statements, without the `;` between them. Skips empty ones.
pub(crate) fn split(text: &str) -> Result<Vec<&str>> {
    let mut statements = Vec::new();
    let (mut at, mut start, mut is_empty) = (0, 0, true);
    while let Some(token) = next(text, &mut at)? {
        if token.is_mark(";") {
            if !is_empty {
                statements.push(text[start..token.start].trim());
            }
            (start, is_empty) = (at, true);
        } else {
            is_empty = false;
        }
    }
    if !is_empty {
        statements.push(text[start..].trim());
    }
    Ok(statements)
}

/// Quotes a name as SQL.
pub(super) fn to_ident(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_split_at_semicolons_outside_tokens() {
        let text = "SELECT ';' ; -- a;\n SELECT $x$;$x$, $1;; /* /* ; */ */ E'\\';' x; \"a;\"\"b\"";
        let apart = split(text).unwrap();
        assert_eq!(
            apart,
            ["SELECT ';'", "-- a;\n SELECT $x$;$x$, $1", "/* /* ; */ */ E'\\';' x", "\"a;\"\"b\""]
        );
        assert_eq!(split(" ; -- nothing\n").unwrap(), [""; 0]);
        for open in ["'a", "\"a", "$a$ $b$", "/* /* */", "E'\\'"] {
            assert_eq!(split(open).unwrap_err().state, state::SYNTAX, "{open}");
        }
    }

    #[test]
    fn tokens_have_their_values() {
        let said = tokens("E'a\\n\\x41''' 'it''s' $t$x$t$ \"Na\"\"me\" Name").unwrap();
        let strings: Vec<_> = said.iter().filter_map(Token::string).collect();
        assert_eq!(strings, ["a\nA'", "it's", "x"]);
        let names: Vec<_> = said.iter().filter_map(Token::name).collect();
        assert_eq!(names, ["Na\"me", "name"]);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[;'\"$a-z\\\\/*\\-\\n \u{e9}]*") {
            if let Ok(all) = tokens(&text) {
                all.iter().for_each(|token| drop((token.string(), token.name())));
            }
            let _ = split(&text);
        }
    }
}
