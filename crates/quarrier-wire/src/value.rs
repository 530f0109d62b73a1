//! The values of parameters, and how clients write them.

use quarrier_core::civil;

use crate::failure::{Failure, Result, state};
use crate::kind;

/// Maximum number of items of a list.
const ITEMS_MAX: usize = 1 << 16;

/// A value for a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// True or false.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// An exact number in decimal notation: sign, digits, a point.
    Decimal(String),
    /// A string.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A date: `2024-02-29`.
    Date(String),
    /// A time of day: `12:34:56.5`.
    Time(String),
    /// A timestamp: `2024-02-29 12:34:56.5`, in UTC.
    Timestamp(String),
    /// Several values of one type.
    List(Vec<Value>),
}

/// Parses a client's value for a parameter of type `kind`.
///
/// # Errors
/// If the bytes are not such a value.
pub(crate) fn read(kind: u32, bytes: Option<&[u8]>, is_binary: bool) -> Result<Value> {
    match bytes {
        None => Ok(Value::Null),
        Some(bytes) if is_binary => binary(kind, bytes),
        Some(bytes) => text(kind, utf8(bytes)?),
    }
}

/// Parses a value of type `kind` in its text form.
///
/// # Errors
/// If the string is not such a value.
pub fn read_text(kind: u32, text: &str) -> Result<Value> {
    self::text(kind, text)
}

/// Converts a value to the type of a column, as an assignment does: numbers to other types of
/// numbers, any value to a string, a string by its contents. `scale` is the number of decimals of
/// exact numbers in the column; values with more are rounded, halves away from zero.
///
/// # Errors
/// If the column cannot have the value.
pub fn assigned(value: Value, kind: u32, scale: Option<u8>) -> Result<Value> {
    let exact = |written: &str| match scale {
        Some(scale) => Value::Decimal(rounded(written, scale.into())),
        None => Value::Decimal(written.to_string()),
    };
    let too_large = |shown: &dyn std::fmt::Display| {
        let said = format!("value \"{shown}\" is out of range for type {}", name_of(kind));
        Failure::new(state::OUT_OF_RANGE, said)
    };
    Ok(match (kind, value) {
        (_, Value::Null) => Value::Null,
        (kind::NUMERIC, Value::Decimal(written)) => exact(&written),
        (kind::NUMERIC, Value::Int(number)) => Value::Decimal(number.to_string()),
        (kind::NUMERIC, Value::Float(number)) if number.is_finite() => exact(&number.to_string()),
        (kind::NUMERIC, Value::Float(number)) => return Err(too_large(&number)),
        (kind::INT8, Value::Decimal(written)) => {
            let whole = rounded(&written, 0);
            Value::Int(whole.parse().map_err(|_| too_large(&written))?)
        }
        (kind::INT8, Value::Float(number)) => {
            let whole = number.round_ties_even();
            // 2^63 is a float, and the least number that exceeds 64 bits.
            let is_held =
                (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&whole);
            if !is_held {
                return Err(too_large(&number));
            }
            Value::Int(whole as i64)
        }
        (kind::FLOAT8, Value::Int(number)) => Value::Float(number as f64),
        (kind::FLOAT8, Value::Decimal(written)) => {
            Value::Float(written.parse().map_err(|_| no_value(kind, &written))?)
        }
        (kind::DATE, Value::Timestamp(text)) => {
            Value::Date(text.get(..10).unwrap_or(&text).to_string())
        }
        (kind::TIMESTAMP | kind::TIMESTAMPTZ, Value::Date(text)) => Value::Timestamp(text),
        (kind::TIMESTAMP | kind::TIMESTAMPTZ, Value::Timestamp(text)) => {
            Value::Timestamp(with_minutes(text))
        }
        (kind::TEXT, value) => Value::Text(as_text(value)),
        (kind, Value::Text(said)) => match text(kind, &said)? {
            Value::Text(_) => return Err(no_value(kind, &said)),
            read => assigned(read, kind, scale)?,
        },
        (kind::BOOL, value @ Value::Bool(_))
        | (kind::INT8 | kind::INT4 | kind::INT2, value @ Value::Int(_))
        | (kind::FLOAT8 | kind::FLOAT4, value @ Value::Float(_))
        | (kind::BYTEA, value @ Value::Bytes(_))
        | (kind::DATE, value @ Value::Date(_))
        | (kind::TIME, value @ Value::Time(_)) => value,
        (kind, value) => {
            let said = format!(
                "column is of type {} but the value {} is of another; CAST it",
                name_of(kind),
                as_text(value)
            );
            return Err(Failure::new(state::KINDS, said));
        }
    })
}

