//! `quarrier search --list-engines`.

use std::io::Write;

use quarrier_search::EngineName;

use crate::Outcome;

/// Prints each engine and whether this machine has it.
pub(crate) fn list() -> Outcome {
    let mut out = std::io::stdout().lock();
    for engine in EngineName::ALL {
        let there = if engine.is_available() { "available" } else { "not on this CPU" };
        if writeln!(out, "{:14} {there}", engine.name()).is_err() {
            break; // nobody reads on
        }
    }
    Outcome::Found
}
