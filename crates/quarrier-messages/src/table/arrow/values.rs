//! Appends the values of an Arrow array to a column.

use arrow_array::array::AnyDictionaryArray;
use arrow_array::cast::AsArray;
use arrow_array::types as t;
use arrow_array::{Array, ArrowPrimitiveType};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};

use crate::exact;

/// Whether row `row` has a value.
fn is_valid(nulls: Option<&NullBuffer>, row: usize) -> bool {
    nulls.is_none_or(|nulls| nulls.is_valid(row))
}

/// Appends integers, mantissas, days or nanoseconds; 0 for rows without a value.
///
/// # Errors
///
/// The row of a value that exceeds 64 bits.
pub(super) fn append_numbers(
    array: &dyn Array,
    nulls: Option<&NullBuffer>,
    out: &mut Vec<i64>,
) -> Result<(), usize> {
    use DataType as T;
    let factor = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    let shift = |scale: &i8| 10i128.checked_pow(u32::from(scale.min(&0).unsigned_abs()));
    match array.data_type() {
        T::Boolean => {
            out.extend(array.as_boolean().values().iter().map(i64::from));
            Ok(())
        }
        T::Int8 => plain::<t::Int8Type>(array, out),
        T::Int16 => plain::<t::Int16Type>(array, out),
        T::Int32 => plain::<t::Int32Type>(array, out),
        T::Int64 => plain::<t::Int64Type>(array, out),
        T::UInt8 => plain::<t::UInt8Type>(array, out),
        T::UInt16 => plain::<t::UInt16Type>(array, out),
        T::UInt32 => plain::<t::UInt32Type>(array, out),
        T::UInt64 => each::<t::UInt64Type, _>(array, nulls, out, |value| value.try_into().ok()),
        T::Decimal32(_, scale) => each::<t::Decimal32Type, _>(array, nulls, out, |value| {
            i128::from(value).checked_mul(shift(scale)?)?.try_into().ok()
        }),
        T::Decimal64(_, scale) => each::<t::Decimal64Type, _>(array, nulls, out, |value| {
            i128::from(value).checked_mul(shift(scale)?)?.try_into().ok()
        }),
        T::Decimal128(_, scale) => each::<t::Decimal128Type, _>(array, nulls, out, |value| {
            value.checked_mul(shift(scale)?)?.try_into().ok()
        }),
        T::Decimal256(_, scale) => each::<t::Decimal256Type, _>(array, nulls, out, |value| {
            value.to_i128()?.checked_mul(shift(scale)?)?.try_into().ok()
        }),
        T::Date32 => plain::<t::Date32Type>(array, out),
        T::Date64 => each::<t::Date64Type, _>(array, nulls, out, |value| {
            i32::try_from(value.div_euclid(86_400_000)).ok().map(i64::from)
        }),
        T::Timestamp(unit, _) => {
            let by = factor(unit);
            let scaled = |value: i64| value.checked_mul(by);
            match unit {
                TimeUnit::Second => each::<t::TimestampSecondType, _>(array, nulls, out, scaled),
                TimeUnit::Millisecond => {
                    each::<t::TimestampMillisecondType, _>(array, nulls, out, scaled)
                }
                TimeUnit::Microsecond => {
                    each::<t::TimestampMicrosecondType, _>(array, nulls, out, scaled)
                }
                TimeUnit::Nanosecond => plain::<t::TimestampNanosecondType>(array, out),
            }
        }
        T::Dictionary(..) => gathered(array.as_any_dictionary(), nulls, append_numbers, out),
        other => unreachable!("{other} holds no integers"),
    }
}

