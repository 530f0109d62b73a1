//! `quarrier-cluster`: searches, carves and queries on many machines, by Apache DataFusion Ballista. `quarrier
//! cluster` and `--cluster` of `quarrier search`, `carve` and `query` run it.
//!
//! ```text
//!  client: sources ─→ units ─→ plan ────→ scheduler (Ballista: tasks, retries) ←─ door: begun units, requests
//!          join of objects ←─ rows ←──────────────┴─→ workers: units ─→ objects ─→ rows, or --to
//! ```
//!
//! A plan is rows that describe units, and one operator above them that runs each unit and answers with the
//! bytes of its object. So the scheduler may run a unit again whenever it doubts a worker: the objects are
//! equal, and the client takes one of them.

mod client;
mod door;
mod http;
mod kubernetes;
mod local;
mod plan;
mod query;
mod run;
mod runner;
mod scheduler;
mod sheet;
mod spread;
mod status;
mod task;
mod tls;
mod worker;

use std::ffi::OsString;
use std::process::ExitCode;

use quarrier_cli::{ClusterCommand, StandardOutput, cluster_arguments, complain, guarded, run_on};

/// The exit code of wrong use and failure.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    local::end_with_parent();
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "search" || first == "carve") {
        return run_on(&client::Client);
    }
    if arguments.first().is_some_and(|first| first == "query") {
        return guarded(|| query(arguments[1..].to_vec()));
    }
    guarded(|| obey(arguments))
}

/// Runs a query on a cluster. Returns the exit code.
fn query(arguments: Vec<OsString>) -> u8 {
    let code = quarrier_sql::query(arguments, Some(&spread::connect));
    spread::wait_for_runs();
    code
}

/// Runs a command of the cluster. Returns the exit code.
fn obey(arguments: Vec<OsString>) -> u8 {
    let done = match cluster_arguments(arguments) {
        Ok(ClusterCommand::Scheduler { listen, tls }) => scheduler::run(&listen, tls.as_deref()),
        Ok(ClusterCommand::Worker { scheduler, listen, cores, work, tls, name }) => {
            worker::run(worker::Options { scheduler, listen, cores, work, tls, name })
        }
        Ok(ClusterCommand::Status { scheduler, tls, is_json }) => {
            status::run(&scheduler, tls.as_deref(), is_json)
        }
        Ok(ClusterCommand::Kubernetes { workers, image }) => {
            print(&kubernetes::manifest(workers, &image))
        }
        Ok(ClusterCommand::Local { workers, command }) => match local::run(workers, &command) {
            Ok(code) => return code,
            Err(message) => Err(message),
        },
        Ok(_) => Err("this program does not have that command".to_string()),
        Err((help, true)) => print(&help),
        Err((wrong, false)) => Err(wrong),
    };
    match done {
        Ok(()) => 0,
        Err(message) => {
            complain(&message);
            FAILED
        }
    }
}

/// Prints to standard output.
fn print(text: &str) -> Result<(), String> {
    use std::io::Write;
    let mut out = StandardOutput::new();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| format!("standard output: {error}"))
}
