//! Statements about the connection: transactions, settings, cursors, COPY to and from the client.

use std::time::Duration;

use super::copy::{self, CopyOptions};
use super::milliseconds;
use super::tokens::{Kind, Token, to_ident, tokens};
use crate::failure::{Failure, Result, state};

/// A statement about the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Utility {
    Begin,
    Commit,
    Rollback,
    /// SAVEPOINT and RELEASE, which have no effect.
    Savepoint(&'static str),
    /// ROLLBACK TO.
    RollbackTo,
    Set {
        name: String,
        value: String,
    },
    Show(String),
    Reset(Option<String>),
    Discard(String),
    Deallocate(Option<String>),
    Declare {
        name: String,
        is_held: bool,
        query: String,
    },
    Fetch {
        name: String,
        count: Count,
        is_move: bool,
        /// Maximum time to wait for the first row of a subscription.
        patience: Option<Duration>,
    },
    Close(Option<String>),
    CopyOut {
        query: String,
        options: CopyOptions,
    },
    CopyIn {
        table: String,
        columns: Vec<String>,
        options: CopyOptions,
    },
    /// LISTEN, UNLISTEN and NOTIFY, which have no effect.
    Quiet(&'static str),
}

/// The number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    Rows(u64),
    All,
}

pub(super) fn wrong(near: Option<&Token<'_>>) -> Failure {
    let said = match near {
        Some(token) => format!("syntax error at or near \"{}\"", token.text),
        None => "syntax error at end of input".to_string(),
    };
    Failure::new(state::SYNTAX, said)
}

/// Parses a statement about the connection; `None` for other statements.
///
/// # Errors
/// If it begins as a utility statement and is invalid.
pub(crate) fn utility(text: &str) -> Result<Option<Utility>> {
    // Statements with other first words are not tokenized completely.
    const FIRST: &[&str] = &[
        "BEGIN",
        "START",
        "COMMIT",
        "END",
        "ROLLBACK",
        "ABORT",
        "SAVEPOINT",
        "RELEASE",
        "SET",
        "SHOW",
        "RESET",
        "DISCARD",
        "DEALLOCATE",
        "DECLARE",
        "FETCH",
        "MOVE",
        "CLOSE",
        "COPY",
        "LISTEN",
        "UNLISTEN",
        "NOTIFY",
    ];
    let head = text.trim_start();
    let word = head.split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default();
    let begins_so = FIRST.iter().any(|first| first.eq_ignore_ascii_case(word));
    let is_comment = head.starts_with("--") || head.starts_with("/*");
    if !begins_so && !is_comment {
        return Ok(None);
    }
    let all = tokens(text)?;
    let Some((first, rest)) = all.split_first() else { return Ok(None) };
    let verb = first.text.to_ascii_uppercase();
    if first.kind != Kind::Word || !FIRST.contains(&verb.as_str()) {
        return Ok(None);
    }
    Ok(Some(match verb.as_str() {
        "BEGIN" | "START" => Utility::Begin,
        "COMMIT" | "END" => Utility::Commit,
        "ROLLBACK" | "ABORT" => match rest.iter().any(|token| token.is("TO")) {
            true => Utility::RollbackTo,
            false => Utility::Rollback,
        },
        "SAVEPOINT" => Utility::Savepoint("SAVEPOINT"),
        "RELEASE" => Utility::Savepoint("RELEASE"),
        "SET" => set(text, rest)?,
        "SHOW" => match show(rest)? {
            Some(utility) => utility,
            None => return Ok(None),
        },
        "RESET" => match rest {
            [all] if all.is("ALL") => Utility::Reset(None),
            [name, ..] => Utility::Reset(Some(dotted(rest).ok_or_else(|| wrong(Some(name)))?)),
            [] => return Err(wrong(None)),
        },
        "DISCARD" => {
            Utility::Discard(rest.first().ok_or_else(|| wrong(None))?.text.to_ascii_uppercase())
        }
        "DEALLOCATE" => {
            let rest = after(rest, "PREPARE");
            Utility::Deallocate(name_or_all(rest)?)
        }
        "DECLARE" => declare(text, rest)?,
        "FETCH" => fetch(rest, false)?,
        "MOVE" => fetch(rest, true)?,
        "CLOSE" => Utility::Close(name_or_all(rest)?),
        "COPY" => match copied(text, rest)? {
            Some(utility) => utility,
            None => return Ok(None),
        },
        "LISTEN" => Utility::Quiet("LISTEN"),
        "UNLISTEN" => Utility::Quiet("UNLISTEN"),
        _ => Utility::Quiet("NOTIFY"),
    }))
}

