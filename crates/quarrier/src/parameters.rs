//! Parameters of a statement: values for the placeholders `?`, or `$1`, `$2` and so on.
//!
//! A value becomes a literal, so a string from any origin can be part of a statement without changing
//! its meaning.

use std::fmt::Write;
use std::ops::Range;

use crate::{Error, Result};

/// The maximum number of parameters: PostgreSQL's protocol counts them in 16 bits.
const PARAMETERS_MAX: usize = 65_535;

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
    /// A time of day such as `07:30:00.25`.
    Time(String),
    /// A date and a time of day without a zone, such as `2026-11-26 07:30:00.25`.
    Timestamp(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Several values of one kind.
    List(Vec<Parameter>),
}

/// Replaces the placeholders of a statement by `values`. Each `?` takes the next value; every `$1`
/// takes the first. Strings, names and comments have no placeholders.
///
/// # Errors
/// [`Error::Request`] if the number of values differs from the number of placeholders, or both kinds of
/// placeholders occur.
pub fn bind(statement: &str, values: &[Parameter]) -> Result<String> {
    let (mut asked, mut numbered) = (0, 0);
    let bound = replace_placeholders(statement, |placeholder| {
        let number = match placeholder {
            Placeholder::Next => {
                asked += 1;
                asked
            }
            Placeholder::Numbered(number) => {
                numbered = numbered.max(number);
                number
            }
        };
        let value = values.get(number - 1).ok_or_else(|| {
            Error::Request(format!(
                "no value for parameter {number} of the statement; {} given",
                values.len()
            ))
        })?;
        Ok(Some(literal(value)))
    })?;
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

/// Returns the number of numbered parameters of a statement: the greatest number among them. `?` does
/// not count.
///
/// # Errors
/// [`Error::Request`] if a number is 0 or too large.
pub fn numbered(statement: &str) -> Result<usize> {
    let mut greatest = 0;
    for found in Placeholders::of(statement) {
        if let (_, Placeholder::Numbered(number)) = found? {
            greatest = greatest.max(number);
        }
    }
    Ok(greatest)
}

/// Replaces the numbered parameters of a statement, or of a part of it, by `values`. Parameters without
/// a value stay, and so does every `?`.
///
/// # Errors
/// The errors of [`numbered`].
pub fn bind_numbered(part: &str, values: &[Parameter]) -> Result<String> {
    replace_numbered(part, |number| Ok(values.get(number - 1).map(literal)))
}

/// Replaces the numbered parameters of a statement, or of a part of it, by the results of `of`, which
/// gets their numbers, from 1. A parameter stays if `of` returns `None`.
///
/// # Errors
/// The errors of [`numbered`] and of `of`.
pub fn replace_numbered(
    part: &str,
    mut of: impl FnMut(usize) -> Result<Option<String>>,
) -> Result<String> {
    replace_placeholders(part, |placeholder| match placeholder {
        Placeholder::Next => Ok(None),
        Placeholder::Numbered(number) => of(number),
    })
}

/// A placeholder in a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Placeholder {
    /// `?`: the next value.
    Next,
    /// `$1`: the value of this number, from 1.
    Numbered(usize),
}

/// Replaces the placeholders of `text` by the results of `of`. A placeholder stays if `of` returns
/// `None`.
fn replace_placeholders(
    text: &str,
    mut of: impl FnMut(Placeholder) -> Result<Option<String>>,
) -> Result<String> {
    let (mut out, mut done) = (String::with_capacity(text.len()), 0);
    for found in Placeholders::of(text) {
        let (range, placeholder) = found?;
        if let Some(instead) = of(placeholder)? {
            out.push_str(&text[done..range.start]);
            out.push_str(&instead);
            done = range.end;
        }
    }
    out.push_str(&text[done..]);
    Ok(out)
}

/// The placeholders in a text, in order. Strings and comments without an end have none.
struct Placeholders<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Placeholders<'t> {
    fn of(text: &'t str) -> Self {
        Placeholders { text, at: 0 }
    }
}

