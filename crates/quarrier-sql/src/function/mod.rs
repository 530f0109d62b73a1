//! Functions and table functions, one file each.

mod bounded;
mod mode;
mod named_cast;
mod native;
pub(crate) mod one_value;
mod quantified;
mod table;

pub(crate) use bounded::{Wide, bounded, is_bounded, is_wide, planned};
pub(crate) use table::{FoundExec, Host, Notes};

use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use datafusion::prelude::SessionContext;
use quarrier_exact::{all_checked, all_floats, all_totals};

use crate::rewrite::Functions;

/// Registers all functions. Notes on their answers go to `notes`.
pub(crate) fn register(context: &SessionContext, notes: &Notes, host: &Host) {
    table::register(context, notes, host);
    context.register_udaf(AggregateUDF::new_from_impl(mode::Mode::default()));
    for function in all_totals() {
        context.register_udaf(function);
    }
    for function in native::all() {
        context.register_udf(function);
    }
    for function in quantified::all().into_iter().chain(all_checked()).chain(all_floats()) {
        context.register_udf(function);
    }
    context.register_udf(ScalarUDF::new_from_impl(named_cast::NamedCast::default()));
    bounded::register(context);
}

/// The names of functions that compute over several rows: aggregates and window functions.
pub(crate) fn of_rows(context: &SessionContext) -> Functions {
    let state = context.state();
    Functions {
        aggregates: state.aggregate_functions().keys().cloned().collect(),
        windows: state.window_functions().keys().cloned().collect(),
    }
}