/// Adds minutes to a time zone of hours only.
fn with_minutes(mut text: String) -> String {
    let hours = |a: u8, b: u8| a.is_ascii_digit() && b.is_ascii_digit();
    let is_short =
        matches!(text.as_bytes(), [.., b'+' | b'-', a, b] if hours(*a, *b)) && text.contains(':');
    if is_short {
        text.push_str(":00");
    }
    text
}

fn as_text(value: Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Bytes(value) => format!("\\x{}", quarrier_core::hex::encode(&value)),
        Value::Decimal(text)
        | Value::Text(text)
        | Value::Date(text)
        | Value::Time(text)
        | Value::Timestamp(text) => text,
        Value::List(values) => {
            let values: Vec<String> = values.into_iter().map(as_text).collect();
            format!("{{{}}}", values.join(","))
        }
    }
}

/// Rounds an exact number to at most `scale` decimals, halves away from zero.
fn rounded(written: &str, scale: usize) -> String {
    let (sign, digits) = match written.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", written),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let Some(next) = part.as_bytes().get(scale) else { return written.to_string() };
    let mut kept: Vec<u8> = whole.bytes().chain(part.bytes().take(scale)).collect();
    if *next >= b'5' {
        let nines = kept.iter().rev().take_while(|digit| **digit == b'9').count();
        let at = kept.len() - nines;
        kept[at..].fill(b'0');
        match at.checked_sub(1) {
            Some(before) => kept[before] += 1,
            None => kept.insert(0, b'1'),
        }
    }
    let point = kept.len() - scale;
    let mut out = sign.to_string();
    out.extend(kept[..point].iter().map(|digit| char::from(*digit)));
    if point == 0 {
        out.push('0');
    }
    if scale > 0 {
        out.push('.');
        out.extend(kept[point..].iter().map(|digit| char::from(*digit)));
    }
    out
}

fn utf8(bytes: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| {
        Failure::new(state::ENCODING, "invalid byte sequence for encoding \"UTF8\" in a parameter")
    })
}

fn name_of(kind: u32) -> &'static str {
    kind::ALL.iter().find(|known| known.0 == kind).map_or("unknown", |known| known.1)
}

fn no_value(kind: u32, text: &str) -> Failure {
    let shown: String = text.chars().take(100).collect();
    let name = name_of(kind);
    Failure::new(state::TEXT, format!("invalid input syntax for type {name}: \"{shown}\""))
}

fn text(kind: u32, text: &str) -> Result<Value> {
    let wrong = || no_value(kind, text);
    let trimmed = text.trim();
    Ok(match kind {
        kind::BOOL => Value::Bool(truth(trimmed).ok_or_else(wrong)?),
        kind::INT2 | kind::INT4 | kind::INT8 | kind::OID => {
            let number: i64 = trimmed.parse().map_err(|_| wrong())?;
            let fits = match kind {
                kind::INT2 => i16::try_from(number).is_ok(),
                kind::INT4 => i32::try_from(number).is_ok(),
                kind::OID => u32::try_from(number).is_ok(),
                _ => true,
            };
            if !fits {
                let said =
                    format!("value \"{trimmed}\" is out of range for type {}", name_of(kind));
                return Err(Failure::new(state::OUT_OF_RANGE, said));
            }
            Value::Int(number)
        }
        kind::FLOAT4 | kind::FLOAT8 => Value::Float(trimmed.parse().map_err(|_| wrong())?),
        kind::NUMERIC => Value::Decimal(decimal(trimmed).ok_or_else(wrong)?),
        kind::BYTEA => Value::Bytes(bytes_of(text).ok_or_else(wrong)?),
        kind::DATE => Value::Date(day_of(trimmed).to_string()),
        kind::TIME => Value::Time(trimmed.to_string()),
        kind::TIMESTAMP | kind::TIMESTAMPTZ => Value::Timestamp(trimmed.to_string()),
        list => match kind::item(list) {
            Some(item) => list_of(item, text).ok_or_else(wrong)??,
            None => Value::Text(text.to_string()),
        },
    })
}

/// Strips the time zone that the JDBC driver appends to a date, which PostgreSQL ignores as well.
fn day_of(text: &str) -> &str {
    let Some((day, zone)) = text.split_at_checked(10) else { return text };
    let zone = zone.trim_start();
    let is_zone = zone == "Z"
        || zone.strip_prefix(['+', '-']).is_some_and(|rest| {
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
        });
    if is_zone { day } else { text }
}