/// Appends exact numbers as mantissas; 0 for rows without a value.
///
/// # Errors
///
/// The row of a value that has more than 38 digits.
pub(super) fn append_exact(
    array: &dyn Array,
    nulls: Option<&NullBuffer>,
    out: &mut Vec<i128>,
) -> Result<(), usize> {
    use DataType as T;
    // A negative scale adds digits before the decimal point.
    let grown =
        |scale: &i8, value: Option<i128>| exact::rescaled(value?, 0, scale.min(&0).unsigned_abs());
    match array.data_type() {
        T::UInt64 => each::<t::UInt64Type, _>(array, nulls, out, |value| Some(value.into())),
        T::Decimal32(_, scale) => {
            each::<t::Decimal32Type, _>(array, nulls, out, |value| grown(scale, Some(value.into())))
        }
        T::Decimal64(_, scale) => {
            each::<t::Decimal64Type, _>(array, nulls, out, |value| grown(scale, Some(value.into())))
        }
        T::Decimal128(_, scale) => {
            each::<t::Decimal128Type, _>(array, nulls, out, |value| grown(scale, Some(value)))
        }
        T::Decimal256(_, scale) => {
            each::<t::Decimal256Type, _>(array, nulls, out, |value| grown(scale, value.to_i128()))
        }
        T::Dictionary(..) => gathered(array.as_any_dictionary(), nulls, append_exact, out),
        _ => {
            let mut numbers = Vec::new();
            append_numbers(array, nulls, &mut numbers)?;
            out.extend(numbers.into_iter().map(i128::from));
            Ok(())
        }
    }
}

/// Returns the number of rows that lose digits by becoming floats.
pub(super) fn rounded(array: &dyn Array, nulls: Option<&NullBuffer>) -> u64 {
    use DataType as T;
    let written: Box<dyn Fn(usize) -> String> = match array.data_type() {
        T::Decimal32(..) => {
            Box::new(|row| array.as_primitive::<t::Decimal32Type>().value_as_string(row))
        }
        T::Decimal64(..) => {
            Box::new(|row| array.as_primitive::<t::Decimal64Type>().value_as_string(row))
        }
        T::Decimal128(..) => {
            Box::new(|row| array.as_primitive::<t::Decimal128Type>().value_as_string(row))
        }
        T::Decimal256(..) => {
            Box::new(|row| array.as_primitive::<t::Decimal256Type>().value_as_string(row))
        }
        T::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let values = dictionary.values();
            let lose: Vec<u64> =
                (0..values.len()).map(|row| rounded(&values.slice(row, 1), None)).collect();
            let mut all = Vec::new();
            gather(keys_of(dictionary), nulls, &lose, &mut all);
            return all.into_iter().sum();
        }
        _ => return 0,
    };
    let loses = |&row: &usize| is_valid(nulls, row) && exact::is_text_rounded(&written(row));
    (0..array.len()).filter(loses).count() as u64
}

fn plain<T: ArrowPrimitiveType<Native: Into<i64>>>(
    array: &dyn Array,
    out: &mut Vec<i64>,
) -> Result<(), usize> {
    out.extend(array.as_primitive::<T>().values().iter().map(|&value| value.into()));
    Ok(())
}

fn each<T: ArrowPrimitiveType, N: Default>(
    array: &dyn Array,
    nulls: Option<&NullBuffer>,
    out: &mut Vec<N>,
    number: impl Fn(T::Native) -> Option<N>,
) -> Result<(), usize> {
    for (row, &value) in array.as_primitive::<T>().values().iter().enumerate() {
        match number(value) {
            Some(number) => out.push(number),
            // The contents of a null are undefined.
            None if !is_valid(nulls, row) => out.push(N::default()),
            None => return Err(row),
        }
    }
    Ok(())
}

/// Returns the index of each row's value; any index for NULL.
fn keys_of(dictionary: &dyn AnyDictionaryArray) -> Vec<usize> {
    match dictionary.values().len() {
        // The library rejects an empty dictionary, with which every row is NULL.
        0 => vec![0; dictionary.keys().len()],
        _ => dictionary.normalized_keys(),
    }
}

/// Appends the values of a dictionary's rows by `append`, which converts only the entries in use: an
/// entry without a row must not decide what the column becomes.
///
/// # Errors
///
/// The first row of an entry that `append` refuses.
fn gathered<V: Copy + Default>(
    dictionary: &dyn AnyDictionaryArray,
    nulls: Option<&NullBuffer>,
    append: impl Fn(&dyn Array, Option<&NullBuffer>, &mut Vec<V>) -> Result<(), usize>,
    out: &mut Vec<V>,
) -> Result<(), usize> {
    let entries = dictionary.values();
    let keys = keys_of(dictionary);
    let mut is_used = vec![false; entries.len()];
    for (row, &key) in keys.iter().enumerate() {
        if let Some(used) = is_used.get_mut(key).filter(|_| is_valid(nulls, row)) {
            *used = true;
        }
    }
    let used = NullBuffer::union(entries.logical_nulls().as_ref(), Some(&is_used.into()));
    let mut values = Vec::new();
    append(entries, used.as_ref(), &mut values).map_err(|entry| {
        let is_row = |(row, &key): (usize, &usize)| key == entry && is_valid(nulls, row);
        keys.iter().enumerate().position(is_row).unwrap_or(entry)
    })?;
    gather(keys, nulls, &values, out);
    Ok(())
}

