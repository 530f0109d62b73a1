//! Evaluates an expression given as a string, on one row.

use quarrier_filter::{naive, sql};
use quarrier_messages::{Field, Kind, Schema, Value};

/// Returns the columns of a table, one of each type, and a path.
pub(crate) fn schema() -> Schema {
    let field = |name: &str, kind| Field { name: name.into(), kind };
    Schema {
        fields: vec![
            field("i", Kind::Integer),
            field("d", Kind::Decimal { scale: 2 }),
            field("f", Kind::Float),
            field("b", Kind::Boolean),
            field("t", Kind::Text),
            field("day", Kind::Date),
            field("at", Kind::Timestamp),
            field("order.leg[0].qty", Kind::Integer),
            field("nothing", Kind::Null),
        ],
    }
}

/// Returns a row of that table.
pub(crate) fn row() -> Vec<Value> {
    vec![
        Value::Integer(7),
        Value::Decimal { mantissa: 1_250, scale: 2 },
        Value::Float(0.5),
        Value::Boolean(true),
        Value::Text("näh Abc".into()),
        Value::Date(18_262),
        Value::Timestamp(1_577_836_801_500_000_000),
        Value::Integer(3),
        Value::Null,
    ]
}

/// Returns the value of an expression for [`row`] as a string, `NULL`, or the error.
pub(crate) fn asked(text: &str) -> String {
    let expr = match sql::expression(text, &schema()) {
        Ok(expr) => expr,
        Err(error) => return format!("refused: {error}"),
    };
    match naive::evaluate(&expr, &row()[..]) {
        Ok(datum) => shown(&datum.into()),
        Err(fault) => format!("fault: {fault}"),
    }
}

pub(crate) fn shown(value: &Value) -> String {
    use quarrier_filter::calendar;
    match value {
        Value::Null => "NULL".into(),
        Value::Boolean(true) => "TRUE".into(),
        Value::Boolean(false) => "FALSE".into(),
        Value::Integer(number) => number.to_string(),
        Value::Decimal { mantissa, scale } => format!("{mantissa}e-{scale}"),
        Value::Float(number) => format!("{number:?}"),
        Value::Date(day) => calendar::show_date(*day),
        Value::Time(time) => calendar::show_time(*time),
        Value::Timestamp(at) => calendar::show_timestamp(*at),
        Value::Interval { months, nanoseconds } => calendar::show_interval(*months, *nanoseconds),
        Value::Text(text) => format!("'{text}'"),
    }
}

/// Checks that each expression has the given value.
pub(crate) fn check(table: &[(&str, &str)]) {
    let wrong: Vec<String> = table
        .iter()
        .filter_map(|(text, expected)| {
            let found = asked(text);
            (found != *expected).then(|| format!("{text}: {found}, expected {expected}"))
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Checks that each input is refused with a message that contains the given words.
pub(crate) fn check_refused(table: &[(&str, &str)]) {
    let wrong: Vec<String> = table
        .iter()
        .filter_map(|(text, words)| {
            let found = asked(text);
            let is_right = found.starts_with("refused: ") && found.contains(words);
            (!is_right || found.contains('\n'))
                .then(|| format!("{text}: {found}, expected {words}"))
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
