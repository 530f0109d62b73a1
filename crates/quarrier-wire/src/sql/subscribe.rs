//! Parses `SUBSCRIBE (query) [MATCHING conditions (id, condition)] [WITH (…)] [AS OF mark | SINCE time]
//! [UP TO mark]`, which engines do not know.

use std::fmt;
use std::time::Duration;

use super::tokens::{Kind, Token, to_ident, tokens};
use super::utility::{closing, wrong};
use crate::failure::{Failure, Result, state};
use crate::sql::milliseconds;

/// The default interval of progress for clients without rows.
const PROGRESS_TIME: Duration = Duration::from_secs(1);
/// Minimum interval between two runs of a query.
const EVERY_MIN: Duration = Duration::from_millis(10);

/// A parsed SUBSCRIBE statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscribeText {
    /// The query.
    pub query: String,
    /// Whether the current rows come first.
    pub has_snapshot: bool,
    /// The mark to begin after; None for the current last one.
    pub after: Option<u64>,
    /// The time of commit to begin at, as written, if no mark is given.
    pub since: Option<String>,
    /// The last mark to send.
    pub until: Option<u64>,
    /// Maximum time between two rows, including progress.
    pub progress: Duration,
    /// Run the query again at this interval, and send the differences; `None` sends the rows of one
    /// table, each once.
    pub every: Option<Duration>,
    /// The standing conditions that the rows are matched with.
    pub matching: Option<MatchingText>,
}

/// The table of standing conditions, and its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchingText {
    /// The table.
    pub table: String,
    /// The column with the id of each condition; `id` if it is not given.
    pub id: String,
    /// The column with the conditions; `condition` if it is not given.
    pub condition: String,
}

/// Parses a SUBSCRIBE statement; `None` for another statement.
///
/// # Errors
/// If it begins as a SUBSCRIBE and is invalid.
pub fn subscribe_text(text: &str) -> Result<Option<SubscribeText>> {
    let head = text.trim_start();
    let is_comment = head.starts_with("--") || head.starts_with("/*");
    let word = head.split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default();
    if !is_comment && !word.eq_ignore_ascii_case("SUBSCRIBE") {
        return Ok(None);
    }
    let all = tokens(text)?;
    match all.as_slice() {
        [first, to, rest @ ..] if first.is("SUBSCRIBE") && to.is("TO") => {
            subscribed(text, rest).map(Some)
        }
        [first, rest @ ..] if first.is("SUBSCRIBE") => subscribed(text, rest).map(Some),
        _ => Ok(None),
    }
}

fn subscribed(text: &str, rest: &[Token<'_>]) -> Result<SubscribeText> {
    let (query, rest) = match rest {
        [open, ..] if open.is_mark("(") => {
            let close = closing(rest).ok_or_else(|| wrong(rest.last()))?;
            let query = text[open.end()..rest[close].start].trim().to_string();
            (query, &rest[close + 1..])
        }
        [name, rest @ ..] => {
            let name = name.name().ok_or_else(|| wrong(Some(name)))?;
            (format!("SELECT * FROM {}", to_ident(&name)), rest)
        }
        [] => return Err(wrong(None)),
    };
    let mut asked = SubscribeText::of(&query);
    let mut rest = rest;
    while let [word, more @ ..] = rest {
        rest = match (more, word) {
            ([of, mark, more @ ..], word) if word.is("AS") && of.is("OF") => {
                asked.after = Some(number(mark)?);
                more
            }
            ([to, mark, more @ ..], word) if word.is("UP") && to.is("TO") => {
                asked.until = Some(number(mark)?);
                more
            }
            ([open, ..], word) if word.is("WITH") && open.is_mark("(") => {
                let close = closing(more).ok_or_else(|| wrong(more.last()))?;
                for option in more[1..close].split(|token| token.is_mark(",")) {
                    asked.set(option)?;
                }
                &more[close + 1..]
            }
            (_, word) if word.is_mark(";") && more.is_empty() => more,
            ([kind, time, more @ ..], word) if word.is("SINCE") && kind.is("TIMESTAMP") => {
                asked.since = Some(time.string().ok_or_else(|| wrong(Some(time)))?);
                more
            }
            ([time, more @ ..], word) if word.is("SINCE") => {
                asked.since = Some(time.string().ok_or_else(|| wrong(Some(time)))?);
                more
            }
            ([table, more @ ..], word) if word.is("MATCHING") => {
                let (matching, more) = matching(table, more)?;
                asked.matching = Some(matching);
                more
            }
            (_, word) => return Err(wrong(Some(word))),
        };
    }
    Ok(asked)
}

/// Parses `conditions [(id, condition)]`.
fn matching<'t, 's>(
    table: &Token<'_>,
    rest: &'t [Token<'s>],
) -> Result<(MatchingText, &'t [Token<'s>])> {
    let name = |token: &Token<'_>| token.name().ok_or_else(|| wrong(Some(token)));
    let table = name(table)?;
    let [open, ..] = rest else { return Ok((MatchingText::of(table), rest)) };
    if !open.is_mark("(") {
        return Ok((MatchingText::of(table), rest));
    }
    match rest {
        [_, id, comma, condition, close, rest @ ..] if comma.is_mark(",") && close.is_mark(")") => {
            let (id, condition) = (name(id)?, name(condition)?);
            Ok((MatchingText { table, id, condition }, rest))
        }
        _ => Err(Failure::new(
            state::SYNTAX,
            "MATCHING takes a table and two of its columns, as in MATCHING conditions (id, condition)",
        )),
    }
}

