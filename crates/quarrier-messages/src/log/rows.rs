//! Encodes typed rows as the messages of a batch: rows that were inserted instead of read from a file.
//!
//! ```text
//!  0  4  columns, at most 4,096
//!  4     for each column its type and, for exact numbers, the digits after the point: 2 bytes
//!        for each row: a bit a column, set if it is NULL, in whole bytes
//!                     for each column that is not NULL: 1 byte for a boolean, 16 for an exact number,
//!                     4 for the length of a string and then its UTF-8, 8 for any other type
//! ```
//!
//! Types: 0 only NULL, 1 boolean, 2 whole number, 3 exact number, 4 floating number, 5 days,
//! 6 nanoseconds since 1970, 7 string. Numbers are little-endian.

use super::batch::{Batch, Encoding};
use super::error::{Error, Result};
use super::segment::{u32_at, u64_at};
use crate::exact::rescaled;
use crate::{Kind, Value};

const COLUMNS_MAX: usize = 4096;

fn code(kind: Kind) -> [u8; 2] {
    match kind {
        Kind::Null => [0, 0],
        Kind::Boolean => [1, 0],
        Kind::Integer => [2, 0],
        Kind::Decimal { scale } => [3, scale],
        Kind::Float => [4, 0],
        Kind::Date => [5, 0],
        Kind::Timestamp => [6, 0],
        Kind::Text => [7, 0],
    }
}

fn kind(code: [u8; 2]) -> Option<Kind> {
    Some(match code {
        [0, 0] => Kind::Null,
        [1, 0] => Kind::Boolean,
        [2, 0] => Kind::Integer,
        [3, scale] if scale <= crate::DIGITS_MAX => Kind::Decimal { scale },
        [4, 0] => Kind::Float,
        [5, 0] => Kind::Date,
        [6, 0] => Kind::Timestamp,
        [7, 0] => Kind::Text,
        _ => return None,
    })
}

/// Writes rows into a batch.
///
/// ```
/// use quarrier_messages::log::rows::{Rows, RowsWriter};
/// use quarrier_messages::{Kind, Value};
///
/// # fn main() -> quarrier_messages::log::Result<()> {
/// let mut writer = RowsWriter::new(&[Kind::Integer, Kind::Text])?;
/// writer.push(&[Value::Integer(1), Value::Text("one".into())])?;
/// writer.push(&[Value::Integer(2), Value::Null])?;
/// let payload = writer.payload().to_vec();
/// let mut rows = Rows::read(&payload)?;
/// let mut row = Vec::new();
/// while rows.next_row(&mut row)? {
///     println!("{row:?}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RowsWriter {
    kinds: Vec<Kind>,
    payload: Vec<u8>,
    rows: u32,
}

impl RowsWriter {
    /// Makes a writer of rows with columns of these types.
    ///
    /// # Errors
    /// [`Error::Invalid`] without columns, or with more than 4,096.
    pub fn new(kinds: &[Kind]) -> Result<Self> {
        if kinds.is_empty() || kinds.len() > COLUMNS_MAX {
            return Err(Error::Invalid { reason: "it has no columns, or more than 4,096" });
        }
        let mut payload = (kinds.len() as u32).to_le_bytes().to_vec();
        payload.extend(kinds.iter().flat_map(|kind| code(*kind)));
        Ok(RowsWriter { kinds: kinds.to_vec(), payload, rows: 0 })
    }

