//! Turtle, the RDF syntax of AFF4 descriptions: statements of a subject, a predicate and an object.
//!
//! *W3C, RDF 1.1 Turtle*. The whole syntax is parsed; objects that no image uses, such as lists, get no
//! value.

use std::collections::HashMap;

const TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
/// Maximum nesting of brackets.
const DEPTH_MAX: usize = 16;

/// An object of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Term {
    /// An IRI: a URN, or a term of a vocabulary.
    Iri(String),
    /// A string or number, and the IRI of its type; empty if untyped.
    Literal {
        /// The lexical form.
        text: String,
        /// The IRI of its type.
        kind: String,
    },
    /// Anything else: a list, or a blank node.
    Other,
}

/// The consumer of statements: subject, predicate and object. An error stops the parser.
pub(super) type Taker<'t> = dyn FnMut(&str, &str, Term) -> Result<(), String> + 't;

/// Parses `text` and passes its statements to `take`.
///
/// # Errors
/// The offset and description of a syntax error, or the error of `take`.
pub(super) fn read(text: &str, take: &mut Taker<'_>) -> Result<(), (usize, String)> {
    let mut reader =
        Reader { text, at: 0, base: String::new(), prefixes: HashMap::new(), depth: 0, take };
    reader.document().map_err(|reason| (reader.at, reason))
}

struct Reader<'r, 't> {
    text: &'r str,
    at: usize,
    base: String,
    prefixes: HashMap<&'r str, String>,
    depth: usize,
    take: &'r mut Taker<'t>,
}

