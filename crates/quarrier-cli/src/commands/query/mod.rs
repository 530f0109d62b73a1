//! Hands over to `quarrier-sql`: `quarrier query` and `quarrier serve`, because it has all of SQL, and
//! `quarrier explain` over Parquet, which only it reads.

pub(crate) mod account;

use std::ffi::OsString;

use super::program::become_program;
use crate::Outcome;

/// The second binary.
const NAME: &str = "quarrier-sql";

/// Becomes `quarrier-sql`, with the arguments after `query`.
pub(crate) fn run() -> Outcome {
    hand_over("query", 2)
}

/// Becomes `quarrier-sql`, with the arguments from `serve` on.
pub(crate) fn serve() -> Outcome {
    hand_over("serve", 1)
}

/// Becomes `quarrier-sql`, with all arguments except the first `skipped`; `what` names the caller in an
/// error.
pub(crate) fn hand_over(what: &str, skipped: usize) -> Outcome {
    let arguments: Vec<OsString> = std::env::args_os().skip(skipped).collect();
    let missing = format!(
        "{what} needs {NAME}, which is neither beside this program nor in ../libexec/quarrier \
         nor on PATH; it comes with pip install 'quarrier[sql]', with packages and archives, and \
         with 'make install'"
    );
    become_program(NAME, &arguments, &missing)
}
