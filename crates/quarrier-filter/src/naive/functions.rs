//! Functions.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::compare::{compared, padded_order};
use super::{Datum, Row, evaluate};
use crate::Fault;
use crate::calendar::{self, DAY_NS, HOUR_NS, MINUTE_NS, Part};
use crate::expr::{Expr, Function};
use crate::number::Exact;

/// Returns the result of a function for a row.
pub(super) fn called<'a, R: Row + ?Sized>(
    function: Function,
    arguments: &'a [Expr],
    row: &'a R,
) -> Result<Datum<'a>, Fault> {
    if function == Function::Coalesce {
        for argument in arguments {
            let datum = evaluate(argument, row)?;
            if datum != Datum::Null {
                return Ok(datum);
            }
        }
        return Ok(Datum::Null);
    }
    // No function has more than four arguments.
    let mut values = [Datum::Null, Datum::Null, Datum::Null, Datum::Null];
    for (value, argument) in values.iter_mut().zip(arguments) {
        *value = evaluate(argument, row)?;
    }
    let given = arguments.len().min(values.len());
    match function {
        Function::NullIf => {
            let [first, second, ..] = values;
            let are_equal = compared(&first, &second)?.is_some_and(Ordering::is_eq);
            return Ok(if are_equal { Datum::Null } else { first });
        }
        Function::Overlaps => return overlap(&values),
        _ => {}
    }
    if values[..given].contains(&Datum::Null) {
        return Ok(Datum::Null);
    }
    strict(function, values, given)
}

/// Evaluates a function whose arguments are not NULL.
fn strict<'a>(
    function: Function,
    values: [Datum<'a>; 4],
    given: usize,
) -> Result<Datum<'a>, Fault> {
    use quarrier_messages::Value::{Integer, Text};
    Ok(match (function, values) {
        (Function::Upper, [Text(text), ..]) => Text(Cow::Owned(text.to_uppercase())),
        (Function::Lower, [Text(text), ..]) => Text(Cow::Owned(text.to_lowercase())),
        (Function::CharacterLength, [Text(text), ..]) => Integer(text.chars().count() as i64),
        (Function::OctetLength, [Text(text), ..]) => Integer(text.len() as i64),
        (Function::Position, [Text(part), Text(text), ..]) => {
            let found = text.find(&*part).map(|at| text[..at].chars().count() + 1);
            Integer(found.unwrap_or(0) as i64)
        }
        (Function::Substring, [Text(text), Integer(start), count, _]) => {
            let count = if given > 2 { Some(whole(&count)?) } else { None };
            Text(substring(text, start, count)?)
        }
        (Function::Trim { leading, trailing }, [Text(text), Text(what), ..]) => {
            Text(trimmed(text, &what, leading, trailing)?)
        }
        (Function::Overlay, [Text(text), Text(with), Integer(start), count]) => {
            let count = if given > 3 { whole(&count)? } else { with.chars().count() as i64 };
            let rest_start = start.checked_add(count).ok_or_else(too_far)?;
            let before =
                substring(text.clone(), 1, Some(start.checked_sub(1).ok_or_else(too_far)?))?;
            let after = substring(text, rest_start, None)?;
            Text(Cow::Owned(format!("{before}{with}{after}")))
        }
        (Function::Extract(part), [from, ..]) => extracted(part, &from)?,
        (Function::ComparePadded, [Text(a), Text(b), ..]) => Integer(padded_order(&a, &b) as i64),
        (Function::Absolute, [number, ..]) => match compared(&number, &Integer(0))? {
            Some(Ordering::Less) => super::arithmetic::negated(number)?,
            _ => number,
        },
        (Function::Ceiling, [number, ..]) => rounded(number, f64::ceil, 1)?,
        (Function::Floor, [number, ..]) => rounded(number, f64::floor, -1)?,
        _ => return Err(Fault::Kinds { what: "a function's arguments" }),
    })
}

fn whole(datum: &Datum<'_>) -> Result<i64, Fault> {
    match datum {
        Datum::Integer(number) => Ok(*number),
        _ => Err(Fault::Kinds { what: "a function's arguments" }),
    }
}

fn too_far() -> Fault {
    Fault::Overflow { what: "a position in a string" }
}

/// Returns `count` characters from position `start`, counted from 1; positions before the string
/// count, but have no characters.
fn substring(text: Cow<'_, str>, start: i64, count: Option<i64>) -> Result<Cow<'_, str>, Fault> {
    let end = match count {
        Some(count) if count < 0 => {
            return Err(Fault::Argument {
                reason: "a substring of negative length; check the number after FOR".into(),
            });
        }
        Some(count) => start.saturating_add(count),
        None => i64::MAX,
    };
    let place = |character: i64| {
        let before = usize::try_from(character.saturating_sub(1)).unwrap_or(0);
        text.char_indices().nth(before).map_or(text.len(), |(at, _)| at)
    };
    let from = place(start);
    let range = from..place(end).max(from);
    Ok(match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[range]),
        Cow::Owned(text) => Cow::Owned(text[range].to_string()),
    })
}

