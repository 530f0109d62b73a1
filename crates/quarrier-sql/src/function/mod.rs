//! Functions and tables of our own, a file each.

mod native;
mod quantified;

use datafusion::prelude::SessionContext;

/// Makes them known. Table functions are registered here, too.
pub(crate) fn register(context: &SessionContext) {
    for function in native::all() {
        context.register_udf(function);
    }
    for function in quantified::all() {
        context.register_udf(function);
    }
}
