//! Writes values in PostgreSQL's binary format.

use arrow_buffer::IntervalMonthDayNano;

use super::text::too_far;
use super::view::{Values, View};
use super::{Written, number, time, unwritable};
use crate::failure::Result;
use crate::kind;

impl View<'_> {
    /// Appends the value of a row, which must have one.
    pub(crate) fn binary(&self, row: usize, out: &mut Vec<u8>) -> Written {
        match &self.values {
            Values::Bool(values) => out.push(u8::from(values.value(row))),
            Values::I8(values) => out.extend(i16::from(values[row]).to_be_bytes()),
            Values::I16(values) => out.extend(values[row].to_be_bytes()),
            Values::I32(values) => out.extend(values[row].to_be_bytes()),
            Values::I64(values) => out.extend(values[row].to_be_bytes()),
            Values::U8(values) => out.extend(i16::from(values[row]).to_be_bytes()),
            Values::U16(values) => out.extend(i32::from(values[row]).to_be_bytes()),
            Values::U32(values) => out.extend(i64::from(values[row]).to_be_bytes()),
            Values::F16(values) => out.extend(values[row].to_be_bytes()),
            Values::F32(values) => out.extend(values[row].to_be_bytes()),
            Values::F64(values) => out.extend(values[row].to_be_bytes()),
            Values::U64(_)
            | Values::D32(..)
            | Values::D64(..)
            | Values::D128(..)
            | Values::D256(..) => {
                let mut written = Vec::new();
                self.number(row, &mut written);
                number::numeric(&String::from_utf8_lossy(&written), out);
            }
            Values::Bytes(_)
            | Values::LargeBytes(_)
            | Values::BytesView(_)
            | Values::FixedBytes(_) => out.extend_from_slice(self.bytes(row)),
            Values::Coded(places, values) => values.binary(places[row], out)?,
            Values::List(starts, items) if self.kind != kind::JSON => {
                list(items, starts[row]..starts[row + 1], out)?;
            }
            Values::Text(_) | Values::LargeText(_) | Values::TextView(_) => self.text(row, out)?,
            Values::List(..) | Values::Struct(_) => self.json(row, out)?,
            Values::Null => {}
            _ => self.binary_time(row, out)?,
        }
        Ok(())
    }

    fn binary_time(&self, row: usize, out: &mut Vec<u8>) -> Written {
        let day = |day: i64| {
            i32::try_from(day - time::EPOCH_DAYS).map_err(|_| too_far()).map(i32::to_be_bytes)
        };
        match &self.values {
            Values::Date(values) => out.extend(day(i64::from(values[row]))?),
            Values::DateMs(values) => out.extend(day(values[row].div_euclid(86_400_000))?),
            Values::Time32(values, nanos) => {
                out.extend((i64::from(values[row]) * nanos / 1_000).to_be_bytes());
            }
            Values::Time64(values, nanos) => {
                out.extend((values[row].saturating_mul(*nanos) / 1_000).to_be_bytes());
            }
            Values::Timestamp(values, per_second, _) => {
                let micros = time::micros(values[row], *per_second);
                let micros = micros.and_then(|micros| micros.checked_sub(time::EPOCH_US));
                out.extend(micros.ok_or_else(too_far)?.to_be_bytes());
            }
            _ => {
                let interval = self.interval(row)?;
                out.extend((interval.nanoseconds / 1_000).to_be_bytes());
                out.extend(interval.days.to_be_bytes());
                out.extend(interval.months.to_be_bytes());
            }
        }
        Ok(())
    }

    pub(super) fn interval(&self, row: usize) -> Result<IntervalMonthDayNano> {
        match &self.values {
            Values::Duration(values, per_second) => {
                let nanos = values[row].checked_mul(1_000_000_000 / per_second);
                let nanos = nanos.ok_or_else(|| unwritable("an interval is too long"))?;
                Ok(IntervalMonthDayNano::new(0, 0, nanos))
            }
            Values::Interval(values) => Ok(values[row]),
            _ => Ok(IntervalMonthDayNano::new(0, 0, 0)),
        }
    }
}

/// Writes a list: one dimension, whether it has NULLs, the type of items, their number, lower bound
/// 1, the items.
fn list(items: &View<'_>, range: std::ops::Range<usize>, out: &mut Vec<u8>) -> Written {
    let has_null = range.clone().any(|row| items.is_null(row));
    out.extend(i32::from(!range.is_empty()).to_be_bytes());
    out.extend(i32::from(has_null).to_be_bytes());
    out.extend(items.kind.to_be_bytes());
    if range.is_empty() {
        return Ok(());
    }
    out.extend((range.len() as i32).to_be_bytes());
    out.extend(1_i32.to_be_bytes());
    for row in range {
        items.sized(row, true, out)?;
    }
    Ok(())
}

impl View<'_> {
    /// Appends a value after its length; -1 for NULL.
    pub(crate) fn sized(&self, row: usize, is_binary: bool, out: &mut Vec<u8>) -> Written {
        if self.is_null(row) {
            out.extend((-1_i32).to_be_bytes());
            return Ok(());
        }
        let start = out.len();
        out.extend([0; 4]);
        if is_binary {
            self.binary(row, out)?
        } else {
            self.text(row, out)?
        }
        let length = i32::try_from(out.len() - start - 4);
        let length = length.map_err(|_| unwritable("a value is longer than 2 GiB"))?;
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }
}
