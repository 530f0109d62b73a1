//! Conditions on columns whose possible values are known before the search, such as patterns or
//! file types. These conditions restrict the search.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, new_null_array};
use datafusion::arrow::datatypes::Schema;
use datafusion::catalog::Session;
use datafusion::common::cast::as_boolean_array;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::Expr;

/// Whether `filter` refers to some of these columns and to no others.
pub(super) fn is_of(filter: &Expr, names: &[&str]) -> bool {
    let columns = filter.column_refs();
    !columns.is_empty()
        && columns.iter().all(|column| names.contains(&column.name.as_str()))
        && !filter.is_volatile()
}

/// For each row of `known`, whether `filter` is true. `known` holds the columns that `filter`
/// refers to, by index into `schema`.
pub(super) fn chosen(
    state: &dyn Session,
    filter: &Expr,
    schema: &Schema,
    known: &[(usize, ArrayRef)],
) -> Result<Vec<bool>> {
    let rows = known.first().map_or(0, |(_, values)| values.len());
    let nullable = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    let schema = Arc::new(Schema::new(nullable.collect::<Vec<_>>()));
    let columns = schema.fields().iter().enumerate().map(|(place, field)| {
        match known.iter().find(|(at, _)| *at == place) {
            Some((_, values)) => Arc::clone(values),
            None => new_null_array(field.data_type(), rows),
        }
    });
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns.collect())?;
    let condition = state.create_physical_expr(filter.clone(), &DFSchema::try_from(schema)?)?;
    let answers = condition.evaluate(&batch)?.into_array(rows)?;
    Ok(as_boolean_array(&answers)?.iter().map(|answer| answer == Some(true)).collect())
}
