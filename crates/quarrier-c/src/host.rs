//! The environment and the machine of this process.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use quarrier::{Environment, Machine, OpenOptions, Opener};

/// Returns the machine, for planning runs. The first call loads its profile.
pub(crate) fn machine() -> &'static Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    MACHINE.get_or_init(|| Machine::of(&Environment::of_process()))
}

/// Creates an opener with the settings of the current environment. It opens sources until `stop` becomes
/// true.
pub(crate) fn opener(stop: &Arc<AtomicBool>) -> Opener {
    Opener::new(OpenOptions::default(), &Environment::of_process(), stop)
}