/// Parses the spellings of true and false.
pub(crate) fn truth(text: &str) -> Option<bool> {
    let lower = text.to_ascii_lowercase();
    match lower.as_str() {
        "t" | "true" | "y" | "yes" | "on" | "1" => Some(true),
        "f" | "false" | "n" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// Parses an exact number without an exponent.
fn decimal(text: &str) -> Option<String> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_one = !(whole.is_empty() && part.is_empty()) && are_digits(whole) && are_digits(part);
    is_one.then(|| text.trim_start_matches('+').to_string())
}

/// Parses bytes in PostgreSQL's text form: `\x00ff`, or octal numbers after backslashes.
fn bytes_of(text: &str) -> Option<Vec<u8>> {
    if let Some(hex) = text.strip_prefix("\\x") {
        let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let nibble = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
        let pairs = digits.chunks(2);
        return pairs.map(|pair| Some(nibble(pair[0])? << 4 | nibble(*pair.get(1)?)?)).collect();
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match (byte, rest) {
            (b'\\', [b'\\', after @ ..]) => {
                out.push(b'\\');
                rest = after;
            }
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = after;
            }
            (b'\\', _) => return None,
            (byte, _) => out.push(*byte),
        }
    }
    Some(out)
}

/// Parses a list of one dimension: `{a,"b c",NULL}`.
fn list_of(item: u32, list: &str) -> Option<Result<Value>> {
    let inner = list.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut items = Vec::new();
    let mut letters = inner.chars().peekable();
    while letters.peek().is_some() {
        let (mut value, mut is_quoted) = (String::new(), false);
        loop {
            match letters.next() {
                None | Some(',') => break,
                // Skip blanks around an item.
                Some(blank) if blank.is_whitespace() && (is_quoted || value.is_empty()) => {}
                Some('"') => {
                    is_quoted = true;
                    loop {
                        match letters.next()? {
                            '"' => break,
                            '\\' => value.push(letters.next()?),
                            other => value.push(other),
                        }
                    }
                }
                Some('{' | '}') => return None,
                Some('\\') => value.push(letters.next()?),
                Some(other) => value.push(other),
            }
        }
        if items.len() >= ITEMS_MAX {
            return None;
        }
        let plain = value.trim();
        match (is_quoted, plain.eq_ignore_ascii_case("NULL")) {
            (false, true) => items.push(Value::Null),
            (false, false) if plain.is_empty() => return None,
            (false, false) => match text(item, plain) {
                Ok(value) => items.push(value),
                Err(failure) => return Some(Err(failure)),
            },
            (true, _) => match text(item, &value) {
                Ok(value) => items.push(value),
                Err(failure) => return Some(Err(failure)),
            },
        }
    }
    Some(Ok(Value::List(items)))
}

fn binary(kind: u32, bytes: &[u8]) -> Result<Value> {
    let wrong = || {
        let said = format!("incorrect binary data format for type {}", name_of(kind));
        Failure::new(state::BINARY, said)
    };
    let value = match kind {
        kind::BOOL => fixed(bytes).map(|[byte]: [u8; 1]| Value::Bool(byte != 0)),
        kind::INT2 => fixed(bytes).map(|bytes| Value::Int(i16::from_be_bytes(bytes).into())),
        kind::INT4 => fixed(bytes).map(|bytes| Value::Int(i32::from_be_bytes(bytes).into())),
        kind::INT8 => fixed(bytes).map(|bytes| Value::Int(i64::from_be_bytes(bytes))),
        kind::OID => fixed(bytes).map(|bytes| Value::Int(u32::from_be_bytes(bytes).into())),
        kind::FLOAT4 => fixed(bytes).map(|bytes| Value::Float(f32::from_be_bytes(bytes).into())),
        kind::FLOAT8 => fixed(bytes).map(|bytes| Value::Float(f64::from_be_bytes(bytes))),
        kind::NUMERIC => decimal_of_numeric(bytes).map(Value::Decimal),
        kind::BYTEA => Some(Value::Bytes(bytes.to_vec())),
        kind::DATE => fixed(bytes).map(i32::from_be_bytes).and_then(date),
        kind::TIME => fixed(bytes).map(i64::from_be_bytes).and_then(time),
        kind::TIMESTAMP | kind::TIMESTAMPTZ => {
            fixed(bytes).map(i64::from_be_bytes).and_then(timestamp)
        }
        kind::UUID => fixed(bytes).map(uuid),
        kind::JSONB => match bytes {
            [1, text @ ..] => Some(Value::Text(utf8(text)?.to_string())),
            _ => None,
        },
        list => match kind::item(list) {
            Some(_) => list_of_binary(bytes)?,
            None => Some(Value::Text(utf8(bytes)?.to_string())),
        },
    };
    value.ok_or_else(wrong)
}

