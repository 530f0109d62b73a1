//! Reads files of rules and the files that they include into statements, in order.

use std::sync::atomic::{AtomicBool, Ordering};

use boreal_parser::file::YaraFileComponent;
use boreal_parser::rule::Rule;

use crate::error::{Error, Result};
use crate::split::statements;

/// Maximum size of all files of rules together, in bytes.
pub const RULE_BYTES_MAX: usize = 64 << 20;
/// Maximum size of one rule, in bytes. It bounds the nesting of a condition, and thus the stack for
/// dropping one, which recurses to the innermost expression.
pub const RULE_BYTES_EACH_MAX: usize = 256 << 10;
/// Maximum number of rules of a set.
pub const RULES_MAX: usize = 200_000;
/// Maximum number of files of a set.
const FILES_MAX: usize = 10_000;
/// Maximum nesting of includes.
const INCLUDE_DEPTH_MAX: usize = 16;

/// A file of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFile {
    /// The name of the file in errors. A reader of includes resolves relative paths by it.
    pub name: String,
    /// The bytes of the file, which must be UTF-8.
    pub bytes: Vec<u8>,
}

/// Reads an included file, given the name of the including file and the path as written there.
pub type Include<'i> = dyn FnMut(&str, &str) -> std::result::Result<RuleFile, String> + Send + 'i;

/// A statement.
#[derive(Debug)]
pub(crate) struct Statement {
    /// The index of the file.
    pub(crate) file: usize,
    /// The line at which its text begins, from 1.
    line: usize,
    /// The number of characters before its text in that line.
    before: usize,
    pub(crate) text: Box<str>,
}

impl Statement {
    /// Makes the error for the byte at `at` of the text.
    pub(crate) fn wrong(&self, files: &[String], at: usize, reason: String) -> Error {
        let before = self.text.get(..at).unwrap_or(&self.text);
        let (line, column) = match before.rfind('\n') {
            None => (self.line, self.before + before.chars().count() + 1),
            Some(end) => {
                let lines = before.bytes().filter(|&byte| byte == b'\n').count();
                (self.line + lines, before[end + 1..].chars().count() + 1)
            }
        };
        let file = files.get(self.file).cloned().unwrap_or_default();
        Error::Rule { file, line, column, reason }
    }
}

/// A statement's content.
#[derive(Debug)]
pub(crate) enum Content {
    /// The name of a module.
    Import(String),
    Rule(Box<Rule>),
}

/// All statements, in the order of their evaluation.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    pub(crate) files: Vec<String>,
    pub(crate) statements: Vec<Statement>,
    pub(crate) contents: Vec<Content>,
    bytes: usize,
    rules: usize,
}

impl Statements {
    /// Reads files, in order, with the files that each includes.
    ///
    /// # Errors
    /// Returns the error of the first invalid file.
    pub(crate) fn read(
        files: &[RuleFile],
        include: &mut Include<'_>,
        stop: &AtomicBool,
    ) -> Result<Self> {
        let mut parsed = Statements::default();
        for file in files {
            parsed.add(file, 0, include, stop)?;
        }
        Ok(parsed)
    }

    fn add(
        &mut self,
        file: &RuleFile,
        depth: usize,
        include: &mut Include<'_>,
        stop: &AtomicBool,
    ) -> Result<()> {
        let text = self.checked(file)?;
        let place = self.files.len();
        self.files.push(file.name.clone());
        let (mut line, mut before) = (1, 0);
        for range in statements(text) {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            let text = &text[range];
            let statement = Statement { file: place, line, before, text: text.into() };
            match text.rfind('\n') {
                Some(end) => {
                    line += text.bytes().filter(|&byte| byte == b'\n').count();
                    before = text[end + 1..].chars().count();
                }
                None => before += text.chars().count(),
            }
            self.add_statement(statement, depth, include, stop)?;
        }
        Ok(())
    }

