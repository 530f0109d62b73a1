//! Rows of answers as tables hold them.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use quarrier_messages::Table;
use quarrier_native::sql::{Batches, Refused, Rows};
use quarrier_sql::Rows as Found;
use tokio::runtime::Handle;

use crate::refused::refused;

/// All rows of an answer, waited for on this thread: in packed columns, where these have a place for
/// them, and else as they come.
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

/// Whether packed columns show values of this type as they are.
fn has_place(data_type: &DataType) -> bool {
    use DataType as T;
    match data_type {
        T::Null | T::Boolean | T::Float16 | T::Float32 | T::Float64 | T::Date32 | T::Date64 => true,
        T::Int8 | T::Int16 | T::Int32 | T::Int64 => true,
        T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64 => true,
        T::Decimal32(..) | T::Decimal64(..) | T::Decimal128(..) => true,
        T::Timestamp(..) | T::Utf8 | T::LargeUtf8 | T::Utf8View => true,
        T::Dictionary(_, values) => has_place(values),
        // The fields of a struct become columns; bytes that are not UTF-8 are refused.
        _ => false,
    }
}

/// The columns, each with a name of its own: `x` and `x (2)`. Any value may be NULL.
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
