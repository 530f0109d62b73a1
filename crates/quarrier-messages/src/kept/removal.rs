//! Writes the keys of rows to remove to the log, as batches (tombstones).

use quarrier_core::civil::midnight;

use super::Definition;
use super::intake::{AppendResult, PendingAppend, send};
use super::key::trimmed;
use crate::exact::rescaled;
use crate::log::rows::RowsWriter;
use crate::log::{Batch, Encoding, Log};
use crate::{Error, Kind, Result, Value};

/// Approximate bytes of keys in a batch.
const BATCH_BYTES: usize = 1 << 20;

/// Sends keys to the log. Returns once they are in its queue or, if they take more than one batch, on the
/// disk.
pub(super) fn send_keys(
    log: &Log,
    (table, definition): (u32, &Definition),
    keys: &[Vec<Value>],
) -> Result<PendingAppend> {
    let taken = AppendResult { marks: 0..keys.len() as u64, ..AppendResult::default() };
    if keys.is_empty() {
        return Ok(PendingAppend { taken, on_its_way: None });
    }
    let columns = definition.key().iter().filter_map(|place| definition.columns().get(*place));
    let kinds: Vec<Kind> = columns.map(|column| column.kind).collect();
    let bytes_max = usize::try_from(log.batch_bytes(BATCH_BYTES as u64)).unwrap_or(BATCH_BYTES);
    let mut batches: Vec<Batch> = Vec::new();
    let mut writer = RowsWriter::new(&kinds)?;
    for key in keys {
        writer.push(&fitted(key, &kinds)?)?;
        if writer.payload().len() >= bytes_max {
            let full = std::mem::replace(&mut writer, RowsWriter::new(&kinds)?);
            batches.push(full.into_batch(table, Encoding::KeysRemoved)?);
        }
    }
    if writer.rows() > 0 {
        batches.push(writer.into_batch(table, Encoding::KeysRemoved)?);
    }
    let on_its_way = Some(send(log, batches.into_iter().map(Ok), None)?);
    Ok(PendingAppend { taken, on_its_way })
}

fn exact((mantissa, scale): (i128, u8), to: u8) -> Option<Value> {
    rescaled(mantissa, scale, to).map(|mantissa| Value::Decimal { mantissa, scale: to })
}

/// Converts the values of a key to the types of its columns.
fn fitted(key: &[Value], kinds: &[Kind]) -> Result<Vec<Value>> {
    let wrong = |reason: String| Error::Store { place: "a key".to_string(), reason };
    if key.len() != kinds.len() {
        return Err(wrong(format!(
            "has {} values, and the table's key {} columns",
            key.len(),
            kinds.len()
        )));
    }
    let fit = |(value, kind): (&Value, &Kind)| {
        let fitted = match (value, kind) {
            (Value::Integer(number), Kind::Decimal { scale }) => {
                exact(((*number).into(), 0), *scale)
            }
            (Value::Decimal { mantissa, scale }, Kind::Decimal { scale: to }) => {
                exact(trimmed(*mantissa, *scale), *to)
            }
            (Value::Decimal { mantissa, scale }, Kind::Integer) => match trimmed(*mantissa, *scale)
            {
                (number, 0) => i64::try_from(number).ok().map(Value::Integer),
                _ => None,
            },
            (Value::Date(day), Kind::Timestamp) => midnight(*day).map(Value::Timestamp),
            (Value::Boolean(_), Kind::Boolean)
            | (Value::Integer(_), Kind::Integer)
            | (Value::Date(_), Kind::Date)
            | (Value::Timestamp(_), Kind::Timestamp)
            | (Value::Text(_), Kind::Text) => Some(value.clone()),
            _ => None,
        };
        fitted.ok_or_else(|| wrong(format!("{value:?} does not fit a column of type {kind:?}")))
    };
    key.iter().zip(kinds).map(fit).collect()
}
