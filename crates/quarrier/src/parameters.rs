//! Parameters of a statement: values for the placeholders `?`, or `$1`, `$2` and so on.
//!
//! A value becomes a literal, so a string from any origin can be part of a statement without changing
//! its meaning.

use std::fmt::Write;

use crate::{Error, Result};

/// The value of a placeholder.
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    /// NULL.
    Null,
    /// TRUE or FALSE.
    Boolean(bool),
    /// An exact number: digits with an optional sign and decimal point.
    Number(String),
    /// A binary float.
    Float(f64),
    /// A string.
    Text(String),
    /// A date such as `2026-11-26`.
    Date(String),
    /// A date and a time of day without a zone, such as `2026-11-26 07:30:00.25`.
    Timestamp(String),
}

/// Replaces the placeholders of a statement by `values`. Each `?` takes the next value; every `$1`
/// takes the first. Strings, quoted names and comments have no placeholders.
///
/// # Errors
/// [`Error::Request`] if the number of values differs from the number of placeholders, both kinds of
/// placeholders occur, or a float is not finite.
pub fn bind(statement: &str, values: &[Parameter]) -> Result<String> {
    let mut bound = String::with_capacity(statement.len());
    let mut rest = statement;
    let (mut asked, mut numbered) = (0, 0);
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '\'' | '"' => quoted(rest, first),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => comment(rest),
            '?' => {
                asked += 1;
                write_literal(&mut bound, values, asked)?;
                rest = &rest[1..];
                continue;
            }
            '$' => {
                let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
                if let Ok(number) = rest[1..=digits].parse::<usize>() {
                    numbered = numbered.max(number);
                    write_literal(&mut bound, values, number)?;
                    rest = &rest[1 + digits..];
                    continue;
                }
                1
            }
            other => other.len_utf8(),
        };
        bound.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    if asked > 0 && numbered > 0 {
        return Err(Error::Request(
            "a statement has '?' or '$1' for its parameters, not both".into(),
        ));
    }
    let (places, given) = (asked.max(numbered), values.len());
    if places < given {
        let reason = format!("the statement has places for {places} of the {given} parameters");
        return Err(Error::Request(reason));
    }
    Ok(bound)
}

/// Returns the length up to the closing quote; all of `text` if there is none.
fn quoted(text: &str, quote: char) -> usize {
    // A doubled quote ends one part and begins another.
    text[1..].find(quote).map_or(text.len(), |end| end + 2)
}

/// Returns the length of a comment, which may contain nested comments; all of `text` if it does not
/// end.
fn comment(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0_usize, 0);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// Writes the value of a placeholder, numbered from 1. Spaces separate it from its neighbours: `-`
/// before -5 would begin a comment.
fn write_literal(bound: &mut String, values: &[Parameter], place: usize) -> Result<()> {
    let value = place.checked_sub(1).and_then(|index| values.get(index));
    let value = value.ok_or_else(|| {
        Error::Request(format!(
            "no value for parameter {place} of the statement; {} given",
            values.len()
        ))
    })?;
    let written = match value {
        Parameter::Null => write!(bound, " NULL "),
        Parameter::Boolean(true) => write!(bound, " TRUE "),
        Parameter::Boolean(false) => write!(bound, " FALSE "),
        Parameter::Number(digits) => write!(bound, " {digits} "),
        Parameter::Float(float) if float.is_finite() => write!(bound, " {float:E} "),
        Parameter::Float(float) => {
            return Err(Error::Request(format!("parameter {place} is {float}, not a number")));
        }
        Parameter::Text(text) => write!(bound, " '{}' ", text.replace('\'', "''")),
        Parameter::Date(date) => write!(bound, " DATE '{}' ", date.replace('\'', "''")),
        Parameter::Timestamp(time) => write!(bound, " TIMESTAMP '{}' ", time.replace('\'', "''")),
    };
    // Writing to memory does not fail.
    let _ = written;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(statement: &str, values: &[Parameter], expected: &str) {
        assert_eq!(bind(statement, values).unwrap(), expected);
    }

    fn text(value: &str) -> Parameter {
        Parameter::Text(value.to_string())
    }

    fn number(value: &str) -> Parameter {
        Parameter::Number(value.to_string())
    }

    #[test]
    fn values_stand_in_their_places() {
        check("a = ? AND b = ?", &[number("5"), text("x")], "a =  5  AND b =  'x' ");
        check(
            "a = $2 OR $2 = $1",
            &[Parameter::Null, number("1.50")],
            "a =  1.50  OR  1.50  =  NULL ",
        );
        let values = [Parameter::Float(0.5), Parameter::Boolean(true)];
        check("?,?", &values, " 5E-1 , TRUE ");
        let values = [
            Parameter::Date("2026-11-26".into()),
            Parameter::Timestamp("2026-11-26 07:30:00".into()),
        ];
        check("?,?", &values, " DATE '2026-11-26' , TIMESTAMP '2026-11-26 07:30:00' ");
    }

    #[test]
    fn a_string_ends_where_its_value_ends() {
        check("a = ?", &[text("x' OR 'y' = 'y")], "a =  'x'' OR ''y'' = ''y' ");
        check("a = ?", &[text("\\'; --")], "a =  '\\''; --' ");
    }

    #[test]
    fn a_sign_before_a_negative_number_begins_no_comment() {
        check("a-?", &[number("-5")], "a- -5 ");
    }

    #[test]
    fn strings_names_and_comments_have_no_places() {
        for same in [
            "'?'",
            "'it''s ?'",
            "\"a?\"\"?\"",
            "-- ?\n1",
            "/* ? /* ? */ ? */",
            "'?",
            "/* ?",
            "/*/",
            "a$b",
            "$",
        ] {
            check(same, &[], same);
        }
        check("'?' = ? -- ?", &[text("?")], "'?' =  '?'  -- ?");
    }

    #[test]
    fn as_many_values_as_places_are_given() {
        for (statement, values) in
            [("?", 0), ("?", 2), ("$3", 2), ("$1", 2), ("1", 1), ("$0", 1), ("? = $1", 1)]
        {
            let values = vec![Parameter::Null; values];
            assert!(matches!(bind(statement, &values), Err(Error::Request(_))), "{statement}");
        }
        let error = bind("? = ?", &[Parameter::Null]).unwrap_err();
        assert!(error.to_string().contains("no value for parameter 2"), "{error}");
    }

    #[test]
    fn a_float_that_is_no_number_is_refused() {
        for float in [f64::NAN, f64::INFINITY] {
            assert!(bind("?", &[Parameter::Float(float)]).is_err());
        }
    }
}
