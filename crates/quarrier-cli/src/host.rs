//! The environment and machine of this process, looked up once.

use std::sync::OnceLock;

use quarrier::case::Notes;
use quarrier::{Environment, Machine};

/// Proxies, credentials, cache folder.
pub fn environment() -> &'static Environment {
    static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();
    ENVIRONMENT.get_or_init(Environment::of_process)
}

/// The entries about this process in the case file of an output folder.
pub(crate) fn notes(command: &str) -> Notes {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    Notes { command: Some(command.to_string()), host: host.map(|host| host.trim_end().to_string()) }
}

/// The machine, for planning runs and comparing them with its ceiling.
pub fn machine() -> &'static Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    MACHINE.get_or_init(|| Machine::of(environment()))
}
