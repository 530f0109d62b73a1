//! The rows of carved files as columns.

use std::io;
use std::sync::{Arc, LazyLock};

use arrow_array::builder::{StringBuilder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use quarrier_carve::folder::Row;
use serde_json::{Map, Value};

use crate::object::sealed::to_io;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    /// A string that is JSON.
    Json,
}

/// The columns: those of `quarrier carve --format arrow` with all options. Values may be missing from
/// `container` on.
const COLUMNS: [(&str, Kind); 18] = [
    ("source", Kind::Text),
    ("type", Kind::Text),
    ("offset", Kind::Number),
    ("length", Kind::Number),
    ("extents", Kind::Json),
    ("status", Kind::Text),
    ("reason", Kind::Text),
    ("sha256", Kind::Text),
    ("path", Kind::Text),
    ("container", Kind::Text),
    ("file", Kind::Text),
    ("inode", Kind::Number),
    ("state", Kind::Text),
    ("modified", Kind::Text),
    ("known", Kind::Json),
    ("md5", Kind::Text),
    ("sha1", Kind::Text),
    ("blake3", Kind::Text),
];

pub(super) static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let field = |(name, kind): &(&str, Kind)| match kind {
        Kind::Text | Kind::Json => Field::new(*name, DataType::Utf8, true),
        Kind::Number => Field::new(*name, DataType::UInt64, true),
    };
    Arc::new(Schema::new(COLUMNS.iter().map(field).collect::<Vec<_>>()))
});

/// Sorts the rows of a source like those of its report: by offset, an archive before its members.
pub fn in_report_order(rows: &mut [Row]) {
    rows.sort_by(|one, other| {
        let key = |row: &Row| (row.offset, row.number());
        key(one).cmp(&key(other)).then_with(|| one.kind.cmp(&other.kind))
    });
}

pub(super) fn batch_of(rows: &[Row]) -> io::Result<RecordBatch> {
    let values = rows.iter().map(|row| serde_json::from_str(&row.to_json()));
    let values: Vec<Value> = values.collect::<std::result::Result<_, _>>()?;
    let column = |(name, kind): &(&str, Kind)| -> ArrayRef {
        let values = values.iter().map(|row| row.get(name).filter(|value| !value.is_null()));
        match kind {
            Kind::Number => {
                let mut numbers = UInt64Builder::new();
                values.for_each(|value| numbers.append_option(value.and_then(Value::as_u64)));
                Arc::new(numbers.finish())
            }
            Kind::Text | Kind::Json => {
                let mut strings = StringBuilder::new();
                for value in values {
                    match value {
                        Some(Value::String(text)) => strings.append_value(text),
                        other => strings.append_option(other.map(Value::to_string)),
                    }
                }
                Arc::new(strings.finish())
            }
        }
    };
    let columns = COLUMNS.iter().map(column).collect();
    RecordBatch::try_new(Arc::clone(&SCHEMA), columns).map_err(to_io)
}

/// A row of a batch; `None` if it is none.
pub(super) fn row_of(batch: &RecordBatch, at: usize) -> Option<Row> {
    let mut object = Map::new();
    for ((name, kind), column) in COLUMNS.iter().zip(batch.columns()) {
        if column.is_null(at) {
            continue;
        }
        let value = match kind {
            Kind::Number => column.as_primitive_opt::<UInt64Type>()?.value(at).into(),
            Kind::Text => column.as_string_opt::<i32>()?.value(at).into(),
            Kind::Json => serde_json::from_str(column.as_string_opt::<i32>()?.value(at)).ok()?,
        };
        object.insert((*name).to_string(), value);
    }
    Row::from_json(&Value::Object(object).to_string())
}