    /// Appends a row: for each column NULL or a value of its type.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a value has another type. The earlier rows remain.
    pub fn push(&mut self, row: &[Value]) -> Result<()> {
        if row.len() != self.kinds.len() {
            return Err(Error::Invalid { reason: "a row must have one value for each column" });
        }
        let start = self.payload.len();
        self.payload.resize(start + row.len().div_ceil(8), 0);
        for (column, (value, kind)) in row.iter().zip(&self.kinds).enumerate() {
            if matches!(value, Value::Null) {
                self.payload[start + column / 8] |= 1 << (column % 8);
            } else if let Err(error) = put(&mut self.payload, value, *kind) {
                self.payload.truncate(start);
                return Err(error);
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// Returns the number of rows so far.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Returns the encoded rows so far.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Makes a batch of these rows: rows to insert, or keys of rows to remove.
    ///
    /// # Errors
    /// As [`Batch::new`].
    pub fn into_batch(self, table: u32, encoding: Encoding) -> Result<Batch> {
        Batch::new(table, encoding, self.rows, self.payload)
    }
}

fn put(payload: &mut Vec<u8>, value: &Value, kind: Kind) -> Result<()> {
    match (value, kind) {
        (Value::Boolean(value), Kind::Boolean) => payload.push(u8::from(*value)),
        (Value::Integer(value), Kind::Integer) | (Value::Timestamp(value), Kind::Timestamp) => {
            payload.extend_from_slice(&value.to_le_bytes());
        }
        (Value::Date(days), Kind::Date) => {
            payload.extend_from_slice(&i64::from(*days).to_le_bytes());
        }
        (Value::Float(value), Kind::Float) => {
            payload.extend_from_slice(&value.to_bits().to_le_bytes());
        }
        (Value::Decimal { mantissa, scale }, Kind::Decimal { scale: to }) => {
            let mantissa = rescaled(*mantissa, *scale, to)
                .ok_or(Error::Invalid { reason: "an exact number does not fit its column" })?;
            payload.extend_from_slice(&mantissa.to_le_bytes());
        }
        (Value::Text(text), Kind::Text) => {
            let length = u32::try_from(text.len())
                .map_err(|_| Error::Invalid { reason: "a string is longer than 4 GiB" })?;
            payload.extend_from_slice(&length.to_le_bytes());
            payload.extend_from_slice(text.as_bytes());
        }
        _ => return Err(Error::Invalid { reason: "a value has another type than its column" }),
    }
    Ok(())
}

/// Reads rows from the payload of a batch, in order, and checks every length and value.
#[derive(Debug)]
pub struct Rows<'p> {
    kinds: Vec<Kind>,
    rest: &'p [u8],
}

fn damaged(reason: &str) -> Error {
    Error::Payload { mark: 0, reason: reason.to_string() }
}

impl<'p> Rows<'p> {
    /// Reads the types of the columns.
    ///
    /// # Errors
    /// [`Error::Payload`] if the payload is not rows.
    pub fn read(payload: &'p [u8]) -> Result<Self> {
        let columns = u32_at(payload, 0) as usize;
        let codes = payload.get(4..4 + columns.min(COLUMNS_MAX) * 2).unwrap_or_default();
        let kinds: Option<Vec<Kind>> =
            codes.chunks_exact(2).map(|pair| kind([pair[0], pair[1]])).collect();
        match kinds {
            Some(kinds) if kinds.len() == columns && columns > 0 => {
                Ok(Rows { kinds, rest: &payload[4 + columns * 2..] })
            }
            _ => Err(damaged("it does not start with the types of columns")),
        }
    }

    /// Returns the types of the columns.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Reads the next row into `row`; returns false at the end.
    ///
    /// # Errors
    /// [`Error::Payload`] if the row is incomplete, or if a value does not have its column's type.
    pub fn next_row(&mut self, row: &mut Vec<Value>) -> Result<bool> {
        row.clear();
        if self.rest.is_empty() {
            return Ok(false);
        }
        let nulls = self.take(self.kinds.len().div_ceil(8))?;
        for column in 0..self.kinds.len() {
            let is_null = nulls[column / 8] >> (column % 8) & 1 == 1;
            let value = if is_null { Value::Null } else { self.value(self.kinds[column])? };
            row.push(value);
        }
        Ok(true)
    }

    fn take(&mut self, bytes: usize) -> Result<&'p [u8]> {
        let (taken, rest) =
            self.rest.split_at_checked(bytes).ok_or_else(|| damaged("a row is incomplete"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<i64> {
        Ok(u64_at(self.take(8)?, 0) as i64)
    }

    fn value(&mut self, kind: Kind) -> Result<Value> {
        Ok(match kind {
            Kind::Null => return Err(damaged("a value in a column of NULLs")),
            Kind::Boolean => match self.take(1)? {
                [0] => Value::Boolean(false),
                [1] => Value::Boolean(true),
                _ => return Err(damaged("a boolean is neither 0 nor 1")),
            },
            Kind::Integer => Value::Integer(self.number()?),
            Kind::Float => Value::Float(f64::from_bits(self.number()? as u64)),
            Kind::Timestamp => Value::Timestamp(self.number()?),
            Kind::Date => {
                let days = i32::try_from(self.number()?);
                Value::Date(days.map_err(|_| damaged("a date is out of range"))?)
            }
            Kind::Decimal { scale } => {
                let bytes = self.take(16)?;
                let mantissa =
                    i128::from(u64_at(bytes, 8) as i64) << 64 | i128::from(u64_at(bytes, 0));
                let mantissa = rescaled(mantissa, scale, scale)
                    .ok_or_else(|| damaged("an exact number has more than 38 digits"))?;
                Value::Decimal { mantissa, scale }
            }
            Kind::Text => {
                let length = u32_at(self.take(4)?, 0) as usize;
                let text = std::str::from_utf8(self.take(length)?);
                Value::Text(text.map_err(|_| damaged("a string is not UTF-8"))?.into())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 8] = [
        Kind::Boolean,
        Kind::Integer,
        Kind::Decimal { scale: 2 },
        Kind::Float,
        Kind::Date,
        Kind::Timestamp,
        Kind::Text,
        Kind::Null,
    ];

    fn row() -> Vec<Value> {
        vec![
            Value::Boolean(true),
            Value::Integer(i64::MIN),
            Value::Decimal { mantissa: -12_345, scale: 2 },
            Value::Float(-0.5),
            Value::Date(-3),
            Value::Timestamp(i64::MAX),
            Value::Text("grün".into()),
            Value::Null,
        ]
    }

    #[test]
    fn rows_survive_a_round_trip() {
        let mut writer = RowsWriter::new(&KINDS).unwrap();
        let nulls = vec![Value::Null; KINDS.len()];
        let rows = [row(), nulls.clone(), row()];
        rows.iter().for_each(|row| writer.push(row).unwrap());
        let mut reader = Rows::read(writer.payload()).unwrap();
        assert_eq!(reader.kinds(), KINDS);
        let mut found = Vec::new();
        for expected in &rows {
            assert!(reader.next_row(&mut found).unwrap());
            assert_eq!(&found, expected);
        }
        assert!(!reader.next_row(&mut found).unwrap());
        assert_eq!(writer.into_batch(3, Encoding::Rows).unwrap().messages, 3);
    }

    #[test]
    fn a_value_of_another_type_is_refused_and_earlier_rows_stay() {
        let mut writer = RowsWriter::new(&KINDS[..2]).unwrap();
        writer.push(&[Value::Null, Value::Integer(1)]).unwrap();
        let before = writer.payload().to_vec();
        assert!(writer.push(&[Value::Boolean(true), Value::Float(1.0)]).is_err());
        assert!(writer.push(&[Value::Boolean(true)]).is_err());
        assert_eq!(writer.payload(), before);
        assert!(RowsWriter::new(&[]).is_err());
        assert!(RowsWriter::new(&[Kind::Text; COLUMNS_MAX + 1]).is_err());
    }

    #[test]
    fn rows_cut_anywhere_or_changed_anyhow_do_no_harm() {
        let mut writer = RowsWriter::new(&KINDS).unwrap();
        writer.push(&row()).unwrap();
        let payload = writer.payload();
        let read = |bytes: &[u8]| {
            let mut rows = Rows::read(bytes)?;
            let mut row = Vec::new();
            while rows.next_row(&mut row)? {}
            Ok::<(), Error>(())
        };
        for length in 0..payload.len() {
            let whole = 4 + KINDS.len() * 2;
            assert_eq!(read(&payload[..length]).is_ok(), length == whole, "{length}");
        }
        for at in 0..payload.len() {
            for bit in 0..8 {
                let mut changed = payload.to_vec();
                changed[at] ^= 1 << bit;
                let _ = read(&changed);
            }
        }
    }
}
