//! Packs the rows of answers into tables.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use quarrier_messages::Table;
use quarrier_native::sql::{Batches, Refused, Rows};
use quarrier_sql::Rows as Found;
use tokio::runtime::Handle;

use crate::refused::refused;

/// Waits for all rows of an answer on this thread. Returns them in packed columns if these support
/// all types, and otherwise as Arrow batches.
pub(crate) fn packed(mut found: Found, handle: &Handle, workers: usize) -> Result<Rows, Refused> {
    let schema = named_apart(found.schema());
    let mut failed = None;
    let (next_schema, said) = (Arc::clone(&schema), &mut failed);
    let mut next = || match handle.block_on(found.next()) {
        Ok(batch) => Some(with_schema(&batch?, &next_schema)),
        Err(error) => {
            *said = Some(refused(error));
            None
        }
    };
    let rows = match schema.fields().iter().all(|field| has_place(field.data_type())) {
        true => {
            let table = Table::from_batches(&schema, std::iter::from_fn(next), workers);
            table.map(|table| Rows::Packed(Arc::new(table))).map_err(|error| error.to_string())
        }
        false => {
            let batches: Result<_, ArrowError> = std::iter::from_fn(&mut next).collect();
            let rows = |batches| Rows::Arrow(Arc::new(Batches { schema, batches }));
            batches.map(rows).map_err(|error| error.to_string())
        }
    };
    match failed {
        Some(refused) => Err(refused),
        None => rows.map_err(|reason| Refused::Engine { reason }),
    }
}

/// Whether packed columns return values of this type unchanged.
fn has_place(data_type: &DataType) -> bool {
    use DataType as T;
    match data_type {
        T::Null | T::Boolean | T::Float16 | T::Float32 | T::Float64 | T::Date32 | T::Date64 => true,
        T::Int8 | T::Int16 | T::Int32 | T::Int64 => true,
        T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64 => true,
        T::Decimal32(..) | T::Decimal64(..) | T::Decimal128(..) => true,
        T::Timestamp(..) | T::Utf8 | T::LargeUtf8 | T::Utf8View => true,
        T::Dictionary(_, values) => has_place(values),
        // Structs would become several columns, and binary values that are not UTF-8 would be
        // refused.
        _ => false,
    }
}

/// Renames columns so that their names are unique, as in `x` and `x (2)`, and makes them nullable.
fn named_apart(schema: &SchemaRef) -> SchemaRef {
    let mut taken = HashSet::new();
    let field = |field: &Arc<Field>| {
        let mut name = field.name().clone();
        let mut number = 1;
        while !taken.insert(name.clone()) {
            number += 1;
            name = format!("{} ({number})", field.name());
        }
        Field::new(name, field.data_type().clone(), true)
    };
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

fn with_schema(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch.columns().to_vec();
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}
