//! The environment and the machine of this process.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use quarrier::{Environment, Machine, OpenOptions, Opener};

/// Returns the machine that runs are planned for. Its profile is loaded once, at first use.
pub(crate) fn machine() -> &'static Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    MACHINE.get_or_init(|| Machine::of(&Environment::of_process()))
}

/// Makes an opener with the current environment, because programs may change theirs.
pub(crate) fn opener(options: OpenOptions, stop: &Arc<AtomicBool>) -> Opener {
    Opener::new(options, &Environment::of_process(), stop)
}

/// Returns the current environment.
pub(crate) fn environment() -> Environment {
    Environment::of_process()
}

/// Returns the current environment, and the machine.
pub(crate) fn environment_and_machine() -> (Environment, Machine) {
    (Environment::of_process(), machine().clone())
}
