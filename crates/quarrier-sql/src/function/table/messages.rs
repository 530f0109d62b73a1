//! `messages(source, format)` with wrong arguments. Calls with two string literals never get here:
//! they are opened like files, before the statement is planned.

use std::sync::Arc;

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::Result;

use crate::Error;

/// The table function.
#[derive(Debug)]
pub(super) struct Messages;

impl TableFunctionImpl for Messages {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let count = args.exprs().len();
        let usage = "messages('trades.log', 'fix')";
        let reason = match count {
            2 => format!("messages(…): both arguments are strings in single quotes; write {usage}"),
            _ => format!("messages(…): {count} arguments were given; write {usage}"),
        };
        Err(Error::text(reason).into())
    }
}
