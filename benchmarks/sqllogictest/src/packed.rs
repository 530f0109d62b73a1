//! Packs tables of the engine, and keeps their types.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::catalog::TableProvider;
use datafusion::catalog::view::ViewTable;
use datafusion::common::Column;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, cast};
use quarrier_messages::Table;
use quarrier_sql::Messages;

/// Packs the rows; columns of types that packing widens (32-bit integers become 64-bit ones) are
/// cast back. `None` if packed columns lack a type.
pub(crate) fn table(
    schema: &SchemaRef,
    batches: Vec<RecordBatch>,
) -> anyhow::Result<Option<Arc<dyn TableProvider>>> {
    let is_held = |data_type: &DataType| {
        matches!(
            data_type,
            DataType::Boolean
                | DataType::Int8
                | DataType::Int16
                | DataType::Int32
                | DataType::Int64
                | DataType::UInt8
                | DataType::UInt16
                | DataType::UInt32
                | DataType::Float32
                | DataType::Float64
                | DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Utf8View
                | DataType::Date32
                | DataType::Timestamp(_, None)
        ) || matches!(data_type, DataType::Decimal128(precision, 0..) if *precision <= 18)
    };
    if !schema.fields().iter().all(|field| is_held(field.data_type())) {
        return Ok(None);
    }
    let rows = batches.into_iter().map(Ok::<_, ArrowError>);
    let messages = Arc::new(Messages::new(Arc::new(Table::from_batches(schema, rows, 1)?)));
    let has = messages.schema();
    let is_same = has.fields().len() == schema.fields().len()
        && has.fields().iter().zip(schema.fields()).all(|(a, b)| a.data_type() == b.data_type());
    if is_same {
        return Ok(Some(messages));
    }
    let columns: Vec<Expr> = schema
        .fields()
        .iter()
        .zip(has.fields())
        .map(|(wanted, held)| {
            let column = Expr::Column(Column::new_unqualified(held.name()));
            match wanted.data_type() == held.data_type() {
                true => column,
                false => cast(column, wanted.data_type().clone()).alias(wanted.name()),
            }
        })
        .collect();
    let scan = LogicalPlanBuilder::scan("packed", provider_as_source(messages), None)?;
    Ok(Some(Arc::new(ViewTable::new(scan.project(columns)?.build()?, None))))
}
