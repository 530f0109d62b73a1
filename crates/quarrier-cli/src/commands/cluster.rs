//! Hands over to `quarrier-cluster`: `quarrier cluster`, and searches on a cluster.

use std::ffi::OsString;

use super::program::become_program;
use crate::Outcome;

/// The third binary.
const NAME: &str = "quarrier-cluster";

/// Becomes `quarrier-cluster`, with all arguments except the first `skipped`.
pub(crate) fn hand_over(skipped: usize) -> Outcome {
    let arguments: Vec<OsString> = std::env::args_os().skip(skipped).collect();
    let missing = "a cluster needs quarrier-cluster, which is neither beside this program nor in \
                   ../libexec/quarrier nor on PATH; 'make cluster' builds it";
    become_program(NAME, &arguments, missing)
}