impl MatchingText {
    fn of(table: String) -> Self {
        MatchingText { table, id: "id".to_string(), condition: "condition".to_string() }
    }
}

fn number(token: &Token<'_>) -> Result<u64> {
    let text = token.string().unwrap_or_else(|| token.text.to_string());
    text.parse().map_err(|_| Failure::new(state::PARAMETER, format!("'{text}' is not a mark")))
}

/// Formats the statement as SQL.
impl fmt::Display for SubscribeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A comment at the end of the query must not take the parenthesis.
        write!(f, "SUBSCRIBE ({}\n)", self.query)?;
        if let Some(MatchingText { table, id, condition }) = &self.matching {
            let [table, id, condition] = [table, id, condition].map(|name| to_ident(name));
            write!(f, " MATCHING {table} ({id}, {condition})")?;
        }
        write!(f, " WITH (snapshot = {}", self.has_snapshot)?;
        write!(f, ", progress = '{}ms'", self.progress.as_millis())?;
        if let Some(every) = self.every {
            write!(f, ", every = '{}ms'", every.as_millis())?;
        }
        f.write_str(")")?;
        if let Some(after) = self.after {
            write!(f, " AS OF {after}")?;
        }
        if let Some(since) = &self.since {
            write!(f, " SINCE '{}'", since.replace('\'', "''"))?;
        }
        self.until.map_or(Ok(()), |until| write!(f, " UP TO {until}"))
    }
}

impl SubscribeText {
    /// Makes a subscription to a query's new rows, without options.
    pub(crate) fn of(query: &str) -> Self {
        SubscribeText {
            query: query.to_string(),
            has_snapshot: false,
            after: None,
            since: None,
            until: None,
            progress: PROGRESS_TIME,
            every: None,
            matching: None,
        }
    }

    /// Sets an option by its name.
    pub(crate) fn with(&mut self, name: &str, value: &str) -> Result<()> {
        let is_mark = |value: &str| {
            value.parse().map(Some).map_err(|_| {
                Failure::new(state::PARAMETER, format!("{name}: '{value}' is not a mark"))
            })
        };
        match name {
            "as_of" => self.after = is_mark(value)?,
            "since" => self.since = Some(value.to_string()),
            "up_to" => self.until = is_mark(value)?,
            "matching" => {
                let all = tokens(value)?;
                let (table, rest) = all.split_first().ok_or_else(|| wrong(None))?;
                let (matching, rest) = matching(table, rest)?;
                if let Some(token) = rest.first() {
                    return Err(wrong(Some(token)));
                }
                self.matching = Some(matching);
            }
            _ => self.put(name, Some(value).filter(|value| !value.is_empty()))?,
        }
        Ok(())
    }

