//! Upper bounds for the sizes of function results, from the arguments.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::ColumnarValue;

use super::argument::{Argument, Numbers};

/// Computes the size of the results for a number of rows, in bytes.
pub(super) type Size = fn(&[ColumnarValue], usize) -> Result<u64>;

/// The functions, by DataFusion's names.
pub(super) const ALL: [(&str, Size); 19] = [
    ("lpad", padded),
    ("rpad", padded),
    ("repeat", repeated),
    ("replace", replaced),
    ("regexp_replace", replaced_anywhere),
    ("concat", joined),
    ("concat_ws", joined_with),
    ("overlay", joined),
    ("encode", doubled),
    ("array_repeat", repeated_values),
    ("generate_series", series),
    ("range", series),
    ("array_resize", resized),
    ("array_concat", joined_values),
    ("array_append", joined_values),
    ("array_prepend", joined_values),
    ("array_to_string", joined_with_text),
    ("make_array", joined_values),
    ("flatten", joined_values),
];

/// Below this size, a rough bound is enough.
const ROUGH_BYTES: u64 = 1 << 20;

/// Maximum length of a character, in bytes.
const CHARACTER_BYTES: u64 = 4;

fn sum(rows: usize, of: impl Fn(usize) -> u64) -> u64 {
    (0..rows).fold(0, |sum: u64, row| sum.saturating_add(of(row)))
}

/// The number of rows that a function is evaluated for: at most one if all arguments are constant.
fn evaluated(args: &[ColumnarValue], rows: usize) -> usize {
    let is_array = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Array(_));
    if args.iter().any(is_array) { rows } else { rows.min(1) }
}

/// `lpad(text, characters[, fill])`
fn padded(args: &[ColumnarValue], rows: usize) -> Result<u64> {
    let rows = evaluated(args, rows);
    let Some(lengths) = Numbers::of(args.get(1))? else { return Ok(0) };
    let characters = sum(rows, |row| lengths.count(row));
    if characters.saturating_mul(CHARACTER_BYTES) < ROUGH_BYTES {
        return Ok(characters);
    }
    let mut is_ascii = true;
    for arg in [args.first(), args.get(2)].into_iter().flatten() {
        let strings = Argument::new(arg)?;
        is_ascii &= (0..rows).all(|row| strings.text(row).is_none_or(<[u8]>::is_ascii));
    }
    Ok(characters.saturating_mul(if is_ascii { 1 } else { CHARACTER_BYTES }))
}

/// `repeat(text, times)`
fn repeated(args: &[ColumnarValue], rows: usize) -> Result<u64> {
    let rows = evaluated(args, rows);
    let (Some(text), Some(times)) = (args.first(), Numbers::of(args.get(1))?) else { return Ok(0) };
    let text = Argument::new(text)?;
    Ok(sum(rows, |row| text.bytes(row).saturating_mul(times.count(row))))
}

/// `replace(text, from, to)`
fn replaced(args: &[ColumnarValue], rows: usize) -> Result<u64> {
    let rows = evaluated(args, rows);
    let [text, from, to, ..] = args else { return Ok(0) };
    let (text, from, to) = (Argument::new(text)?, Argument::new(from)?, Argument::new(to)?);
    let size = |times: &dyn Fn(usize) -> u64| {
        sum(rows, |row| text.bytes(row).saturating_add(times(row).saturating_mul(to.bytes(row))))
    };
    let most = |row: usize| text.bytes(row) / from.bytes(row).max(1) + 1;
    let rough = size(&most);
    if rough < ROUGH_BYTES {
        return Ok(rough);
    }
    Ok(size(&|row| match (text.text(row), from.text(row)) {
        (Some(text), Some(from)) if !from.is_empty() => {
            let text = String::from_utf8_lossy(text);
            text.matches(&*String::from_utf8_lossy(from)).count() as u64
        }
        _ => most(row),
    }))
}

