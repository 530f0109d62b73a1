//! What this process knows of its environment and its machine, looked up once.

use std::sync::OnceLock;

use quarrier::{Environment, Machine};

/// Proxies, credentials, cache folder.
pub fn environment() -> &'static Environment {
    static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();
    ENVIRONMENT.get_or_init(Environment::of_process)
}

/// The machine, by which runs are planned and judged.
pub fn machine() -> &'static Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    MACHINE.get_or_init(|| Machine::of(environment()))
}
