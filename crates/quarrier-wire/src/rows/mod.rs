//! Columns of Arrow, value by value: as PostgreSQL writes them, in text and in binary, and as JSON.

mod binary;
mod json;
mod number;
mod text;
mod time;
mod view;

pub(crate) use json::{quoted, row_object};
pub(crate) use view::View;

use crate::failure::{Failure, Result, state};

/// What a value cannot be written as.
fn unwritable(what: &str) -> Failure {
    Failure::new(state::UNSUPPORTED, format!("{what}; CAST it in the statement"))
}

/// Reads what is certain to be there: lengths were checked when the view was made.
type Written = Result<()>;