/// `regexp_replace(text, pattern, to[, flags])`: with flag `g`, the pattern may match at every
/// byte.
fn replaced_anywhere(args: &[ColumnarValue], rows: usize) -> Result<u64> {
    let rows = evaluated(args, rows);
    let [text, _, to, rest @ ..] = args else { return Ok(0) };
    let (text, to) = (Argument::new(text)?, Argument::new(to)?);
    let is_everywhere = match rest {
        [ColumnarValue::Scalar(flags)] => {
            flags.try_as_str().flatten().is_some_and(|f| f.contains('g'))
        }
        [] => false,
        _ => true,
    };
    let times = |row: usize| if is_everywhere { text.bytes(row) + 1 } else { 1 };
    Ok(sum(rows, |row| text.bytes(row).saturating_add(times(row).saturating_mul(to.bytes(row)))))
}

/// `concat(text, …)`
fn joined(args: &[ColumnarValue], rows: usize) -> Result<u64> {
    let rows = evaluated(args, rows);
    let mut bytes = 0_u64;
    for arg in args {
        let strings = Argument::new(arg)?;
        bytes = bytes.saturating_add(sum(rows, |row| strings.bytes(row)));
    }
    Ok(bytes)
}

/// `concat_ws(between, text, …)`
fn joined_with(args: &[ColumnarValue], rows: usize) -> Result<u64> {
    let Some(between) = args.first() else { return Ok(0) };
    let (between, times) = (Argument::new(between)?, args.len() as u64);
    let of_between = sum(evaluated(args, rows), |row| between.bytes(row).saturating_mul(times));
    Ok(joined(&args[1..], rows)?.saturating_add(of_between))
}

/// `encode(bytes, form)`
fn doubled(args: &[ColumnarValue], rows: usize) -> Result<u64> {
    Ok(joined(args, rows)?.saturating_mul(2))
}

/// `array_repeat(value, times)`
fn repeated_values(args: &[ColumnarValue], rows: usize) -> Result<u64> {
    let rows = evaluated(args, rows);
    let (Some(value), Some(times)) = (args.first(), Numbers::of(args.get(1))?) else {
        return Ok(0);
    };
    let each = Argument::new(value)?.bytes_each();
    Ok(sum(rows, |row| times.count(row).saturating_mul(each)))
}

/// `array_resize(list, length[, value])`
fn resized(args: &[ColumnarValue], rows: usize) -> Result<u64> {
    let rows = evaluated(args, rows);
    let Some(lengths) = Numbers::of(args.get(1))? else { return Ok(0) };
    let each = match args.get(2) {
        Some(value) => Argument::new(value)?.bytes_each(),
        None => 0,
    };
    let each = each.max(size_of::<i64>() as u64);
    let added = sum(rows, |row| lengths.count(row).saturating_mul(each));
    Ok(added.saturating_add(joined_values(&args[..1], rows)?))
}

/// `array_concat(list, …)`
fn joined_values(args: &[ColumnarValue], rows: usize) -> Result<u64> {
    let rows = evaluated(args, rows);
    let mut bytes = 0_u64;
    for arg in args {
        bytes = bytes.saturating_add(Argument::new(arg)?.all_bytes(rows));
    }
    Ok(bytes)
}

/// `array_to_string(list, between[, null])`: assumes that each value has the most digits of its
/// type.
fn joined_with_text(args: &[ColumnarValue], rows: usize) -> Result<u64> {
    let rows = evaluated(args, rows);
    let Some(list) = args.first() else { return Ok(0) };
    let bytes = Argument::new(list)?.all_bytes(rows);
    let mut each = 0_u64;
    for arg in &args[1..] {
        let strings = Argument::new(arg)?;
        each = each.saturating_add((0..rows).map(|row| strings.bytes(row)).max().unwrap_or(0));
    }
    Ok(bytes.saturating_mul(4).saturating_add((bytes / 4).saturating_mul(each)))
}

