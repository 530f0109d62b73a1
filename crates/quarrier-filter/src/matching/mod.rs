//! Pattern matching on strings: LIKE, SIMILAR TO and regular expressions. Every match takes time
//! proportional to the length of the string.

use std::fmt;
use std::sync::Arc;

use memchr::memmem::Finder;
use regex::Regex;

use crate::Fault;

mod like;
pub use like::{Like, Shape};

mod similar;

/// Maximum size of a compiled regular expression in bytes.
const REGEX_BYTES_MAX: usize = 4 << 20;

/// The language of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Matcher {
    /// `LIKE`: `%` matches any string, `_` one character.
    Like,
    /// `SIMILAR TO`, the regular expressions of SQL:1999.
    Similar,
    /// `LIKE_REGEX`, `REGEXP` and `~`: a regular expression that matches anywhere; an extension.
    Regex,
}

/// A compiled pattern; cheap to clone. Two are equal if their languages, patterns and escape
/// characters are.
#[derive(Clone)]
pub struct Matching {
    by: Matcher,
    source: Arc<str>,
    escape: Option<char>,
    engine: Engine,
}

#[derive(Clone)]
enum Engine {
    Like(Arc<Like>),
    Regex(Regex),
}

impl Matching {
    /// Compiles a pattern. `escape` is the character after `ESCAPE`; regular expressions have none.
    ///
    /// # Errors
    /// [`Fault::Pattern`] if the pattern is invalid in its language, or too large.
    pub fn new(source: &str, escape: Option<char>, by: Matcher) -> Result<Self, Fault> {
        let engine = match by {
            Matcher::Like => Engine::Like(Arc::new(Like::new(source, escape)?)),
            Matcher::Similar => Engine::Regex(regex(&similar::translated(source, escape)?)?),
            Matcher::Regex => Engine::Regex(regex(source)?),
        };
        Ok(Matching { by, source: source.into(), escape, engine })
    }

    /// Whether `text` matches: as a whole for LIKE and SIMILAR TO, anywhere for a regular
    /// expression.
    pub fn is_match(&self, text: &str) -> bool {
        match &self.engine {
            Engine::Like(like) => like.is_match(text),
            Engine::Regex(regex) => regex.is_match(text),
        }
    }

    /// The language.
    pub fn by(&self) -> Matcher {
        self.by
    }

    /// The pattern as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The character of `ESCAPE`.
    pub fn escape(&self) -> Option<char> {
        self.escape
    }

    /// Returns a string that every match contains, if it is worth searching for in many strings at
    /// once.
    pub(crate) fn rare(&self) -> Option<&Finder<'static>> {
        match &self.engine {
            Engine::Like(like) => like.rare(),
            Engine::Regex(_) => None,
        }
    }

    /// The simple form of a LIKE, if it has one.
    pub fn shape(&self) -> Shape<'_> {
        match &self.engine {
            Engine::Like(like) => like.shape(),
            Engine::Regex(_) => Shape::Other,
        }
    }
}

impl PartialEq for Matching {
    fn eq(&self, other: &Self) -> bool {
        (self.by, self.escape, &self.source) == (other.by, other.escape, &other.source)
    }
}

impl Eq for Matching {}

impl std::hash::Hash for Matching {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.by, self.escape, &self.source).hash(state);
    }
}

impl fmt::Debug for Matching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({:?}", self.by, self.source)?;
        if let Some(escape) = self.escape {
            write!(f, ", escape {escape:?}")?;
        }
        f.write_str(")")
    }
}

fn regex(source: &str) -> Result<Regex, Fault> {
    regex::RegexBuilder::new(source).size_limit(REGEX_BYTES_MAX).build().map_err(|error| {
        let reason = match error {
            regex::Error::CompiledTooBig(_) => {
                "is too large once compiled; use smaller counts in {n,m}".to_string()
            }
            // The library shows the pattern with a mark below it; its last line is the error.
            other => {
                let said = other.to_string();
                let last = said.lines().last().unwrap_or_default();
                last.strip_prefix("error: ").unwrap_or(last).to_string()
            }
        };
        Fault::Pattern { reason: format!("regular expression '{}': {reason}", shortened(source)) }
    })
}

/// Returns the beginning of a string for a message, on one line.
pub(crate) fn shortened(text: &str) -> String {
    const SHOWN_MAX: usize = 60;
    crate::error::one_line(text, SHOWN_MAX)
}
