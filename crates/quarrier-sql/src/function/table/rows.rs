//! Builds batches row by row, for tables with few rows.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, Int64Builder, ListArray, ListBuilder, RecordBatch, RecordBatchOptions,
};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, ScalarValue};

use super::plan::Out;

/// Maximum number of rows in a batch.
const BATCH_ROWS: usize = 256;

/// Collects rows, and sends them as batches.
pub(super) struct RowsOut<'o> {
    out: &'o mut Out,
    /// A list of values for each requested column.
    columns: Vec<Vec<ScalarValue>>,
    rows: usize,
}

impl<'o> RowsOut<'o> {
    pub(super) fn new(out: &'o mut Out) -> Self {
        let columns = vec![Vec::new(); out.columns().len()];
        RowsOut { out, columns, rows: 0 }
    }

    /// Adds a row; `value` returns the value of any column by its index.
    pub(super) fn add(
        &mut self,
        mut value: impl FnMut(usize) -> ScalarValue,
    ) -> Result<ControlFlow<()>> {
        for (place, column) in self.out.columns().iter().zip(&mut self.columns) {
            column.push(value(*place));
        }
        self.rows += 1;
        if self.rows >= BATCH_ROWS.min(self.out.left()) {
            return self.flush();
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Sends the collected rows.
    pub(super) fn flush(&mut self) -> Result<ControlFlow<()>> {
        let rows = std::mem::take(&mut self.rows);
        if rows == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        let mut arrays = Vec::with_capacity(self.columns.len());
        for column in &mut self.columns {
            arrays.push(ScalarValue::iter_to_array(std::mem::take(column))?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(self.out.schema());
        let batch = RecordBatch::try_new_with_options(schema, arrays, &options)?;
        Ok(self.out.take(batch))
    }
}

/// A string, or NULL.
pub(super) fn text(value: Option<&str>) -> ScalarValue {
    ScalarValue::Utf8View(value.map(str::to_string))
}

/// An integer, or NULL.
pub(super) fn whole(value: Option<u64>) -> ScalarValue {
    ScalarValue::Int64(value.map(|value| i64::try_from(value).unwrap_or(i64::MAX)))
}

/// The type of [`pairs`].
pub(super) fn pairs_type() -> DataType {
    let pair = DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true)));
    DataType::List(Arc::new(Field::new_list_field(pair, true)))
}

/// A list of integer pairs: `[[offset, length], …]`.
pub(super) fn pairs(pairs: &[[u64; 2]]) -> ScalarValue {
    let mut list = ListBuilder::new(ListBuilder::new(Int64Builder::new()));
    for pair in pairs {
        let pair = pair.map(|number| Some(i64::try_from(number).unwrap_or(i64::MAX)));
        list.values().append_value(pair);
    }
    list.append(true);
    let list: ListArray = list.finish();
    debug_assert_eq!(list.data_type(), &pairs_type());
    ScalarValue::List(Arc::new(list))
}