/// Returns the tokens after an optional word.
fn after<'t, 'a>(tokens: &'t [Token<'a>], word: &str) -> &'t [Token<'a>] {
    match tokens {
        [first, rest @ ..] if first.is(word) => rest,
        all => all,
    }
}

fn name_or_all(tokens: &[Token<'_>]) -> Result<Option<String>> {
    match tokens {
        [all] if all.is("ALL") => Ok(None),
        [name] => name.name().ok_or_else(|| wrong(Some(name))).map(Some),
        [_, more, ..] => Err(wrong(Some(more))),
        [] => Err(wrong(None)),
    }
}

/// Parses a qualified name up to the last token.
fn dotted(tokens: &[Token<'_>]) -> Option<String> {
    let parts = tokens.split(|token| token.is_mark("."));
    let names = parts.map(|part| match part {
        [one] => one.name(),
        _ => None,
    });
    Some(names.collect::<Option<Vec<_>>>()?.join("."))
}

fn set(text: &str, rest: &[Token<'_>]) -> Result<Utility> {
    let rest = after(after(rest, "SESSION"), "LOCAL");
    let quiet = |name: &str| Utility::Set { name: name.to_string(), value: String::new() };
    match rest {
        [first, ..] if first.is("CHARACTERISTICS") || first.is("TRANSACTION") => {
            return Ok(quiet("transaction"));
        }
        [time, zone, value @ ..] if time.is("TIME") && zone.is("ZONE") => {
            return Ok(Utility::Set { name: "timezone".to_string(), value: joined(text, value) });
        }
        [names, value @ ..] if names.is("NAMES") => {
            let value = joined(text, value);
            return Ok(Utility::Set { name: "client_encoding".to_string(), value });
        }
        [role, ..] if role.is("ROLE") || role.is("AUTHORIZATION") => return Ok(quiet("role")),
        _ => {}
    }
    let equal = rest.iter().position(|token| token.is_mark("=") || token.is("TO"));
    let Some(at) = equal else { return Err(wrong(rest.last())) };
    let name = dotted(&rest[..at]).ok_or_else(|| wrong(rest.first()))?;
    let value = &rest[at + 1..];
    if value.is_empty() {
        return Err(wrong(None));
    }
    Ok(Utility::Set { name, value: joined(text, value) })
}

/// Returns the value of a setting: strings without their quotes, joined by commas.
fn joined(text: &str, tokens: &[Token<'_>]) -> String {
    let parts = tokens.split(|token| token.is_mark(","));
    let values = parts.map(|part| match part {
        [one] => one.string().or_else(|| one.name()).unwrap_or_else(|| one.text.to_string()),
        [first, .., last] => text[first.start..last.end()].to_string(),
        [] => String::new(),
    });
    values.collect::<Vec<_>>().join(", ")
}

fn show(rest: &[Token<'_>]) -> Result<Option<Utility>> {
    Ok(match rest {
        [] => return Err(wrong(None)),
        [first, ..]
            if ["TABLES", "COLUMNS", "FUNCTIONS", "CREATE"].iter().any(|word| first.is(word)) =>
        {
            None
        }
        [transaction, ..] if transaction.is("TRANSACTION") => {
            Some(Utility::Show("transaction_isolation".to_string()))
        }
        [time, zone] if time.is("TIME") && zone.is("ZONE") => {
            Some(Utility::Show("timezone".to_string()))
        }
        all => Some(Utility::Show(dotted(all).ok_or_else(|| wrong(all.last()))?)),
    })
}

fn declare(text: &str, rest: &[Token<'_>]) -> Result<Utility> {
    let [name, rest @ ..] = rest else { return Err(wrong(None)) };
    let declared = name.name().ok_or_else(|| wrong(Some(name)))?;
    let at = rest.iter().position(|token| token.is("FOR")).ok_or_else(|| wrong(rest.last()))?;
    let words = &rest[..at];
    let is_held = words.windows(2).any(|pair| pair[0].is("WITH") && pair[1].is("HOLD"));
    let scrolls = words.windows(2).any(|pair| pair[0].is("SCROLL") && !pair[0].is("NO"))
        && !words.iter().any(|word| word.is("NO"));
    if scrolls {
        let said = "cursors only move forward; omit SCROLL";
        return Err(Failure::new(state::UNSUPPORTED, said));
    }
    let query = text[rest[at].end()..].trim().to_string();
    Ok(Utility::Declare { name: declared, is_held, query })
}

fn fetch(rest: &[Token<'_>], is_move: bool) -> Result<Utility> {
    let backwards = ["PRIOR", "FIRST", "LAST", "ABSOLUTE", "RELATIVE", "BACKWARD"];
    if let [first, ..] = rest
        && backwards.iter().any(|word| first.is(word))
    {
        return Err(Failure::new(state::UNSUPPORTED, "cursors only move forward, row by row"));
    }
    let rest = match rest {
        [next, rest @ ..] if next.is("NEXT") => return fetched(rest, Count::Rows(1), is_move),
        other => after(other, "FORWARD"),
    };
    match rest {
        [all, rest @ ..] if all.is("ALL") => fetched(rest, Count::All, is_move),
        [number, rest @ ..] if number.kind == Kind::Number => {
            let rows = number.text.parse().map_err(|_| wrong(Some(number)))?;
            fetched(rest, Count::Rows(rows), is_move)
        }
        rest => fetched(rest, Count::Rows(1), is_move),
    }
}

fn fetched(rest: &[Token<'_>], count: Count, is_move: bool) -> Result<Utility> {
    let (name, rest) = match after(after(rest, "FROM"), "IN") {
        [name, rest @ ..] => (name.name().ok_or_else(|| wrong(Some(name)))?, rest),
        [] => return Err(wrong(None)),
    };
    let patience = match rest {
        [] => None,
        [with, open, timeout, equal, time, close]
            if with.is("WITH")
                && open.is_mark("(")
                && timeout.is("TIMEOUT")
                && equal.is_mark("=")
                && close.is_mark(")") =>
        {
            let text = time.string().unwrap_or_else(|| time.text.to_string());
            let time = milliseconds(&text.to_ascii_lowercase()).ok_or_else(|| {
                Failure::new(state::PARAMETER, "timeout needs a time, as in timeout = '1s'")
            })?;
            Some(Duration::from_millis(time))
        }
        [more, ..] => return Err(wrong(Some(more))),
    };
    Ok(Utility::Fetch { name, count, is_move, patience })
}

/// Parses a COPY to or from the client; `None` if it is to or from a file.
fn copied(text: &str, rest: &[Token<'_>]) -> Result<Option<Utility>> {
    let rest = after(rest, "BINARY");
    match rest {
        [open, ..] if open.is_mark("(") => {
            let close = closing(rest).ok_or_else(|| wrong(rest.last()))?;
            let [to, target, options @ ..] = &rest[close + 1..] else { return Ok(None) };
            if !(to.is("TO") && target.is("STDOUT")) {
                return Ok(None);
            }
            let query = text[open.end()..rest[close].start].trim().to_string();
            Ok(Some(Utility::CopyOut { query, options: copy::options(options)? }))
        }
        _ => copied_table(text, rest),
    }
}

fn copied_table(text: &str, rest: &[Token<'_>]) -> Result<Option<Utility>> {
    let is_end = |token: &Token<'_>| token.is_mark("(") || token.is("TO") || token.is("FROM");
    let at = rest.iter().position(is_end).ok_or_else(|| wrong(rest.last()))?;
    let Some(first) = rest[..at].first() else { return Err(wrong(rest.first())) };
    let Some(table) = rest[..at].rsplit(|token| token.is_mark(".")).next().and_then(dotted) else {
        // The engine handles `COPY 'file' TO …`.
        return Ok(None);
    };
    let shown = &text[first.start..rest[at - 1].end()];
    let (columns, tail) = if rest[at].is_mark("(") {
        let close = closing(&rest[at..]).ok_or_else(|| wrong(rest.last()))? + at;
        let names = rest[at + 1..close].split(|token| token.is_mark(","));
        let names = names.map(|part| match part {
            [one] => one.name().ok_or_else(|| wrong(Some(one))),
            other => Err(wrong(other.first())),
        });
        (names.collect::<Result<Vec<_>>>()?, &rest[close + 1..])
    } else {
        (Vec::new(), &rest[at..])
    };
    match tail {
        [to, target, options @ ..] if to.is("TO") && target.is("STDOUT") => {
            let listed: Vec<String> = columns.iter().map(|name| to_ident(name)).collect();
            let listed = if listed.is_empty() { "*".to_string() } else { listed.join(", ") };
            let query = format!("SELECT {listed} FROM {shown}");
            Ok(Some(Utility::CopyOut { query, options: copy::options(options)? }))
        }
        [from, source, options @ ..] if from.is("FROM") && source.is("STDIN") => {
            Ok(Some(Utility::CopyIn { table, columns, options: copy::options(options)? }))
        }
        _ => Ok(None),
    }
}

/// Returns the index of the parenthesis that closes the first one.
pub(super) fn closing(tokens: &[Token<'_>]) -> Option<usize> {
    let mut depth = 0_usize;
    for (place, token) in tokens.iter().enumerate() {
        if token.is_mark("(") {
            depth += 1;
        } else if token.is_mark(")") {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(place);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::CopyFormat;
    use super::*;

    fn is(text: &str) -> Utility {
        utility(text).unwrap().unwrap()
    }

    #[test]
    fn other_statements_are_left_alone() {
        for text in
            ["SELECT 1", "/* a */ SELECT 1", "SHOW TABLES", "COPY (SELECT 1) TO 'a.csv'", ""]
        {
            assert_eq!(utility(text), Ok(None), "{text}");
        }
    }

    #[test]
    fn settings_have_names_and_values() {
        let set = |name: &str, value: &str| Utility::Set { name: name.into(), value: value.into() };
        assert_eq!(is("SET x.y = 'a', b"), set("x.y", "a, b"));
        assert_eq!(is("set session DateStyle to 'ISO'"), set("datestyle", "ISO"));
        assert_eq!(is("SET TIME ZONE 'UTC'"), set("timezone", "UTC"));
        assert_eq!(is("SET statement_timeout = 10"), set("statement_timeout", "10"));
        assert!(utility("SET a").is_err() && utility("SET a =").is_err());
    }

    #[test]
    fn cursors_are_declared_and_fetched() {
        let declared = is("DECLARE \"C 1\" NO SCROLL CURSOR WITH HOLD FOR SELECT ';'");
        let query = "SELECT ';'".to_string();
        assert_eq!(declared, Utility::Declare { name: "C 1".into(), is_held: true, query });
        let fetched = |name: &str, count, is_move| Utility::Fetch {
            name: name.into(),
            count,
            is_move,
            patience: None,
        };
        assert_eq!(is("FETCH FORWARD 100 FROM \"C 1\""), fetched("C 1", Count::Rows(100), false));
        assert_eq!(is("FETCH ALL IN c"), fetched("c", Count::All, false));
        let Utility::Fetch { patience, .. } = is("FETCH 9 c WITH (timeout = '250ms')") else {
            unreachable!()
        };
        assert_eq!(patience, Some(Duration::from_millis(250)));
        assert_eq!(is("MOVE NEXT c"), fetched("c", Count::Rows(1), true));
        assert_eq!(utility("FETCH PRIOR c").unwrap_err().state, state::UNSUPPORTED);
    }

    #[test]
    fn copies_have_options_in_both_syntaxes() {
        let Utility::CopyOut { query, options } = is("COPY (SELECT (1)) TO STDOUT CSV HEADER")
        else {
            unreachable!()
        };
        assert_eq!((query.as_str(), options.format), ("SELECT (1)", CopyFormat::Csv));
        assert!(options.has_header && options.null.is_empty() && options.delimiter == b',');
        let text =
            "COPY public.\"T t\" (a, \"B\") FROM STDIN WITH (FORMAT text, NULL 'x', DELIMITER '|')";
        let Utility::CopyIn { table, columns, options } = is(text) else { unreachable!() };
        assert_eq!((table.as_str(), columns), ("T t", vec!["a".to_string(), "B".to_string()]));
        assert_eq!((options.null.as_str(), options.delimiter), ("x", b'|'));
        let Utility::CopyOut { query, .. } = is("copy t(a) to stdout") else { unreachable!() };
        assert_eq!(query, "SELECT \"a\" FROM t");
        assert!(utility("COPY t FROM STDIN (DELIMITER 'ab')").is_err());
        assert!(utility("COPY t FROM STDIN (SHOW 1)").is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(verb in 0_usize..8, rest in "[a-z(),.;='\" $A-Z0-9]*") {
            let verbs = ["COPY", "SET", "FETCH", "DECLARE", "SHOW", "RESET", "CLOSE", "COPY ("];
            let _ = utility(&format!("{} {rest}", verbs[verb]));
        }
    }
}