fn fixed<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

/// Days from 1970-01-01 to 2000-01-01.
pub(crate) const EPOCH_DAYS: i64 = 10_957;
/// Microseconds per day.
pub(crate) const DAY_US: i64 = 86_400_000_000;

fn date(day: i32) -> Option<Value> {
    let mut text = String::new();
    civil::write_date(i64::from(day) + EPOCH_DAYS, &mut text).ok()?;
    Some(Value::Date(text))
}

fn time(micros: i64) -> Option<Value> {
    let mut text = String::new();
    let nanos = (0..=DAY_US).contains(&micros).then(|| micros * 1_000)?;
    civil::write_time(nanos, &mut text).ok()?;
    Some(Value::Time(text))
}

fn timestamp(micros: i64) -> Option<Value> {
    let mut text = String::new();
    civil::write_date(micros.div_euclid(DAY_US) + EPOCH_DAYS, &mut text).ok()?;
    text.push(' ');
    civil::write_time(micros.rem_euclid(DAY_US) * 1_000, &mut text).ok()?;
    Some(Value::Timestamp(text))
}

fn uuid(bytes: [u8; 16]) -> Value {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    Value::Text(parts.join("-"))
}

fn list_of_binary(bytes: &[u8]) -> Result<Option<Value>> {
    let word = |at: usize| {
        let read = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
        read.map(|bytes| u32::from_be_bytes(*bytes))
    };
    let (Some(dimensions), Some(item)) = (word(0), word(8)) else { return Ok(None) };
    let count = match dimensions {
        0 => return Ok(Some(Value::List(Vec::new()))),
        1 => word(12).map_or(usize::MAX, |count| count as usize),
        _ => return Ok(None),
    };
    if count > ITEMS_MAX || kind::item(item).is_some() {
        return Ok(None);
    }
    let mut items = Vec::with_capacity(count.min(bytes.len() / 4));
    let mut at = 20;
    for _ in 0..count {
        let Some(length) = word(at) else { return Ok(None) };
        at += 4;
        if length == u32::MAX {
            items.push(Value::Null);
            continue;
        }
        let Some(value) = bytes.get(at..).and_then(|rest| rest.get(..length as usize)) else {
            return Ok(None);
        };
        items.push(binary(item, value)?);
        at += value.len();
    }
    Ok(Some(Value::List(items)))
}

