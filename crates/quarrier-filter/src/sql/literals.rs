//! Literals: numbers, strings, dates, times, intervals.

use quarrier_messages::Value;
use sqlparser::ast::{self, DateTimeField};
use sqlparser::tokenizer::Location;

use super::bind::Bound;
use super::types::Type;
use super::wrong;
use crate::Result;
use crate::calendar::{self, Fields, Part};
use crate::expr::Expr;
use crate::matching::shortened;
use crate::number::{Exact, SCALE_MAX};

/// Binds a number, string or boolean.
pub(super) fn value(value: ast::ValueWithSpan) -> Result<Bound> {
    let at = value.span.start;
    Ok(match value.value {
        ast::Value::Number(digits, _) => return number(&digits, at),
        ast::Value::SingleQuotedString(text)
        | ast::Value::NationalStringLiteral(text)
        | ast::Value::UnicodeStringLiteral(text) => {
            Bound::literal(Value::Text(text.into_boxed_str()), Type::Text, at)
        }
        ast::Value::Boolean(truth) => Bound::literal(Value::Boolean(truth), Type::Boolean, at),
        ast::Value::Null => Bound::literal(Value::Null, Type::Null, at),
        other => return Err(wrong(at, format!("a value like {other} has no type here"))),
    })
}

/// Parses a number with its sign: an integer, an exact number if it has a point, a float if it has
/// an exponent.
pub(super) fn number(digits: &str, at: Location) -> Result<Bound> {
    let too_long = || wrong(at, format!("the number {} has too many digits", shortened(digits)));
    if digits.contains(['e', 'E']) {
        let number = digits.parse().ok().filter(|number: &f64| number.is_finite());
        let number =
            number.ok_or_else(|| wrong(at, format!("the number {digits} is too large")))?;
        return Ok(Bound::literal(Value::Float(number), Type::Float, at));
    }
    if let Ok(whole) = digits.parse() {
        return Ok(Bound::literal(Value::Integer(whole), Type::Integer, at));
    }
    let Exact { mantissa, scale } = Exact::parse(digits).ok_or_else(too_long)?;
    let kind = Type::Decimal { scale: scale.min(SCALE_MAX) };
    Ok(Bound::literal(Value::Decimal { mantissa, scale }, kind, at))
}

/// Binds `DATE '…'`, `TIME '…'` and `TIMESTAMP '…'`.
pub(super) fn typed(typed: ast::TypedString, at: Location) -> Result<Bound> {
    let ast::Value::SingleQuotedString(text) = typed.value.value else {
        return Err(wrong(at, "expected a string between quotes"));
    };
    let kind = match typed.data_type {
        ast::DataType::Date => Type::Date,
        ast::DataType::Time(..) => Type::Time,
        _ => Type::Timestamp,
    };
    of_kind(&text, kind, at)
}

/// Parses a string as a date or time.
fn of_kind(text: &str, kind: Type, at: Location) -> Result<Bound> {
    let (value, like) = match kind {
        Type::Date => (calendar::parse_date(text).map(Value::Date), "DATE '2024-12-31'"),
        Type::Time => (calendar::parse_time(text).map(Value::Time), "TIME '23:59:59.5'"),
        _ => (
            calendar::parse_timestamp(text).map(Value::Timestamp),
            "TIMESTAMP '2024-12-31 23:59:59.5', from 1677-09-22 to 2262-04-11",
        ),
    };
    let value = value
        .ok_or_else(|| wrong(at, format!("'{}' is not written as {like}", shortened(text))))?;
    Ok(Bound::literal(value, kind, at))
}

/// Converts a string literal that is compared with a date or time: `ts > '2024-12-31'`. If it is compared
/// with a DATE, it may also be a timestamp.
pub(super) fn dated(bound: Bound, beside: Type) -> Result<Bound> {
    let Expr::Literal(Value::Text(text)) = &bound.expr else { return Ok(bound) };
    let kind = match beside {
        Type::Date if calendar::parse_date(text).is_some() => Type::Date,
        Type::Date if calendar::parse_timestamp(text).is_some() => Type::Timestamp,
        Type::Date | Type::Time | Type::Timestamp => beside,
        _ => return Ok(bound),
    };
    if bound.kind == Type::Text { of_kind(text, kind, bound.at) } else { Ok(bound) }
}

