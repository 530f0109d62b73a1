//! Single rows and slices of a table.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PySlice;

use super::Table;
use crate::sequence;
use crate::sql::{Batches, Rows};

/// Returns a row as a dict by its index, or a table by a slice.
pub(super) fn item<'py>(
    table: &Bound<'py, Table>,
    key: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, own) = (key.py(), table.get());
    let rows = own.__len__();
    if let Ok(slice) = key.cast::<PySlice>() {
        let slice = slice.indices(rows as isize)?;
        if slice.step != 1 {
            return Err(PyValueError::new_err("a slice of a table cannot have a step"));
        }
        let part = cut(&own.rows, slice.start as usize, slice.slicelength);
        return Ok(Bound::new(py, Table::of(part))?.into_any());
    }
    let at = sequence::place(key.extract()?, rows, "row")?;
    Table::of(cut(&own.rows, at, 1)).to_pylist(py)?.get_item(0)
}

/// Returns `count` rows from `start` on; all of them must exist.
fn cut(rows: &Rows, start: usize, count: usize) -> Rows {
    let shown = match rows {
        Rows::Packed(table) => {
            let wanted: Vec<u64> = (start as u64..(start + count) as u64).collect();
            let columns: Vec<usize> = (0..table.columns().len()).collect();
            return Rows::Packed(Arc::new(table.take(&wanted, &columns, 1)));
        }
        Rows::Arrow(shown) => shown,
    };
    let (mut skip, mut left) = (start, count);
    let mut batches = Vec::new();
    for batch in &shown.batches {
        let here = batch.num_rows().saturating_sub(skip).min(left);
        if here > 0 {
            batches.push(batch.slice(skip, here));
        }
        skip = skip.saturating_sub(batch.num_rows());
        left -= here;
    }
    Rows::Arrow(Arc::new(Batches { schema: Arc::clone(&shown.schema), batches }))
}
