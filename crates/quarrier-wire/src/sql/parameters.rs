//! Parameters in a statement: `$1`, `$2` …

use super::tokens::{Kind, tokens};
use crate::answers::Value;
use crate::failure::{Failure, Result, state};
use crate::kind;

/// Maximum number of parameters; the protocol counts them in 16 bits.
const PARAMETERS_MAX: usize = 65_535;

/// Returns the parameters in a statement: the start and end of each, and its number from 1.
fn places(text: &str) -> Result<Vec<(usize, usize, usize)>> {
    let all = tokens(text)?;
    let pairs = all.windows(2).filter(|pair| {
        pair[0].is_mark("$") && pair[1].kind == Kind::Number && pair[0].end() == pair[1].start
    });
    let places = pairs.map(|pair| {
        let number =
            pair[1].text.parse().ok().filter(|number| (1..=PARAMETERS_MAX).contains(number));
        let number = number.ok_or_else(|| {
            Failure::new(state::SYNTAX, format!("there is no parameter ${}", pair[1].text))
        })?;
        Ok((pair[0].start, pair[1].end(), number))
    });
    places.collect()
}

/// Returns the number of parameters of a statement: the greatest number among them.
///
/// # Errors
/// If the statement is incomplete, or a number is too large.
pub fn parameter_count(text: &str) -> Result<usize> {
    Ok(places(text)?.iter().map(|(_, _, number)| *number).max().unwrap_or(0))
}

/// Replaces the parameters of a statement; `of` gets their numbers, counted from 0.
///
/// # Errors
/// The errors of [`parameter_count`].
pub fn with_parameters(text: &str, mut of: impl FnMut(usize) -> Option<String>) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (start, end, number) in places(text)? {
        out.push_str(&text[at..start]);
        match of(number - 1) {
            Some(instead) => out.push_str(&instead),
            None => out.push_str(&text[start..end]),
        }
        at = end;
    }
    out.push_str(&text[at..]);
    Ok(out)
}

/// Quotes a string as SQL.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Formats a value as SQL.
pub fn literal(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_string(),
        Value::Bool(value) => if *value { "TRUE" } else { "FALSE" }.to_string(),
        Value::Int(value) if *value < 0 => format!("({value})"),
        Value::Int(value) => value.to_string(),
        Value::Float(value) if value.is_finite() && value.is_sign_positive() => {
            format!("{value:e}")
        }
        Value::Float(value) if value.is_finite() => format!("({value:e})"),
        Value::Float(value) => format!("CAST('{value}' AS DOUBLE)"),
        Value::Decimal(value) if value.starts_with('-') => format!("({value})"),
        Value::Decimal(value) => value.clone(),
        Value::Text(value) => quoted(value),
        Value::Bytes(value) => format!("X'{}'", quarrier_core::hex::encode(value)),
        Value::Date(value) => format!("DATE {}", quoted(value)),
        Value::Time(value) => format!("TIME {}", quoted(value)),
        Value::Timestamp(value) => format!("TIMESTAMP {}", quoted(value)),
        Value::List(values) => {
            let values: Vec<String> = values.iter().map(literal).collect();
            format!("ARRAY[{}]", values.join(", "))
        }
    }
}

/// Returns SQL's name for a type; `None` if not all engines have the type.
pub fn sql_name(kind: u32) -> Option<&'static str> {
    Some(match kind {
        kind::BOOL => "BOOLEAN",
        kind::INT2 => "SMALLINT",
        kind::INT4 => "INTEGER",
        kind::INT8 | kind::OID => "BIGINT",
        kind::FLOAT4 => "REAL",
        kind::FLOAT8 => "DOUBLE PRECISION",
        kind::NUMERIC => "DECIMAL(38, 10)",
        kind::TEXT | kind::VARCHAR | kind::BPCHAR | kind::NAME => "VARCHAR",
        kind::BYTEA => "BYTEA",
        kind::DATE => "DATE",
        kind::TIME => "TIME",
        kind::TIMESTAMP | kind::TIMESTAMPTZ => "TIMESTAMP",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_distinguished_from_lookalikes() {
        let text = "SELECT $1, '$2', \"$3\", $$ $4 $$ -- $5\n, a$6 + $12";
        assert_eq!(parameter_count(text), Ok(12));
        let said = with_parameters(text, |place| Some(format!("<{place}>"))).unwrap();
        assert_eq!(said, "SELECT <0>, '$2', \"$3\", $$ $4 $$ -- $5\n, a$6 + <11>");
        assert!(parameter_count("$0").is_err() && parameter_count("$70000").is_err());
    }

    #[test]
    fn literals_are_quoted_safely() {
        assert_eq!(literal(&Value::Text("a'; --".into())), "'a''; --'");
        assert_eq!(literal(&Value::Int(-1)), "(-1)");
        let list = Value::List(vec![Value::Int(1), Value::Null]);
        assert_eq!(literal(&list), "ARRAY[1, NULL]");
        assert_eq!(literal(&Value::Float(1.5)), "1.5e0");
    }
}
