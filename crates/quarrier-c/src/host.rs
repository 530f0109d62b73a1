//! What this process knows of its environment and its machine.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use quarrier::{Environment, Machine, OpenOptions, Opener};

/// The machine, by which runs are planned. Its profile is loaded once, when it is first needed.
pub(crate) fn machine() -> &'static Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    MACHINE.get_or_init(|| Machine::of(&Environment::of_process()))
}

/// Opens sources by what the environment says now, until `stop` becomes true.
pub(crate) fn opener(stop: &Arc<AtomicBool>) -> Opener {
    Opener::new(OpenOptions::default(), &Environment::of_process(), stop)
}
