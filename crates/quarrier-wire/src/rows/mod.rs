//! Reads columns of Arrow value by value, and writes them as PostgreSQL does, in text and in
//! binary, and as JSON.

mod batch;
mod binary;
mod json;
mod number;
mod text;
mod time;
mod view;

pub use batch::Batch;
pub(crate) use batch::FormKey;
pub(crate) use json::{is_plain, quoted, row_object};
pub(crate) use view::View;

use arrow_array::RecordBatch;

use crate::failure::{Failure, Result, state};
use crate::value::{self, Value};

/// Returns rows as values.
///
/// # Errors
/// If a column has values of an unsupported type.
pub fn values(batch: &RecordBatch) -> Result<Vec<Vec<Value>>> {
    let columns = batch.columns().iter().map(View::of).collect::<Result<Vec<_>>>()?;
    let mut text = Vec::new();
    let mut one = |column: &View<'_>, row: usize| {
        if column.is_null(row) {
            return Ok(Value::Null);
        }
        text.clear();
        column.text(row, &mut text)?;
        value::read(column.kind, Some(&text), false)
    };
    let mut row = |row| columns.iter().map(|column| one(column, row)).collect();
    (0..batch.num_rows()).map(&mut row).collect()
}

/// Makes the error for a value that cannot be written.
fn unwritable(what: &str) -> Failure {
    Failure::new(state::UNSUPPORTED, format!("{what}; CAST it in the statement"))
}

/// The result of a write. Writers do not check lengths: they were checked when the view was made.
type Written = Result<()>;