/// Converts string literals as [`dated`] does, if one of the values is a date or time.
pub(super) fn all_dated(values: Vec<Bound>) -> Result<Vec<Bound>> {
    let is_time = |kind: &Type| matches!(kind, Type::Date | Type::Time | Type::Timestamp);
    let Some(beside) = values.iter().map(|value| value.kind).find(is_time) else {
        return Ok(values);
    };
    values.into_iter().map(|value| dated(value, beside)).collect()
}

/// Binds `INTERVAL '…' field [TO field]`.
pub(super) fn interval(interval: &ast::Interval, at: Location) -> Result<Bound> {
    let ast::Interval {
        value,
        leading_field: _,
        leading_precision,
        last_field: _,
        fractional_seconds_precision,
    } = interval;
    if leading_precision.is_some() || fractional_seconds_precision.is_some() {
        return Err(wrong(at, "the fields of an INTERVAL have no precision here: DAY TO SECOND"));
    }
    let (value, is_negative) = match &**value {
        ast::Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => (&**expr, true),
        other => (other, false),
    };
    let text = match value {
        ast::Expr::Value(ast::ValueWithSpan { value, .. }) => match value {
            ast::Value::SingleQuotedString(text) => text,
            ast::Value::Number(text, _) => text,
            _ => return Err(wrong(at, "an INTERVAL is written INTERVAL '1' DAY")),
        },
        _ => return Err(wrong(at, "an INTERVAL is written INTERVAL '1' DAY")),
    };
    let fields = fields(interval, at)?;
    let Some((months, nanoseconds)) = calendar::parse_interval(text, fields) else {
        let example = "INTERVAL '1-2' YEAR TO MONTH, INTERVAL '3 04:05:06' DAY TO SECOND or \
                       INTERVAL '90' SECOND";
        return Err(wrong(at, format!("'{}' is not written as {example}", shortened(text))));
    };
    let sign = if is_negative { -1 } else { 1 };
    let kind = if fields.last <= Part::Month { Type::Months } else { Type::Seconds };
    let value = Value::Interval { months: sign * months, nanoseconds: sign * nanoseconds };
    Ok(Bound::literal(value, kind, at))
}

fn fields(interval: &ast::Interval, at: Location) -> Result<Fields> {
    let named = |field: &Option<DateTimeField>| field.as_ref().map(|field| part(field, at));
    let first = named(&interval.leading_field)
        .unwrap_or_else(|| Err(wrong(at, "an INTERVAL names its field, as in INTERVAL '1' DAY")))?;
    let last = named(&interval.last_field).transpose()?.unwrap_or(first);
    let is_one_class = (first <= Part::Month) == (last <= Part::Month);
    if last < first || !is_one_class {
        let reason = "an INTERVAL runs from YEAR to MONTH, or from DAY, HOUR or MINUTE to SECOND";
        return Err(wrong(at, reason));
    }
    Ok(Fields { first, last })
}

/// Returns the field of a date or time.
pub(super) fn part(field: &DateTimeField, at: Location) -> Result<Part> {
    Ok(match field {
        DateTimeField::Year | DateTimeField::Years => Part::Year,
        DateTimeField::Month | DateTimeField::Months => Part::Month,
        DateTimeField::Day | DateTimeField::Days => Part::Day,
        DateTimeField::Hour | DateTimeField::Hours => Part::Hour,
        DateTimeField::Minute | DateTimeField::Minutes => Part::Minute,
        DateTimeField::Second | DateTimeField::Seconds => Part::Second,
        other => {
            let reason = format!("{other} is not one of YEAR, MONTH, DAY, HOUR, MINUTE, SECOND");
            return Err(wrong(at, reason));
        }
    })
}