fn gather<V: Copy + Default>(
    keys: Vec<usize>,
    nulls: Option<&NullBuffer>,
    values: &[V],
    out: &mut Vec<V>,
) {
    for (row, key) in keys.into_iter().enumerate() {
        let value = values.get(key).filter(|_| is_valid(nulls, row));
        out.push(value.copied().unwrap_or_default());
    }
}

/// Appends numbers as floats, rounded if necessary.
pub(super) fn append_floats(array: &dyn Array, nulls: Option<&NullBuffer>, out: &mut Vec<f64>) {
    use DataType as T;
    match array.data_type() {
        T::Float64 => out.extend_from_slice(array.as_primitive::<t::Float64Type>().values()),
        T::Float32 => {
            out.extend(
                array.as_primitive::<t::Float32Type>().values().iter().map(|&v| f64::from(v)),
            );
        }
        T::Float16 => {
            out.extend(array.as_primitive::<t::Float16Type>().values().iter().map(|v| v.to_f64()));
        }
        T::UInt64 => {
            out.extend(array.as_primitive::<t::UInt64Type>().values().iter().map(|&v| v as f64));
        }
        T::Decimal32(_, scale) => decimals::<t::Decimal32Type>(array, *scale, out),
        T::Decimal64(_, scale) => decimals::<t::Decimal64Type>(array, *scale, out),
        T::Decimal128(_, scale) => decimals::<t::Decimal128Type>(array, *scale, out),
        T::Decimal256(_, scale) => decimals::<t::Decimal256Type>(array, *scale, out),
        T::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let mut values = Vec::new();
            append_floats(dictionary.values(), None, &mut values);
            gather(keys_of(dictionary), nulls, &values, out);
        }
        other => unreachable!("{other} holds no numbers"),
    }
}

/// Converts through strings, which rounds once: the numbers are too large for a faster way.
fn decimals<T: ArrowPrimitiveType<Native: ToString>>(
    array: &dyn Array,
    scale: i8,
    out: &mut Vec<f64>,
) {
    let float = |value: &T::Native| {
        let text = format!("{}e{}", value.to_string(), -i32::from(scale));
        text.parse().unwrap_or(f64::NAN)
    };
    out.extend(array.as_primitive::<T>().values().iter().map(float));
}

/// Passes every row's string to `each`; `None` for rows without a value.
///
/// # Errors
///
/// The row of bytes that are not UTF-8.
pub(super) fn for_each_text(
    array: &dyn Array,
    nulls: Option<&NullBuffer>,
    each: &mut dyn FnMut(Option<&str>),
) -> Result<(), usize> {
    match array.data_type() {
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let text = strings(&**dictionary.values());
            let all = keys_of(dictionary).into_iter().enumerate();
            for (row, key) in all {
                let valid = is_valid(nulls, row);
                each(if valid { Some(text(key).ok_or(row)?) } else { None });
            }
        }
        _ => {
            let text = strings(array);
            for row in 0..array.len() {
                let valid = is_valid(nulls, row);
                each(if valid { Some(text(row).ok_or(row)?) } else { None });
            }
        }
    }
    Ok(())
}

/// Returns the string of a row; `None` if its bytes are not UTF-8.
fn strings<'a>(array: &'a dyn Array) -> Box<dyn Fn(usize) -> Option<&'a str> + 'a> {
    use DataType as T;
    let text = |bytes: &'a [u8]| std::str::from_utf8(bytes).ok();
    match array.data_type() {
        T::Utf8 => Box::new(|row| Some(array.as_string::<i32>().value(row))),
        T::LargeUtf8 => Box::new(|row| Some(array.as_string::<i64>().value(row))),
        T::Utf8View => Box::new(|row| Some(array.as_string_view().value(row))),
        T::Binary => Box::new(move |row| text(array.as_binary::<i32>().value(row))),
        T::LargeBinary => Box::new(move |row| text(array.as_binary::<i64>().value(row))),
        T::BinaryView => Box::new(move |row| text(array.as_binary_view().value(row))),
        other => unreachable!("{other} holds no text"),
    }
}
