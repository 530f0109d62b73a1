//! The language of hexadecimal patterns: bytes, wildcards, negation, jumps, alternatives.
//!
//! ```text
//!  FF D8 ?? 4?      bytes, any byte, half a byte
//!  ~00  ~4?         any byte but these
//!  [4]  [4-6]  [4-] so many bytes of any value
//!  (FF D8 | 89 50)  one or the other
//! ```

use quarrier_core::hex::parse_masked;

use super::program::{Program, Reach, Step};

/// Maximum number of jumps and alternatives of a pattern.
const FORKS_MAX: usize = 64;
/// Maximum nesting of alternatives.
const DEPTH_MAX: usize = 8;
/// Maximum number of steps of a pattern with jumps, alternatives or negated bytes.
const STEPS_MAX: usize = 4096;
/// Maximum upper bound of a jump, in bytes.
pub(crate) const JUMP_BYTES_MAX: u32 = 1 << 26;

/// A hexadecimal pattern.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Hex {
    /// Bytes and wildcards only.
    Masked(Vec<(u8, u8)>),
    Program(Program),
}

/// Parses a pattern.
///
/// # Errors
/// A message with the error and its position.
pub(crate) fn parse(text: &str) -> Result<Hex, String> {
    if !text.contains(['[', '(', '~', '|', ')', ']']) {
        return parse_masked(text).map(Hex::Masked).map_err(|error| error.to_string());
    }
    let mut parser = Parser { rest: text, text, steps: Vec::new(), forks: 0 };
    parser.sequence(0)?;
    match parser.rest.chars().next() {
        None => Ok(Hex::Program(Program { steps: parser.steps })),
        Some(end) => Err(parser.wrong(&format!("'{end}' closes nothing"))),
    }
}

struct Parser<'t> {
    text: &'t str,
    rest: &'t str,
    steps: Vec<Step>,
    forks: usize,
}

