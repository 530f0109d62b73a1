//! Hands over to `quarrier-cluster`: `quarrier cluster`, and searches on a cluster.

use std::ffi::OsString;

use super::program::become_program;
use crate::Outcome;

/// The third binary.
const NAME: &str = "quarrier-cluster";

/// Becomes `quarrier-cluster`, with all arguments except the first `skipped`.
pub(crate) fn hand_over(skipped: usize) -> Outcome {
    begin(std::env::args_os().skip(skipped).collect())
}

/// Becomes `quarrier-cluster`, with the arguments of `quarrier-sql`.
pub(crate) fn hand_over_query() -> Outcome {
    begin(std::iter::once("query".into()).chain(std::env::args_os().skip(1)).collect())
}

fn begin(arguments: Vec<OsString>) -> Outcome {
    let missing = "a cluster needs quarrier-cluster, which is neither beside this program nor in \
                   ../libexec/quarrier nor on PATH; 'make cluster' builds it";
    become_program(NAME, &arguments, missing)
}