impl<'r> Reader<'r, '_> {
    fn document(&mut self) -> Result<(), String> {
        loop {
            self.skip();
            match self.peek() {
                None => return Ok(()),
                Some('@') => {
                    self.at += 1;
                    self.directive()?;
                    self.expect('.')?;
                }
                Some(_) if self.is_word("prefix") || self.is_word("base") => self.directive()?,
                Some(_) => {
                    let subject = match self.term()? {
                        Term::Iri(subject) => subject,
                        _ => String::new(),
                    };
                    self.predicates(&subject)?;
                    self.expect('.')?;
                }
            }
        }
    }

    /// Parses a `@prefix` or `@base` directive.
    fn directive(&mut self) -> Result<(), String> {
        match self.word() {
            word if word.eq_ignore_ascii_case("prefix") => {
                self.skip();
                let prefix = self.word();
                self.expect(':')?;
                self.skip();
                let iri = self.iri()?;
                self.prefixes.insert(prefix, iri);
            }
            word if word.eq_ignore_ascii_case("base") => {
                self.skip();
                self.base = self.iri()?;
            }
            _ => return Err("a directive is neither a prefix nor a base".to_string()),
        }
        Ok(())
    }

    /// Parses predicates and their objects up to the end of a statement or bracket.
    fn predicates(&mut self, subject: &str) -> Result<(), String> {
        loop {
            self.skip();
            match self.peek() {
                Some(';') => {
                    self.at += 1;
                    continue;
                }
                Some('.' | ']') | None => return Ok(()),
                Some(_) => {}
            }
            let predicate = match self.is_word("a") {
                true => {
                    self.at += 1;
                    TYPE.to_string()
                }
                false => match self.term()? {
                    Term::Iri(predicate) => predicate,
                    _ => return Err("a predicate is not an address".to_string()),
                },
            };
            loop {
                self.skip();
                let object = self.term()?;
                (self.take)(subject, &predicate, object)?;
                self.skip();
                if self.peek() != Some(',') {
                    break;
                }
                self.at += 1;
            }
            if !matches!(self.peek(), Some(';' | '.' | ']')) {
                return Err("a statement does not end".to_string());
            }
        }
    }

    fn term(&mut self) -> Result<Term, String> {
        match self.peek() {
            None => Err("the text ends inside a statement".to_string()),
            Some('<') => self.iri().map(Term::Iri),
            Some('"' | '\'') => self.literal(),
            Some('[') => self.inside(']', |reader| reader.predicates("")),
            Some('(') => self.inside(')', |reader| {
                while !matches!(reader.peek(), Some(')') | None) {
                    reader.term()?;
                    reader.skip();
                }
                Ok(())
            }),
            Some('0'..='9' | '+' | '-' | '.') => {
                let is_number = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-');
                let text = self.taken(|rest| end_of(rest, is_number));
                match text {
                    "" => Err("a statement ends where a value is expected".to_string()),
                    text => Ok(Term::Literal { text: text.to_string(), kind: String::new() }),
                }
            }
            Some(_) if self.is_word("true") || self.is_word("false") => {
                let text = self.word().to_string();
                Ok(Term::Literal { text, kind: String::new() })
            }
            Some(_) => self.name(),
        }
    }

    /// Parses a bracketed blank node, which has no value.
    fn inside(
        &mut self,
        end: char,
        read: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<Term, String> {
        if self.depth == DEPTH_MAX {
            return Err("it has too many brackets in brackets".to_string());
        }
        self.depth += 1;
        self.at += 1;
        self.skip();
        read(self)?;
        self.expect(end)?;
        self.depth -= 1;
        Ok(Term::Other)
    }

    /// Parses an IRI in angle brackets.
    fn iri(&mut self) -> Result<String, String> {
        let rest = &self.text[self.at..];
        let end = rest.strip_prefix('<').and_then(|rest| rest.find(['>', '\n']));
        let iri = end.filter(|&end| rest[end + 1..].starts_with('>')).map(|end| &rest[1..=end]);
        let iri = iri.ok_or("an address in angle brackets does not end")?;
        self.at += iri.len() + 2;
        match iri.contains(':') {
            true => Ok(iri.to_string()),
            false => Ok(format!("{}{iri}", self.base)),
        }
    }

    /// Parses a prefixed name, or a blank node label (`_:name`).
    fn name(&mut self) -> Result<Term, String> {
        let prefix = self.word();
        if self.peek() != Some(':') {
            return Err("a name has no prefix".to_string());
        }
        self.at += 1;
        let is_local =
            |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ':' | '%' | '\\' | '/');
        let local = self.taken(|rest| end_of(rest, is_local)).replace('\\', "");
        if prefix == "_" {
            return Ok(Term::Other);
        }
        match self.prefixes.get(prefix) {
            Some(iri) => Ok(Term::Iri(format!("{iri}{local}"))),
            None => Err("a name has a prefix that is not declared".to_string()),
        }
    }

    fn literal(&mut self) -> Result<Term, String> {
        let text = self.string()?;
        let kind = match self.peek() {
            Some('^') if self.text[self.at..].starts_with("^^") => {
                self.at += 2;
                match self.peek() {
                    Some('<') => self.iri()?,
                    _ => match self.name()? {
                        Term::Iri(kind) => kind,
                        _ => String::new(),
                    },
                }
            }
            Some('@') => {
                self.at += 1;
                self.taken(|rest| end_of(rest, |c| c.is_ascii_alphanumeric() || c == '-'));
                String::new()
            }
            _ => String::new(),
        };
        Ok(Term::Literal { text, kind })
    }

    fn string(&mut self) -> Result<String, String> {
        let rest = &self.text[self.at..];
        let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| rest.starts_with(quote));
        let quote = quote.unwrap_or("\"");
        self.at += quote.len();
        let mut string = String::new();
        loop {
            let rest = &self.text[self.at..];
            if rest.starts_with(quote) {
                self.at += quote.len();
                return Ok(string);
            }
            match rest.chars().next() {
                None => return Err("a string does not end".to_string()),
                Some('\n') if quote.len() == 1 => {
                    return Err("a string does not end in its line".to_string());
                }
                Some('\\') => string.push(self.escaped()?),
                Some(c) => {
                    self.at += c.len_utf8();
                    string.push(c);
                }
            }
        }
    }

    /// Parses an escape sequence after the backslash.
    fn escaped(&mut self) -> Result<char, String> {
        self.at += 1;
        let c = self.peek().ok_or("a string does not end")?;
        self.at += c.len_utf8();
        let digits = match c {
            'u' => 4,
            'U' => 8,
            't' => return Ok('\t'),
            'n' => return Ok('\n'),
            'r' => return Ok('\r'),
            'b' => return Ok('\u{8}'),
            'f' => return Ok('\u{C}'),
            c => return Ok(c),
        };
        let code = self.text.get(self.at..self.at + digits);
        let code = code.and_then(|code| u32::from_str_radix(code, 16).ok());
        let c = code.and_then(char::from_u32).ok_or("a character has no such code")?;
        self.at += digits;
        Ok(c)
    }

    /// The longest prefix of characters that names may contain; may be empty.
    fn word(&mut self) -> &'r str {
        self.taken(|rest| end_of(rest, |c| c.is_alphanumeric() || matches!(c, '_' | '-')))
    }

    fn taken(&mut self, end: impl FnOnce(&str) -> usize) -> &'r str {
        let rest: &'r str = &self.text[self.at..];
        let taken = &rest[..end(rest)];
        self.at += taken.len();
        taken
    }

    /// Whether the input continues with this whole word; `a` is case-sensitive, others are not.
    fn is_word(&self, word: &str) -> bool {
        let rest = &self.text[self.at..];
        let is_it = match word {
            "a" => rest.starts_with('a'),
            word => rest.get(..word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word)),
        };
        let follows = rest.get(word.len()..).and_then(|rest| rest.chars().next());
        is_it && !follows.is_some_and(|c| c.is_alphanumeric() || matches!(c, ':' | '_' | '-'))
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        self.skip();
        match self.peek() {
            Some(found) if found == wanted => {
                self.at += found.len_utf8();
                Ok(())
            }
            _ => Err(format!("'{wanted}' is missing")),
        }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    /// Skips white space and comments.
    fn skip(&mut self) {
        loop {
            self.taken(|rest| rest.len() - rest.trim_start().len());
            if self.peek() != Some('#') {
                return;
            }
            self.taken(|rest| rest.find('\n').unwrap_or(rest.len()));
        }
    }
}

