//! SIMILAR TO of SQL:1999, translated into a regular expression of the library.

use std::iter::Peekable;
use std::str::Chars;

use crate::Fault;

/// Translates a pattern into a regular expression that matches the same strings.
///
/// # Errors
/// [`Fault::Pattern`] for an open bracket, a repetition of nothing, and the like.
pub(super) fn translated(pattern: &str, escape: Option<char>) -> Result<String, Fault> {
    let reader = Reader { rest: pattern.chars().peekable(), escape, out: String::new() };
    reader.read().map_err(|reason| Fault::Pattern {
        reason: format!("SIMILAR TO pattern '{}': {reason}", super::shortened(pattern)),
    })
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    escape: Option<char>,
    out: String,
}

impl Reader<'_> {
    fn read(mut self) -> Result<String, String> {
        self.out.push_str(r"(?s)\A(?:");
        let mut open = 0_usize;
        // Whether the previous item may be repeated.
        let mut repeatable = false;
        while let Some(character) = self.rest.next() {
            let was_repeatable = std::mem::replace(&mut repeatable, true);
            match character {
                _ if Some(character) == self.escape => {
                    let literal = self.escaped()?;
                    self.literal(literal);
                }
                '%' => self.out.push_str(".*"),
                '_' => self.out.push('.'),
                '(' => {
                    open += 1;
                    repeatable = false;
                    self.out.push_str("(?:");
                }
                ')' => {
                    open = open.checked_sub(1).ok_or("a ) without its (")?;
                    self.out.push(')');
                }
                '|' => {
                    repeatable = false;
                    self.out.push('|');
                }
                '*' | '+' | '?' | '{' => {
                    if !was_repeatable {
                        return Err(format!("{character} has nothing before it to repeat"));
                    }
                    repeatable = false;
                    self.repeat(character)?;
                }
                '[' => self.set()?,
                ']' | '}' => return Err(format!("a {character} without its beginning")),
                other => self.literal(other),
            }
            // `%*` would repeat a repetition.
            if character == '%' && Some('%') != self.escape {
                self.out.insert_str(self.out.len() - 2, "(?:");
                self.out.push(')');
            }
        }
        if open > 0 {
            return Err("a ( without its )".into());
        }
        self.out.push_str(r")\z");
        Ok(self.out)
    }

    /// Reads the character after an escape.
    fn escaped(&mut self) -> Result<char, String> {
        let next = self.rest.next().ok_or("the pattern ends with the escape character")?;
        if "[]()|^-+*%_?{}".contains(next) || Some(next) == self.escape {
            return Ok(next);
        }
        Err(format!("the escape character precedes '{next}', which is not special"))
    }

    fn literal(&mut self, character: char) {
        self.out.push_str(&regex::escape(character.encode_utf8(&mut [0; 4])));
    }

    /// Reads `*`, `+`, `?`, `{n}`, `{n,}` or `{n,m}`.
    fn repeat(&mut self, mark: char) -> Result<(), String> {
        self.out.push(mark);
        if mark != '{' {
            return Ok(());
        }
        let mut digits_before = 0;
        let mut commas = 0;
        loop {
            match self.rest.next() {
                Some(digit) if digit.is_ascii_digit() => {
                    digits_before += usize::from(commas == 0);
                    self.out.push(digit);
                }
                Some(',') if commas == 0 && digits_before > 0 => {
                    commas += 1;
                    self.out.push(',');
                }
                Some('}') if digits_before > 0 => {
                    self.out.push('}');
                    return Ok(());
                }
                _ => return Err("a repetition is {n}, {n,} or {n,m}".into()),
            }
        }
    }

    /// Reads the contents of `[…]`: characters, ranges and classes, except those after a `^`.
    fn set(&mut self) -> Result<(), String> {
        let mut included = String::new();
        let mut excluded = String::new();
        let mut is_excluding = false;
        loop {
            let character = self.rest.next().ok_or("a [ without its ]")?;
            if Some(character) != self.escape {
                match character {
                    ']' => break,
                    '^' if !is_excluding => {
                        is_excluding = true;
                        continue;
                    }
                    '[' => {
                        let class = self.class()?;
                        if is_excluding { &mut excluded } else { &mut included }.push_str(class);
                        continue;
                    }
                    _ => {}
                }
            }
            let first = self.member(character)?;
            let mut range = (first, first);
            if self.rest.peek() == Some(&'-') && self.escape != Some('-') {
                self.rest.next();
                let last = self.rest.next().filter(|last| *last != ']' || self.escape == Some(']'));
                let last = last.ok_or("a range without its end; escape a literal '-'")?;
                range.1 = self.member(last)?;
            }
            if range.0 > range.1 {
                return Err(format!("the range {}-{} runs backwards", range.0, range.1));
            }
            let text = format!(r"\x{{{:x}}}-\x{{{:x}}}", range.0 as u32, range.1 as u32);
            if is_excluding { &mut excluded } else { &mut included }.push_str(&text);
        }
        self.out.push_str(&match (included.is_empty(), excluded.is_empty()) {
            (true, true) => return Err("a [] without characters".into()),
            (false, true) => format!("[{included}]"),
            (true, false) => format!("[^{excluded}]"),
            (false, false) => format!("[[{included}]--[{excluded}]]"),
        });
        Ok(())
    }

    fn member(&mut self, character: char) -> Result<char, String> {
        if Some(character) == self.escape { self.escaped() } else { Ok(character) }
    }

    /// Reads `:ALPHA:]` and the like, after the second `[`.
    fn class(&mut self) -> Result<&'static str, String> {
        let mut name = String::new();
        while let Some(character) = self.rest.next().filter(|_| name.len() < 20) {
            if character == ']' {
                break;
            }
            name.push(character.to_ascii_uppercase());
        }
        Ok(match name.as_str() {
            ":ALPHA:" => "A-Za-z",
            ":UPPER:" => "A-Z",
            ":LOWER:" => "a-z",
            ":DIGIT:" => "0-9",
            ":ALNUM:" => "A-Za-z0-9",
            ":SPACE:" => r"\x20",
            ":WHITESPACE:" => r"\s",
            _ => {
                return Err("a class in [] is one of [:ALPHA:], [:UPPER:], [:LOWER:], [:DIGIT:], \
                            [:ALNUM:], [:SPACE:] and [:WHITESPACE:]"
                    .into());
            }
        })
    }
}