fn trimmed<'a>(
    text: Cow<'a, str>,
    what: &str,
    leading: bool,
    trailing: bool,
) -> Result<Cow<'a, str>, Fault> {
    let mut characters = what.chars();
    let (Some(what), None) = (characters.next(), characters.next()) else {
        return Err(Fault::Argument {
            reason: "TRIM removes a single character, not several or none".into(),
        });
    };
    let cut = |text: &str| -> (usize, usize) {
        let start = if leading { text.len() - text.trim_start_matches(what).len() } else { 0 };
        let kept = if trailing { text[start..].trim_end_matches(what) } else { &text[start..] };
        (start, start + kept.len())
    };
    Ok(match text {
        Cow::Borrowed(text) => {
            let (start, end) = cut(text);
            Cow::Borrowed(&text[start..end])
        }
        Cow::Owned(text) => {
            let (start, end) = cut(&text);
            Cow::Owned(text[start..end].to_string())
        }
    })
}

/// Returns a field of a timestamp or an interval.
fn extracted(part: Part, from: &Datum<'_>) -> Result<Datum<'static>, Fault> {
    let kinds = || Fault::Kinds { what: "EXTRACT" };
    let (day, time) = match from {
        Datum::Date(day) => (Some(*day), None),
        Datum::Time(time) => (None, Some(*time)),
        Datum::Timestamp(at) => {
            let (day, time) = calendar::split(*at);
            (Some(day), Some(time))
        }
        Datum::Interval { months, nanoseconds } => {
            return Ok(match part {
                Part::Year => Datum::Integer(months / 12),
                Part::Month => Datum::Integer(months % 12),
                Part::Day => Datum::Integer(nanoseconds / DAY_NS),
                _ => of_time(part, nanoseconds % DAY_NS),
            });
        }
        _ => return Err(kinds()),
    };
    match (part, day, time) {
        (Part::Year, Some(day), _) => Ok(Datum::Integer(calendar::date(day).0)),
        (Part::Month, Some(day), _) => Ok(Datum::Integer(calendar::date(day).1)),
        (Part::Day, Some(day), _) => Ok(Datum::Integer(calendar::date(day).2)),
        (Part::Year | Part::Month | Part::Day, ..) => Err(kinds()),
        (part, _, Some(time)) => Ok(of_time(part, time)),
        (part, Some(_), None) => Ok(of_time(part, 0)),
        _ => Err(kinds()),
    }
}

fn of_time(part: Part, time: i64) -> Datum<'static> {
    match part {
        Part::Hour => Datum::Integer(time / HOUR_NS),
        Part::Minute => Datum::Integer(time / MINUTE_NS % 60),
        _ => Datum::Decimal { mantissa: i128::from(time % MINUTE_NS), scale: 9 },
    }
}

/// Rounds `number` to an integer: a float by `float`, an exact number in the direction of `step`.
fn rounded(number: Datum<'_>, float: fn(f64) -> f64, step: i128) -> Result<Datum<'static>, Fault> {
    Ok(match number {
        Datum::Integer(number) => Datum::Integer(number),
        Datum::Float(number) => Datum::Float(float(number)),
        Datum::Decimal { mantissa, scale } => {
            let one = 10_i128.checked_pow(u32::from(scale)).ok_or_else(too_far)?;
            let (whole, rest) = (mantissa / one, mantissa % one);
            let is_short = rest.signum() == step;
            super::arithmetic::decimal(Exact::new(whole + if is_short { step } else { 0 }, 0))
        }
        _ => return Err(Fault::Kinds { what: "a function's arguments" }),
    })
}

/// Whether two periods overlap, as in SQL-92: each starts at the earlier of its ends, and does not
/// include the other end unless both are equal.
fn overlap(ends: &[Datum<'_>; 4]) -> Result<Datum<'static>, Fault> {
    let ordered = |first: usize, second: usize| -> Result<(usize, usize), Fault> {
        let is_backwards = match compared(&ends[first], &ends[second])? {
            Some(order) => order.is_gt(),
            None => ends[first] == Datum::Null,
        };
        Ok(if is_backwards { (second, first) } else { (first, second) })
    };
    let ((s1, t1), (s2, t2)) = (ordered(0, 1)?, ordered(2, 3)?);
    let test = |a: usize, b: usize, holds: fn(Ordering) -> bool| {
        compared(&ends[a], &ends[b]).map(|order| order.map(holds))
    };
    // (s1 > s2 AND NOT (s1 >= t2 AND t1 >= t2)) OR (s2 > s1 AND NOT (s2 >= t1 AND t2 >= t1))
    // OR (s1 = s2 AND (t1 <> t2 OR t1 = t2))
    let later = |s: usize, t: usize, other_s: usize, other_t: usize| {
        let both = and(test(s, other_t, Ordering::is_ge)?, test(t, other_t, Ordering::is_ge)?);
        Ok::<_, Fault>(and(test(s, other_s, Ordering::is_gt)?, both.map(|truth| !truth)))
    };
    let same = and(
        test(s1, s2, Ordering::is_eq)?,
        or(test(t1, t2, Ordering::is_ne)?, test(t1, t2, Ordering::is_eq)?),
    );
    Ok(super::truth_datum(or(or(later(s1, t1, s2, t2)?, later(s2, t2, s1, t1)?), same)))
}

fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn or(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    and(a.map(|truth| !truth), b.map(|truth| !truth)).map(|truth| !truth)
}