/// `generate_series(start, stop[, step])`; with one argument, from 0 to that.
fn series(args: &[ColumnarValue], rows: usize) -> Result<u64> {
    let rows = evaluated(args, rows);
    let (start, stop) = match args {
        [stop] => (None, Numbers::of(Some(stop))?),
        [start, stop, ..] => (Numbers::of(Some(start))?, Numbers::of(Some(stop))?),
        [] => return Ok(0),
    };
    let Some(stop) = stop else { return Ok(0) };
    let Some(step) = step(args)? else { return Ok(0) };
    let count = |row: usize| {
        let start = start.as_ref().map_or(Some(0), |start| start.at(row));
        let (Some(start), Some(stop), Some(step)) = (start, stop.at(row), step.at(row)) else {
            return 0;
        };
        let length = (i128::from(stop) - i128::from(start)) * i128::from(step.signum());
        let steps = length / i128::from(step.unsigned_abs().max(1)) + 1;
        u64::try_from(steps.max(0)).unwrap_or(u64::MAX)
    };
    Ok(sum(rows, |row| count(row).saturating_mul(size_of::<i64>() as u64)))
}

/// The step of a series, in units of its integers, dates or timestamps.
fn step(args: &[ColumnarValue]) -> Result<Option<Numbers>> {
    const DAY_NANOSECONDS: i128 = 86_400_000_000_000;
    let one = ColumnarValue::Scalar(ScalarValue::Int64(Some(1)));
    let Some(step) = args.get(2) else { return Numbers::of(Some(&one)) };
    let unit = match args[0].data_type() {
        DataType::Date32 => DAY_NANOSECONDS,
        DataType::Timestamp(TimeUnit::Second, _) => 1_000_000_000,
        DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000_000,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 1_000,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => 1,
        _ => return Numbers::of(Some(step)),
    };
    let ColumnarValue::Scalar(ScalarValue::IntervalMonthDayNano(Some(interval))) = step else {
        return Ok(None);
    };
    let days = i128::from(interval.months) * 28 + i128::from(interval.days);
    let nanoseconds = days * DAY_NANOSECONDS + i128::from(interval.nanoseconds);
    let units = i64::try_from(nanoseconds / unit).unwrap_or(i64::MAX);
    let units = if units == 0 { nanoseconds.signum() as i64 } else { units };
    Numbers::of(Some(&ColumnarValue::Scalar(ScalarValue::Int64(Some(units)))))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Int64Array, StringArray};

    use super::*;

    fn text(text: &str) -> ColumnarValue {
        ColumnarValue::Scalar(ScalarValue::Utf8(Some(text.into())))
    }

    fn number(number: i64) -> ColumnarValue {
        ColumnarValue::Scalar(ScalarValue::Int64(Some(number)))
    }

    fn strings(strings: &[&str]) -> ColumnarValue {
        ColumnarValue::Array(Arc::new(StringArray::from(strings.to_vec())))
    }

    #[test]
    fn result_sizes_are_computed_from_arguments() {
        let numbers =
            ColumnarValue::Array(Arc::new(Int64Array::from(vec![Some(3), None, Some(-1)])));
        let many = strings(&["ab", "c", "d"]);
        assert_eq!(padded(&[text("a"), number(2_147_483_647)], 8).unwrap(), 2_147_483_647);
        assert_eq!(padded(&[text("ä"), number(1 << 20)], 8).unwrap(), 4 << 20);
        assert_eq!(repeated(&[many.clone(), numbers], 3).unwrap(), 6);
        assert_eq!(repeated(&[many.clone(), number(10)], 3).unwrap(), 40);
        assert_eq!(joined(&[many.clone(), text("xyz")], 3).unwrap(), 4 + 9);
        assert_eq!(joined_with(&[text(", "), many.clone(), text("z")], 3).unwrap(), 7 + 18);
        let long = text(&"ab".repeat(1 << 20));
        let to = text(&"c".repeat(1 << 10));
        assert_eq!(replaced(&[long.clone(), text("zz"), to.clone()], 1).unwrap(), 2 << 20);
        let found = replaced(&[long, text("b"), to], 1).unwrap();
        assert_eq!(found, (2 << 20) + (1 << 30));
        assert_eq!(series(&[number(1), number(i64::MAX)], 1).unwrap(), u64::MAX);
        assert_eq!(series(&[number(1), number(10), number(3)], 1).unwrap(), 32);
        assert_eq!(repeated_values(&[number(7), number(1 << 30)], 5).unwrap(), 8 << 30);
        assert_eq!(doubled(&[many, text("hex")], 3).unwrap(), 2 * (4 + 9));
    }
}