    /// Returns the text of a file after checking the limits on all files.
    fn checked<'f>(&mut self, file: &'f RuleFile) -> Result<&'f str> {
        let refused = |reason: String| Error::File { file: file.name.clone(), reason };
        self.bytes += file.bytes.len();
        if self.bytes > RULE_BYTES_MAX {
            return Err(refused(format!(
                "the files of rules have more than {RULE_BYTES_MAX} bytes together; use them in several \
                 runs"
            )));
        }
        if self.files.len() >= FILES_MAX {
            return Err(refused(format!("there are more than {FILES_MAX} files of rules")));
        }
        let bytes = file.bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&file.bytes);
        std::str::from_utf8(bytes).map_err(|error| {
            let before = &bytes[..error.valid_up_to()];
            let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
            refused(format!(
                "line {line} is not UTF-8; 'iconv -f latin1 -t utf-8' converts it, and '\\xNN' in a \
                 string is a byte"
            ))
        })
    }

    fn add_statement(
        &mut self,
        statement: Statement,
        depth: usize,
        include: &mut Include<'_>,
        stop: &AtomicBool,
    ) -> Result<()> {
        let text = &*statement.text;
        let first = text.len() - text.trim_start().len();
        if text.len() > RULE_BYTES_EACH_MAX {
            let reason = format!(
                "a rule of more than {RULE_BYTES_EACH_MAX} bytes; divide it, or close the brace, quote or \
                 comment that is open"
            );
            return Err(statement.wrong(&self.files, first, reason));
        }
        let parsed = boreal_parser::parse(text).map_err(|error| {
            let diagnostic = error.to_diagnostic();
            let at = diagnostic.labels.first().map_or(first, |label| label.range.start);
            statement.wrong(&self.files, at, message_at(&diagnostic.message, &statement.text, at))
        })?;
        for component in parsed.components {
            match component {
                YaraFileComponent::Include(included) => {
                    let wrong = |reason: String| {
                        let reason = format!("cannot include '{}': {reason}", included.path);
                        statement.wrong(&self.files, included.span.start, reason)
                    };
                    if depth >= INCLUDE_DEPTH_MAX {
                        let reason =
                            format!("includes are nested more than {INCLUDE_DEPTH_MAX} deep");
                        return Err(wrong(reason));
                    }
                    let name = self.files.get(statement.file).cloned().unwrap_or_default();
                    let file = include(&name, &included.path).map_err(wrong)?;
                    self.add(&file, depth + 1, include, stop)?;
                }
                YaraFileComponent::Import(import) => {
                    self.keep(&statement, Content::Import(import.name));
                }
                YaraFileComponent::Rule(rule) => {
                    self.rules += 1;
                    if self.rules > RULES_MAX {
                        let reason =
                            format!("more than {RULES_MAX} rules; use them in several runs");
                        return Err(statement.wrong(&self.files, rule.name_span.start, reason));
                    }
                    self.keep(&statement, Content::Rule(rule));
                }
            }
        }
        Ok(())
    }

    fn keep(&mut self, statement: &Statement, content: Content) {
        let Statement { file, line, before, ref text } = *statement;
        self.statements.push(Statement { file, line, before, text: text.clone() });
        self.contents.push(content);
    }
}

/// Adds the text at which the parser stopped to its message, which says only that there is an
/// error.
fn message_at(message: &str, text: &str, at: usize) -> String {
    let there: String = text.get(at..).unwrap_or_default().chars().take(24).collect();
    match there.split_whitespace().next() {
        Some(word) => format!("{message} at '{word}'"),
        None => format!("{message}: the rule does not end"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> RuleFile {
        RuleFile { name: name.to_string(), bytes: text.as_bytes().to_vec() }
    }

    fn read(text: &str, included: &[(&str, &str)]) -> Result<Statements> {
        let mut include = |_: &str, path: &str| {
            let found = included.iter().find(|(name, _)| *name == path);
            found.map(|(name, text)| file(name, text)).ok_or_else(|| "no such file".to_string())
        };
        Statements::read(&[file("a.yar", text)], &mut include, &AtomicBool::new(false))
    }

    fn names(parsed: &Statements) -> Vec<&str> {
        let mut names = Vec::new();
        for content in &parsed.contents {
            if let Content::Rule(rule) = content {
                names.push(&*rule.name);
            }
        }
        names
    }

    #[test]
    fn included_rules_count_where_they_are_included() {
        let rule = |name: &str| format!("rule {name} {{ condition: true }}\n");
        let text = format!("{}include \"b.yar\"\n{}", rule("a"), rule("c"));
        let parsed = read(&text, &[("b.yar", &rule("b"))]).unwrap();
        assert_eq!(names(&parsed), ["a", "b", "c"]);
        assert_eq!(parsed.files, ["a.yar", "b.yar"]);
    }

    #[test]
    fn errors_name_file_line_and_column() {
        let place = |text: &str, included| match read(text, included) {
            Err(Error::Rule { file, line, column, reason }) => (file, line, column, reason),
            other => panic!("{other:?}"),
        };
        let (file, line, column, reason) =
            place("rule a { condition: true }\n\nrule b { condition true }", &[]);
        assert_eq!((&*file, line), ("a.yar", 3));
        assert!(column > 1 && reason.contains("syntax error"), "{column} {reason}");
        let (file, line, column, reason) = place("/* é */ include \"b\"", &[]);
        assert_eq!((&*file, line, column), ("a.yar", 1, 9));
        assert_eq!(reason, "cannot include 'b': no such file");
        let (file, _, _, reason) = place("include \"b\"", &[("b", "include \"b\"")]);
        assert!(file == "b" && reason.contains("nested more than"), "{reason}");
        let long = format!("rule a {{ condition: {} true }}", "not ".repeat(300_000));
        assert!(place(&long, &[]).3.contains("more than 262144 bytes"));
    }

    #[test]
    fn other_encodings_are_refused_with_their_line() {
        let latin = RuleFile { name: "l".to_string(), bytes: b"// a\n// \xE9\n".to_vec() };
        let read = Statements::read(&[latin], &mut |_, _| unreachable!(), &AtomicBool::new(false));
        assert!(read.unwrap_err().to_string().starts_with("l: line 2 is not UTF-8"));
    }
}
