//! `quarrier search --list-engines`.

use quarrier_search::EngineName;

use crate::Outcome;

/// Prints each engine and whether this machine has it.
pub(crate) fn list() -> Outcome {
    let mut text = String::new();
    for engine in EngineName::ALL {
        let there = if engine.is_available() { "available" } else { "not on this CPU" };
        text.push_str(&format!("{:14} {there}\n", engine.name()));
    }
    super::print(&text)
}
