//! The environment and the machine of this process.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use quarrier::{Environment, Machine, OpenOptions, Opener};

/// The machine, by which runs are planned. Its profile is loaded once, when it is first needed.
pub(crate) fn machine() -> &'static Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    MACHINE.get_or_init(|| Machine::of(&Environment::of_process()))
}

/// Opens sources by the current environment, since programs change theirs.
pub(crate) fn opener(options: OpenOptions, stop: &Arc<AtomicBool>) -> Opener {
    Opener::new(options, &Environment::of_process(), stop)
}

/// The current environment, and the machine.
pub(crate) fn known() -> (Environment, Machine) {
    (Environment::of_process(), machine().clone())
}