impl Parser<'_> {
    /// Makes the error for the next character.
    fn wrong(&self, what: &str) -> String {
        let read = &self.text[..self.text.len() - self.rest.len()];
        format!("{what} at character {}", read.chars().count() + 1)
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches(|c: char| c.is_whitespace() || ",:".contains(c));
    }

    fn eat(&mut self, character: char) -> bool {
        match self.rest.strip_prefix(character) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Parses items up to the end, a `|` or a `)`.
    fn sequence(&mut self, depth: usize) -> Result<(), String> {
        let (first, mut ends_in_jump) = (self.steps.len(), false);
        loop {
            self.skip_blanks();
            if self.steps.len() > STEPS_MAX {
                return Err(format!(
                    "has more than {STEPS_MAX} bytes together with jumps, alternatives or negated bytes"
                ));
            }
            match self.rest.chars().next() {
                None | Some('|' | ')') => break,
                Some('[') => {
                    if self.steps.len() == first {
                        return Err(self.wrong("a jump must be between bytes, not"));
                    }
                    self.jump()?;
                    ends_in_jump = true;
                    continue;
                }
                Some('(') => self.alternatives(depth)?,
                Some('~') => {
                    self.rest = &self.rest[1..];
                    let (value, mask) = self.byte()?;
                    if mask == 0 {
                        return Err(self.wrong("'~??' matches nothing; it ends"));
                    }
                    self.steps.push(Step::Byte { value, mask, negated: true });
                }
                Some(_) => {
                    let (value, mask) = self.byte()?;
                    self.steps.push(Step::masked(value, mask));
                }
            }
            ends_in_jump = false;
        }
        if self.steps.len() == first {
            return Err(self.wrong("a byte is missing"));
        }
        if ends_in_jump {
            return Err(self.wrong("a jump must be between bytes, not"));
        }
        Ok(())
    }

    /// Parses two digits.
    fn byte(&mut self) -> Result<(u8, u8), String> {
        let end = self.rest.char_indices().nth(2).map_or(self.rest.len(), |(at, _)| at);
        let (digits, rest) = self.rest.split_at(end);
        match parse_masked(digits).as_deref() {
            Ok([byte]) => {
                self.rest = rest;
                Ok(*byte)
            }
            _ => {
                match digits.chars().enumerate().find(|(_, c)| !c.is_ascii_hexdigit() && *c != '?')
                {
                    Some((place, c)) => {
                        let read = self.text[..self.text.len() - self.rest.len()].chars().count();
                        let at = read + place + 1;
                        Err(format!(
                            "'{c}' at character {at} is not a hexadecimal digit, '?' or blank"
                        ))
                    }
                    None => Err(self.wrong("a byte has two digits, '?' for any; one is missing")),
                }
            }
        }
    }

    /// Parses `[4]`, `[4-6]`, `[4-]` or `[-6]`.
    fn jump(&mut self) -> Result<(), String> {
        self.forks += 1;
        self.check_forks()?;
        let Some((inside, rest)) = self.rest[1..].split_once(']') else {
            return Err(self.wrong("unclosed '['"));
        };
        let number = |text: &str| match text.trim() {
            "" => Ok(None),
            digits => match digits.parse::<u32>() {
                Ok(number) if number <= JUMP_BYTES_MAX => Ok(Some(number)),
                _ => Err(self.wrong(&format!(
                    "'{digits}' is not a number of bytes up to {JUMP_BYTES_MAX}, in the jump"
                ))),
            },
        };
        let (least, most) = match inside.split_once('-') {
            Some((least, most)) => (
                number(least)?.unwrap_or_default(),
                number(most)?.map_or(Reach::Open, Reach::Bytes),
            ),
            None => match number(inside)? {
                Some(exact) => (exact, Reach::Bytes(exact)),
                None => {
                    return Err(self.wrong("write [4], [4-6] or [4-], not a jump without numbers"));
                }
            },
        };
        if matches!(most, Reach::Bytes(most) if most < least) {
            return Err(self.wrong("the maximum of the jump is less than its minimum"));
        }
        self.rest = rest;
        self.steps.push(Step::Jump { least, most });
        Ok(())
    }

    /// Parses `(A|B|…)` into a split, and a step to the end after each alternative.
    fn alternatives(&mut self, depth: usize) -> Result<(), String> {
        self.forks += 1;
        self.check_forks()?;
        if depth == DEPTH_MAX {
            return Err(self.wrong(&format!("alternatives are nested more than {DEPTH_MAX} deep")));
        }
        let start = self.wrong("unclosed '('");
        self.rest = &self.rest[1..];
        let split = self.steps.len();
        self.steps.push(Step::Split(Vec::new()));
        let (mut begins, mut ends) = (Vec::new(), Vec::new());
        loop {
            begins.push(self.steps.len());
            self.sequence(depth + 1)?;
            ends.push(self.steps.len());
            self.steps.push(Step::Goto(0));
            if self.eat(')') {
                break;
            }
            if !self.eat('|') {
                return Err(start);
            }
        }
        let after = self.steps.len();
        self.steps[split] = Step::Split(begins);
        ends.into_iter().for_each(|end| self.steps[end] = Step::Goto(after));
        Ok(())
    }

    fn check_forks(&self) -> Result<(), String> {
        match self.forks > FORKS_MAX {
            true => Err(format!("has more than {FORKS_MAX} jumps and alternatives")),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_place() {
        for (text, reason) in [
            ("FF [4-6]", "a jump must be between bytes, not at character 9"),
            ("[4] FF", "a jump must be between bytes, not at character 1"),
            ("FF [6-4] 00", "the maximum of the jump is less than its minimum at character 4"),
            ("FF [] 00", "not a jump without numbers at character 4"),
            ("FF [x] 00", "'x' is not a number"),
            ("FF [4 00", "unclosed '[' at character 4"),
            ("(41 | 42", "unclosed '(' at character 1"),
            ("(41 | )", "a byte is missing at character 7"),
            ("41 )", "')' closes nothing at character 4"),
            ("41 | 42", "'|' closes nothing at character 4"),
            ("~?? 41", "'~??' matches nothing"),
            ("~4", "a byte has two digits, '?' for any; one is missing at character 2"),
            ("é1 ~00", "'é' at character 1 is not a hexadecimal digit"),
            ("41 ~4é", "'é' at character 6 is not"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
        let deep = format!("{}41{}", "(".repeat(9), ")".repeat(9));
        assert!(parse(&deep).unwrap_err().contains("nested"));
        assert!(parse(&"41[1]".repeat(100)).unwrap_err().contains("more than 64 jumps"));
        assert!(parse(&format!("~00{}", "41".repeat(5000))).unwrap_err().contains("4096 bytes"));
    }

    #[test]
    fn alternatives_become_forks_that_meet_again() {
        let Ok(Hex::Program(program)) = parse("41(42|43 44)45") else { panic!("a program") };
        let expected = [
            Step::byte(0x41),
            Step::Split(vec![2, 4]),
            Step::byte(0x42),
            Step::Goto(7),
            Step::byte(0x43),
            Step::byte(0x44),
            Step::Goto(7),
            Step::byte(0x45),
        ];
        assert_eq!(program.steps, expected);
    }
}
