//! Flattens Arrow's columns: fields of structs get their paths as names.

use std::collections::HashSet;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Fields, TimeUnit};

use crate::{Error, Kind, Result};

/// A column of a record batch, or a field of a struct in it.
#[derive(Debug)]
pub(super) struct Leaf {
    /// The path, separated by dots.
    pub(super) name: String,
    /// The type of its values, if it has any.
    pub(super) kind: Kind,
    /// The index of the column, and of the field at each level.
    path: Vec<usize>,
}

/// Returns all leaves, in order.
pub(super) fn leaves_of(fields: &Fields) -> Result<Vec<Leaf>> {
    let mut leaves = Vec::new();
    collect("", &mut Vec::new(), fields, &mut leaves)?;
    let mut names = HashSet::new();
    match leaves.iter().find(|leaf| !names.insert(&*leaf.name)) {
        Some(twice) => Err(refused(&twice.name, "is there twice; give one of them another name")),
        None => Ok(leaves),
    }
}

/// Maximum nesting of structs.
const DEPTH_MAX: usize = 128;

fn collect(
    prefix: &str,
    path: &mut Vec<usize>,
    fields: &Fields,
    leaves: &mut Vec<Leaf>,
) -> Result<()> {
    for (at, field) in fields.iter().enumerate() {
        let name = format!("{prefix}{}", field.name());
        path.push(at);
        match field.data_type() {
            DataType::Struct(_) if path.len() > DEPTH_MAX => {
                return Err(refused(&name, "is a struct in more than 128 others"));
            }
            DataType::Struct(fields) => collect(&format!("{name}."), path, fields, leaves)?,
            data_type => {
                let Some(kind) = kind_of(data_type) else {
                    let reason = format!("has the type {data_type}; leave it out, or cast it");
                    return Err(refused(&name, &reason));
                };
                leaves.push(Leaf { name, kind, path: path.clone() });
            }
        }
        path.pop();
    }
    Ok(())
}

pub(super) fn refused(name: &str, reason: &str) -> Error {
    Error::ArrowColumn { name: name.into(), reason: reason.into() }
}

/// Returns the type for values of an Arrow type, if their integers fit 64 bits, or else 38 digits.
fn kind_of(data_type: &DataType) -> Option<Kind> {
    use DataType as T;
    Some(match data_type {
        T::Null => Kind::Null,
        T::Boolean => Kind::Boolean,
        T::Int8 | T::Int16 | T::Int32 | T::Int64 => Kind::Integer,
        T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64 => Kind::Integer,
        T::Decimal32(_, scale)
        | T::Decimal64(_, scale)
        | T::Decimal128(_, scale)
        | T::Decimal256(_, scale) => match scale {
            ..=0 => Kind::Integer,
            1..=38 => Kind::Decimal { scale: *scale as u8 },
            _ => Kind::Float,
        },
        T::Float16 | T::Float32 | T::Float64 => Kind::Float,
        T::Date32 | T::Date64 => Kind::Date,
        T::Timestamp(
            TimeUnit::Second | TimeUnit::Millisecond | TimeUnit::Microsecond | TimeUnit::Nanosecond,
            _,
        ) => Kind::Timestamp,
        T::Utf8 | T::LargeUtf8 | T::Utf8View => Kind::Text,
        T::Binary | T::LargeBinary | T::BinaryView => Kind::Text,
        T::Dictionary(_, values) if !matches!(**values, T::Dictionary(..)) => kind_of(values)?,
        _ => return None,
    })
}

impl Leaf {
    /// Returns the leaf's array in a batch, and its validity.
    pub(super) fn array(&self, batch: &RecordBatch) -> (ArrayRef, Option<NullBuffer>) {
        let mut array = batch.column(self.path[0]);
        let mut nulls = array.logical_nulls();
        for &field in &self.path[1..] {
            array = array.as_struct().column(field);
            nulls = NullBuffer::union(nulls.as_ref(), array.logical_nulls().as_ref());
        }
        (array.clone(), nulls)
    }

    /// Returns the maximum bytes of its strings in a batch; 0 if it has none.
    pub(super) fn text_bytes(&self, batch: &RecordBatch) -> usize {
        match self.kind {
            Kind::Text => text_bytes(&self.array(batch).0),
            _ => 0,
        }
    }
}

fn text_bytes(array: &dyn Array) -> usize {
    use DataType as T;
    fn wide<O: OffsetSizeTrait>(ends: &[O]) -> usize {
        let end = |end: Option<&O>| end.map_or(0, |end| end.as_usize());
        end(ends.last()) - end(ends.first())
    }
    match array.data_type() {
        T::Utf8 => wide(array.as_string::<i32>().value_offsets()),
        T::LargeUtf8 => wide(array.as_string::<i64>().value_offsets()),
        T::Binary => wide(array.as_binary::<i32>().value_offsets()),
        T::LargeBinary => wide(array.as_binary::<i64>().value_offsets()),
        T::Utf8View => array.as_string_view().lengths().map(|length| length as usize).sum(),
        T::BinaryView => array.as_binary_view().lengths().map(|length| length as usize).sum(),
        T::Dictionary(..) => array.len() * longest_text(array.as_any_dictionary().values()),
        other => unreachable!("{other} holds no text"),
    }
}

fn longest_text(array: &dyn Array) -> usize {
    use DataType as T;
    fn wide<O: OffsetSizeTrait>(ends: &[O]) -> usize {
        ends.windows(2).map(|ends| (ends[1] - ends[0]).as_usize()).max().unwrap_or(0)
    }
    let view = |length: Option<u32>| length.map_or(0, |length| length as usize);
    match array.data_type() {
        T::Utf8 => wide(array.as_string::<i32>().value_offsets()),
        T::LargeUtf8 => wide(array.as_string::<i64>().value_offsets()),
        T::Binary => wide(array.as_binary::<i32>().value_offsets()),
        T::LargeBinary => wide(array.as_binary::<i64>().value_offsets()),
        T::Utf8View => view(array.as_string_view().lengths().max()),
        T::BinaryView => view(array.as_binary_view().lengths().max()),
        other => unreachable!("{other} holds no text"),
    }
}