    fn set(&mut self, option: &[Token<'_>]) -> Result<()> {
        let (name, value) = match option {
            [name] => (name, None),
            [name, value] | [name, Token { kind: Kind::Mark, text: "=", .. }, value] => {
                (name, Some(value.string().unwrap_or_else(|| value.text.to_string())))
            }
            _ => return Err(wrong(option.get(1))),
        };
        self.put(name.text, value.as_deref())
    }

    fn put(&mut self, name: &str, value: Option<&str>) -> Result<()> {
        let time = || {
            let text = value.unwrap_or_default().to_ascii_lowercase();
            milliseconds(&text).filter(|it| *it > 0).map(Duration::from_millis).ok_or_else(|| {
                let said = format!("{name} needs a time, as in {name} = '1s'");
                Failure::new(state::PARAMETER, said)
            })
        };
        match name.to_ascii_lowercase().as_str() {
            "snapshot" => {
                let truth = value.map_or(Some(true), crate::value::truth);
                self.has_snapshot = truth.ok_or_else(|| {
                    Failure::new(state::PARAMETER, "snapshot needs true or false")
                })?;
            }
            "progress" => self.progress = time()?,
            "every" => self.every = Some(time()?.max(EVERY_MIN)),
            other => {
                let said = format!(
                    "SUBSCRIBE has no option '{other}'; there are: snapshot, progress, every"
                );
                return Err(Failure::new(state::PARAMETER, said));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscription_has_its_words_in_any_order() {
        let asked = |text: &str| subscribe_text(text).unwrap().unwrap();
        let plain = asked("subscribe (SELECT ')' FROM t)");
        assert_eq!((plain.query.as_str(), plain.has_snapshot), ("SELECT ')' FROM t", false));
        assert_eq!((plain.after, plain.until, plain.every), (None, None, None));
        for text in [
            "SUBSCRIBE TO (SELECT a FROM t) WITH (snapshot, every = '250ms') AS OF 7 UP TO 9",
            "-- now\nSUBSCRIBE (SELECT a FROM t) UP TO '9' AS OF 7 WITH (SNAPSHOT true, EVERY '250 ms');",
        ] {
            let asked = asked(text);
            assert_eq!((asked.query.as_str(), asked.has_snapshot), ("SELECT a FROM t", true));
            assert_eq!((asked.after, asked.until), (Some(7), Some(9)));
            assert_eq!(asked.every, Some(Duration::from_millis(250)));
            assert_eq!(subscribe_text(&asked.to_string()), Ok(Some(asked)));
        }
        let since = asked("SUBSCRIBE t SINCE TIMESTAMP '2026-01-31 10:00:00'");
        assert_eq!(since.since.as_deref(), Some("2026-01-31 10:00:00"));
        assert_eq!(asked(&since.to_string()).since, since.since);
        assert_eq!(asked("SUBSCRIBE \"T t\"").query, "SELECT * FROM \"T t\"");
    }

    #[test]
    fn conditions_have_a_table_and_two_columns() {
        let asked = |text: &str| subscribe_text(text).unwrap().unwrap();
        let named = |table: &str, id: &str, condition: &str| {
            let [table, id, condition] = [table, id, condition].map(str::to_string);
            Some(MatchingText { table, id, condition })
        };
        for (text, expected) in [
            ("SUBSCRIBE t MATCHING Rules", named("rules", "id", "condition")),
            ("SUBSCRIBE t MATCHING rules;", named("rules", "id", "condition")),
            (
                "SUBSCRIBE t MATCHING \"R(1)\" (\"Number\", text) UP TO 9",
                named("R(1)", "Number", "text"),
            ),
            (
                "SUBSCRIBE (SELECT 1) WITH (snapshot) MATCHING r AS OF 7",
                named("r", "id", "condition"),
            ),
            ("SUBSCRIBE t", None),
        ] {
            let asked = asked(text);
            assert_eq!(asked.matching, expected, "{text}");
            assert_eq!(subscribe_text(&asked.to_string()), Ok(Some(asked)));
        }
        let mut asked = SubscribeText::of("SELECT 1");
        asked.with("matching", "r (a, b)").unwrap();
        assert_eq!(asked.matching, named("r", "a", "b"));
        assert!(asked.with("matching", "r (a, b) x").is_err());
        for text in
            ["MATCHING", "MATCHING (a, b)", "MATCHING r ()", "MATCHING r (a)", "MATCHING r (a, b"]
        {
            assert!(subscribe_text(&format!("SUBSCRIBE t {text}")).is_err(), "{text}");
        }
    }

    #[test]
    fn other_statements_are_ignored_or_refused() {
        for text in ["SELECT 1", "SUBSCRIBED", "", "-- SUBSCRIBE", "/* SUBSCRIBE */ SELECT 1"] {
            assert_eq!(subscribe_text(text).unwrap(), None, "{text}");
        }
        for text in [
            "SUBSCRIBE",
            "SUBSCRIBE (SELECT 1",
            "SUBSCRIBE (SELECT 1) AS OF",
            "SUBSCRIBE (SELECT 1) AS OF x",
            "SUBSCRIBE (SELECT 1) WITH (fast)",
            "SUBSCRIBE (SELECT 1) WITH (every = 'soon')",
            "SUBSCRIBE (SELECT 1) WITH (snapshot = maybe)",
            "SUBSCRIBE (SELECT 1) SINCE 2026",
        ] {
            assert!(subscribe_text(text).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(rest in "[a-zSUBCRIEWTHOF(),.;='\" 0-9]*") {
            let _ = subscribe_text(&format!("SUBSCRIBE {rest}"));
        }
    }
}
