//! Functions and tables of our own, a file each.

mod native;
pub(crate) mod one_value;
mod quantified;
mod table;

pub(crate) use table::{FoundExec, Notes};

use datafusion::prelude::SessionContext;

/// Makes them known. What they have to say beside answers goes to `notes`.
pub(crate) fn register(context: &SessionContext, notes: &Notes) {
    table::register(context, notes);
    for function in native::all() {
        context.register_udf(function);
    }
    for function in quantified::all() {
        context.register_udf(function);
    }
}