impl Iterator for Placeholders<'_> {
    type Item = Result<(Range<usize>, Placeholder)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (start, rest) = (self.at, &self.text[self.at..]);
            let (bytes, placeholder) = match rest.chars().next()? {
                quote @ ('\'' | '"') => (quoted(rest, quote), None),
                'e' | 'E' if rest[1..].starts_with('\'') => (escaped(rest), None),
                '-' if rest.starts_with("--") => (rest.find('\n').unwrap_or(rest.len()), None),
                '/' if rest.starts_with("/*") => (comment(rest), None),
                '?' => (1, Some(Ok(Placeholder::Next))),
                '$' => dollar(rest),
                // A `$` within a name or number begins no placeholder.
                first if is_in_name(first) || first.is_ascii_digit() => (name(rest), None),
                other => (other.len_utf8(), None),
            };
            self.at += bytes;
            if let Some(placeholder) = placeholder {
                return Some(placeholder.map(|placeholder| (start..self.at, placeholder)));
            }
        }
    }
}

/// Whether a name can begin with this character.
fn is_in_name(character: char) -> bool {
    character.is_ascii_alphabetic() || character == '_' || !character.is_ascii()
}

/// Returns the length of the longest prefix of `text` whose characters all satisfy `is_one`.
fn length(text: &str, is_one: impl Fn(char) -> bool) -> usize {
    text.find(|character| !is_one(character)).unwrap_or(text.len())
}

/// Returns the length of a name or number. Only a name can contain `$`.
fn name(text: &str) -> usize {
    match text.starts_with(is_in_name) {
        true => length(text, |one| is_in_name(one) || one.is_ascii_digit() || one == '$'),
        false => length(text, |one| one.is_ascii_alphanumeric() || one == '.'),
    }
}

/// Returns the length of a token that begins with `$`, and its placeholder if it is one. Otherwise it is
/// a dollar-quoted string (`$tag$ … $tag$`), or only the sign.
fn dollar(text: &str) -> (usize, Option<Result<Placeholder>>) {
    let tag = length(&text[1..], |one| is_in_name(one) || one.is_ascii_digit());
    let (named, after) = text[1..].split_at(tag);
    if named.starts_with(|first: char| first.is_ascii_digit()) {
        let number = named.parse().ok().filter(|number| (1..=PARAMETERS_MAX).contains(number));
        let missing = || Error::Request(format!("there is no parameter ${named}"));
        return (1 + tag, Some(number.map(Placeholder::Numbered).ok_or_else(missing)));
    }
    if !after.starts_with('$') {
        return (1, None);
    }
    let (tag, inner) = text.split_at(tag + 2);
    let end = inner.find(tag).map_or(text.len(), |end| tag.len() + end + tag.len());
    (end, None)
}

/// Returns the length up to the closing quote; all of `text` if there is none.
fn quoted(text: &str, quote: char) -> usize {
    // A doubled quote ends one part and begins another.
    text[1..].find(quote).map_or(text.len(), |end| end + 2)
}