/// Returns the digits of a number in PostgreSQL's binary form; `None` if it is invalid or not
/// finite.
pub(crate) fn decimal_of_numeric(bytes: &[u8]) -> Option<String> {
    const DIGITS_MAX: usize = 2_000;
    let (head, rest) = bytes.split_first_chunk::<8>()?;
    let count = usize::from(u16::from_be_bytes([head[0], head[1]]));
    let weight = i16::from_be_bytes([head[2], head[3]]);
    let sign = u16::from_be_bytes([head[4], head[5]]);
    let scale = usize::from(u16::from_be_bytes([head[6], head[7]]));
    let is_known = matches!(sign, 0 | 0x4000) && scale <= DIGITS_MAX && rest.len() == count * 2;
    if !is_known || usize::from(weight.unsigned_abs()) * 4 > DIGITS_MAX || count * 4 > DIGITS_MAX {
        return None;
    }
    let group = |place: i32| -> Option<u16> {
        let at = usize::try_from(place).ok().filter(|at| *at < count);
        let group = at.map_or(0, |at| u16::from_be_bytes([rest[at * 2], rest[at * 2 + 1]]));
        (group < 10_000).then_some(group)
    };
    let weight = i32::from(weight);
    let mut whole = String::new();
    for place in 0..=weight {
        whole.push_str(&format!("{:04}", group(place)?));
    }
    let whole = whole.trim_start_matches('0');
    let mut text = String::from(if sign == 0 { "" } else { "-" });
    text.push_str(if whole.is_empty() { "0" } else { whole });
    if scale > 0 {
        let mut part = String::new();
        let mut place = weight + 1;
        while part.len() < scale {
            part.push_str(&format!("{:04}", group(place)?));
            place += 1;
        }
        text.push('.');
        text.push_str(&part[..scale]);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_numbers_are_rounded_away_from_zero() {
        for (written, scale, expected) in [
            ("1.25", 1, "1.3"),
            ("-1.25", 1, "-1.3"),
            ("1.24", 1, "1.2"),
            ("9.995", 2, "10.00"),
            ("0.5", 0, "1"),
            (".5", 0, "1"),
            (".04", 1, "0.0"),
            ("99.9", 0, "100"),
            ("7", 3, "7"),
            ("7.1", 3, "7.1"),
        ] {
            assert_eq!(rounded(written, scale), expected, "{written} {scale}");
        }
    }

    #[test]
    fn values_are_converted_to_their_columns() {
        let text = |text: &str| Value::Text(text.to_string());
        let decimal = |text: &str| Value::Decimal(text.to_string());
        let time = |text: &str| Value::Timestamp(text.to_string());
        for (value, kind, expected) in [
            (Value::Int(7), kind::NUMERIC, Some(decimal("7"))),
            (decimal("1.005"), kind::NUMERIC, Some(decimal("1.01"))),
            (Value::Float(0.1), kind::NUMERIC, Some(decimal("0.1"))),
            (Value::Float(f64::NAN), kind::NUMERIC, None),
            (decimal("1.5"), kind::INT8, Some(Value::Int(2))),
            (Value::Float(1e19), kind::INT8, None),
            (Value::Float(-9.223_372_036_854_776e18), kind::INT8, Some(Value::Int(i64::MIN))),
            (text("12"), kind::INT8, Some(Value::Int(12))),
            (text("x"), kind::INT8, None),
            (Value::Bool(true), kind::INT8, None),
            (Value::Bool(true), kind::TEXT, Some(text("true"))),
            (Value::Int(7), kind::FLOAT8, Some(Value::Float(7.0))),
            (
                time("2024-01-31 10:00:00+02"),
                kind::TIMESTAMP,
                Some(time("2024-01-31 10:00:00+02:00")),
            ),
            (time("2024-01-31"), kind::TIMESTAMP, Some(time("2024-01-31"))),
            (time("2024-01-31 10:00:00"), kind::DATE, Some(Value::Date("2024-01-31".into()))),
            (Value::Null, kind::DATE, Some(Value::Null)),
            (text("2024-01-31 +00"), kind::DATE, Some(Value::Date("2024-01-31".into()))),
            (text("2024-01-31 -09:30"), kind::DATE, Some(Value::Date("2024-01-31".into()))),
            (text("2024-01-31 noon"), kind::DATE, Some(Value::Date("2024-01-31 noon".into()))),
        ] {
            let shown = format!("{value:?} {kind}");
            assert_eq!(assigned(value, kind, Some(2)).ok(), expected, "{shown}");
        }
    }

    #[test]
    fn strings_are_parsed_by_their_type() {
        let value = |kind, text: &str| read(kind, Some(text.as_bytes()), false);
        assert_eq!(value(kind::INT4, " 7"), Ok(Value::Int(7)));
        assert_eq!(value(kind::BOOL, "T"), Ok(Value::Bool(true)));
        assert_eq!(value(kind::BYTEA, "\\x00fF"), Ok(Value::Bytes(vec![0, 255])));
        assert_eq!(value(kind::BYTEA, "a\\\\\\001"), Ok(Value::Bytes(b"a\\\x01".to_vec())));
        assert_eq!(value(kind::NUMERIC, "+1.50"), Ok(Value::Decimal("1.50".into())));
        assert_eq!(value(0, "x"), Ok(Value::Text("x".into())));
        let items = vec![Value::Text("a".into()), Value::Null, Value::Text("b,\"".into())];
        assert_eq!(value(1009, r#"{a,NULL,"b,\""}"#), Ok(Value::List(items.clone())));
        assert_eq!(value(1009, r#"{ a , NULL, "b,\"" }"#), Ok(Value::List(items)));
        for (kind, wrong) in [
            (kind::INT4, "x"),
            (kind::INT2, "40000"),
            (kind::BOOL, "2"),
            (kind::NUMERIC, "1e5"),
            (kind::NUMERIC, "."),
            (kind::BYTEA, "\\x0"),
            (1007, "{1,x}"),
            (1009, "{\"a}"),
        ] {
            assert!(value(kind, wrong).is_err(), "{wrong}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, words: String) {
            for (kind, _, _, list) in kind::ALL {
                let _ = read(*kind, Some(&bytes), true);
                let _ = read(*list, Some(&bytes), true);
                let _ = read(*kind, Some(words.as_bytes()), false);
                let _ = read(*list, Some(format!("{{{words}}}").as_bytes()), false);
            }
        }
    }
}