/// The end of the leading characters that satisfy `is_inside`. A full stop counts if another such
/// character follows it.
fn end_of(text: &str, is_inside: impl Fn(char) -> bool) -> usize {
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let follows = characters.peek().is_some_and(|(_, c)| is_inside(*c));
        let is_in = is_inside(c) || c == '.' && at > 0 && follows;
        if !is_in {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(text: &str) -> Result<Vec<String>, (usize, String)> {
        let mut found = Vec::new();
        read(text, &mut |subject, predicate, object| {
            let object = match object {
                Term::Iri(iri) => format!("<{iri}>"),
                Term::Literal { text, kind } => format!("{text:?}^{kind}"),
                Term::Other => "…".to_string(),
            };
            found.push(format!("{subject} {predicate} {object}"));
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn statements_of_both_known_writers_are_read() {
        let evimetry = "@prefix :      <aff4://v> .\r\n@prefix aff4: <http://x#> .\n\n\
             <aff4://i>\n        a        aff4:DiskImage , aff4:Image ;\n        aff4:state\n\
                     \"Done\" ;\n  aff4:size \"12\"^^<http://long> ;\n  aff4:stored : .\n\n\
             :  a aff4:ZipVolume .\n";
        let rdflib = "@prefix aff4: <http://x#> .\nPREFIX x: <http://y#>\n\
             <aff4://i> a aff4:DiskImage,\n        aff4:Image ;\n    aff4:state \"Done\" ;\n\
             aff4:size \"\"\"12\"\"\"^^<http://long> ;\n # text\n aff4:stored <aff4://v> .\n\
             <aff4://v> a aff4:ZipVolume.";
        let kind = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
        let expected = [
            format!("aff4://i {kind} <http://x#DiskImage>"),
            format!("aff4://i {kind} <http://x#Image>"),
            "aff4://i http://x#state \"Done\"^".to_string(),
            "aff4://i http://x#size \"12\"^http://long".to_string(),
            "aff4://i http://x#stored <aff4://v>".to_string(),
            format!("aff4://v {kind} <http://x#ZipVolume>"),
        ];
        assert_eq!(statements(evimetry).unwrap(), expected);
        assert_eq!(statements(rdflib).unwrap(), expected);
    }

    #[test]
    fn syntax_that_no_image_uses_is_parsed() {
        let text = "@base <x:> . <a> <b> 12, -1.5e3, true, [ <c> 'd'@en ; ], ( 1 [] <e> ), _:f ; .\n\
                    [] <g> \"\\u0041\\n\\\"\" .";
        let expected = [
            "x:a x:b \"12\"^",
            "x:a x:b \"-1.5e3\"^",
            "x:a x:b \"true\"^",
            " x:c \"d\"^",
            "x:a x:b …",
            "x:a x:b …",
            "x:a x:b …",
            " x:g \"A\\n\\\"\"^",
        ];
        assert_eq!(statements(text).unwrap(), expected);
    }

    #[test]
    fn text_that_is_no_turtle_is_an_error_at_its_byte() {
        for text in [
            "<a",
            "<a> <b> <c>",
            "<a> <b> ",
            "<a> <b> \"c .",
            "<a> b:c <d> .",
            "@other <a> .",
            "<a> \"b\" <c> .",
            "<a> <b> \"\\u12\" .",
            "<a> <b> . .",
            "<a> <b> <c> <d> .",
            "é",
        ] {
            assert!(statements(text).is_err_and(|(at, _)| at <= text.len()), "{text}");
        }
        assert!(statements(&format!("<a> <b> {}", "[ <c> (".repeat(1 << 20))).is_err());
    }
}