/// Returns the length of `E'…'`, in which a backslash escapes a quote; all of `text` if it does not end.
fn escaped(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 2;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'\'' if bytes.get(at + 1) != Some(&b'\'') => return at + 1,
            b'\'' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
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

/// Formats a value as SQL. Spaces separate it from its neighbours, because `'a''b'` is one string;
/// negative numbers are in parentheses, because `-` before -5 would begin a comment.
fn literal(value: &Parameter) -> String {
    let mut text = String::from(" ");
    // Writing to memory does not fail.
    let _ = write_literal(&mut text, value);
    text.push(' ');
    text
}

fn write_literal(out: &mut String, value: &Parameter) -> std::fmt::Result {
    let string = |text: &str| text.replace('\'', "''");
    match value {
        Parameter::Null => write!(out, "NULL"),
        Parameter::Boolean(true) => write!(out, "TRUE"),
        Parameter::Boolean(false) => write!(out, "FALSE"),
        Parameter::Number(digits) if digits.starts_with('-') => write!(out, "({digits})"),
        Parameter::Number(digits) => write!(out, "{digits}"),
        // SQL has no literals for them. The sign of NaN is lost, since no comparison depends on it.
        Parameter::Float(float) if float.is_nan() => write!(out, "CAST('NaN' AS DOUBLE PRECISION)"),
        Parameter::Float(float) if float.is_infinite() => {
            let sign = if float.is_sign_negative() { "-" } else { "" };
            write!(out, "CAST('{sign}Infinity' AS DOUBLE PRECISION)")
        }
        Parameter::Float(float) if float.is_sign_negative() => write!(out, "({float:E})"),
        Parameter::Float(float) => write!(out, "{float:E}"),
        Parameter::Text(text) => write!(out, "'{}'", string(text)),
        Parameter::Date(date) => write!(out, "DATE '{}'", string(date)),
        Parameter::Time(time) => write!(out, "TIME '{}'", string(time)),
        Parameter::Timestamp(time) => write!(out, "TIMESTAMP '{}'", string(time)),
        Parameter::Bytes(bytes) => write!(out, "X'{}'", quarrier_core::hex::encode(bytes)),
        Parameter::List(values) => {
            out.push_str("ARRAY[");
            for (index, value) in values.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write_literal(out, value)?;
            }
            write!(out, "]")
        }
    }
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
        let list = Parameter::List(vec![number("1"), Parameter::Null, number("-2")]);
        let values = [Parameter::Time("07:30:00".into()), Parameter::Bytes(vec![0, 255]), list];
        check("?,?,?", &values, " TIME '07:30:00' , X'00ff' , ARRAY[1, NULL, (-2)] ");
    }

    #[test]
    fn a_string_ends_where_its_value_ends() {
        check("a = ?", &[text("x' OR 'y' = 'y")], "a =  'x'' OR ''y'' = ''y' ");
        check("a = ?", &[text("\\'; --")], "a =  '\\''; --' ");
    }

    #[test]
    fn a_sign_before_a_negative_number_begins_no_comment() {
        check("a-?", &[number("-5")], "a- (-5) ");
        check("a-?", &[Parameter::Float(-0.5)], "a- (-5E-1) ");
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
            "a$1",
            "_$1",
            "\u{e4}$1",
            "$",
            "$$ ? $1 $$",
            "$tag$ ? $$ $1 $tag$",
            "$$ ?",
            "E'it\\'s ?'",
            "e'it''s ? \\\\'",
            "E'?",
            "E'\\",
        ] {
            check(same, &[], same);
        }
        check("'?' = ? -- ?", &[text("?")], "'?' =  '?'  -- ?");
        check("E'\\\\' = ?", &[text("x")], "E'\\\\' =  'x' ");
        check("$a$?$a$ = $1::text", &[text("x")], "$a$?$a$ =  'x' ::text");
        check("1.5$1", &[number("2")], "1.5 2 ");
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
    fn numbered_parameters_can_be_replaced_alone() {
        let statement = "SELECT $1, '$2', \"$3\", $$ $4 $$ -- $5\n, a$6 + $12, ?";
        assert_eq!(numbered(statement).unwrap(), 12);
        assert_eq!(numbered("?").unwrap(), 0);
        let of = |number: usize| Ok(Some(format!("<{number}>")));
        assert_eq!(
            replace_numbered(statement, of).unwrap(),
            "SELECT <1>, '$2', \"$3\", $$ $4 $$ -- $5\n, a$6 + <12>, ?"
        );
        let values = [number("1"), number("2"), number("3")];
        assert_eq!(bind_numbered("$2 = $4 ?", &values).unwrap(), " 2  = $4 ?");
    }

    #[test]
    fn invalid_parameter_numbers_are_refused_by_all_functions() {
        for (statement, name) in [("$0", "$0"), ("$70000", "$70000"), ("$1a", "$1a")] {
            let expected = format!("there is no parameter {name}");
            let values = [Parameter::Null];
            let bound = [bind(statement, &values), bind_numbered(statement, &values)];
            for error in bound.map(Result::unwrap_err) {
                assert_eq!(error.to_string(), expected);
            }
            assert_eq!(numbered(statement).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn no_text_causes_a_panic() {
        let letters = ["'", "$", "1", "e", "\\", "/", "*", "-", "?", "\u{e9}"];
        let values = [Parameter::Null];
        let mut texts = vec![String::new()];
        for _ in 0..4 {
            let longer = |text: &String| letters.map(|letter| format!("{text}{letter}"));
            texts = texts.iter().flat_map(longer).collect();
            for text in &texts {
                let _ = (bind(text, &values), numbered(text), bind_numbered(text, &values));
            }
        }
    }

    #[test]
    fn nan_and_infinities_are_casts() {
        for (float, name) in
            [(f64::NAN, "NaN"), (f64::INFINITY, "Infinity"), (f64::NEG_INFINITY, "-Infinity")]
        {
            let expected = format!(" CAST('{name}' AS DOUBLE PRECISION) ");
            check("?", &[Parameter::Float(float)], &expected);
        }
    }
}
