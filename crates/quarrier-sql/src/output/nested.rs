//! Lists of lists in text formats, written as in JSON: `[[0,512],[4096,512]]`.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;

/// Whether a column holds lists of lists of integers.
fn is_nested(kind: &DataType) -> bool {
    let DataType::List(inner) = kind else { return false };
    matches!(inner.data_type(), DataType::List(value) if *value.data_type() == DataType::Int64)
}

/// The schema with strings instead of lists of lists.
pub(super) fn schema(schema: &SchemaRef) -> SchemaRef {
    if !schema.fields().iter().any(|field| is_nested(field.data_type())) {
        return Arc::clone(schema);
    }
    let fields = schema.fields().iter().map(|field| match is_nested(field.data_type()) {
        true => Arc::new(Field::new(field.name(), DataType::Utf8, true)),
        false => Arc::clone(field),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The rows with strings instead of lists of lists.
pub(super) fn batch(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = schema(&batch.schema());
    if schema == batch.schema() {
        return Ok(batch.clone());
    }
    let columns = batch.columns().iter().map(|column| match is_nested(column.data_type()) {
        true => Arc::new(strings(column)) as Arc<dyn Array>,
        false => Arc::clone(column),
    });
    RecordBatch::try_new(schema, columns.collect())
}

fn strings(column: &Arc<dyn Array>) -> StringArray {
    let lists = column.as_list::<i32>();
    lists.iter().map(|list| list.map(|list| format!("[{}]", joined(&list)))).collect()
}

/// The inner lists, separated by commas.
fn joined(list: &Arc<dyn Array>) -> String {
    let inner = list.as_list::<i32>().iter().map(|numbers| match numbers {
        Some(numbers) => {
            let numbers = numbers.as_primitive::<Int64Type>().iter();
            let shown = numbers.map(|n| n.map_or("null".to_string(), |n| n.to_string()));
            format!("[{}]", shown.collect::<Vec<_>>().join(","))
        }
        None => "null".to_string(),
    });
    inner.collect::<Vec<_>>().join(",")
}
