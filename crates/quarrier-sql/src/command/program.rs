//! The commands as functions, for this crate's program and for one that has a cluster.

use std::ffi::OsString;
use std::sync::Arc;

use quarrier_cli::{
    Query, StandardOutput, complain, query_arguments, query_on_cluster, serve_arguments,
};
use quarrier_core::threads;

use super::FAILED;
use crate::stack::Stack;
use crate::{Spread, Spreading};

/// Connects to the cluster at an address.
pub type Connect = dyn Fn(&str) -> Result<Arc<dyn Spread>, String>;

/// Runs the query that the arguments describe. Without `connect`, another program runs one on a cluster. Returns
/// the exit code.
pub fn query(arguments: Vec<OsString>, connect: Option<&Connect>) -> u8 {
    let query = match query_arguments(arguments) {
        Ok(query) => query,
        Err((help, true)) => return print(&help),
        Err((wrong, false)) => {
            complain(&wrong);
            return FAILED;
        }
    };
    if query.cluster.is_some() && connect.is_none() {
        return query_on_cluster();
    }
    let spread = match connected(&query, connect) {
        Ok(spread) => spread,
        Err(reason) => {
            complain(&reason);
            return FAILED;
        }
    };
    let stack = Stack::that_fits();
    let work = move || super::run(&query, stack, spread);
    match threads::alone_on_stack("", stack.bytes, work).map(std::thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        Ok(Err(_)) => FAILED,
        Err(error) => {
            complain(&format!("no thread to work in: {error}"));
            FAILED
        }
    }
}

fn connected(query: &Query, connect: Option<&Connect>) -> Result<Option<Spreading>, String> {
    let (Some(cluster), Some(connect)) = (&query.cluster, connect) else { return Ok(None) };
    Ok(Some(Spreading { on: connect(&cluster.at)?, is_required: cluster.is_required }))
}

/// Runs the server that the arguments describe. Returns the exit code.
pub fn serve(arguments: Vec<OsString>) -> u8 {
    match serve_arguments(arguments) {
        Ok(serve) => super::serve::run(&serve, Stack::that_fits()),
        Err((help, true)) => print(&help),
        Err((wrong, false)) => {
            complain(&wrong);
            FAILED
        }
    }
}

/// Prints to standard output. Returns the exit code.
fn print(text: &str) -> u8 {
    use std::io::Write;
    let mut out = StandardOutput::new();
    // The program reports a failed write when it ends.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    0
}
