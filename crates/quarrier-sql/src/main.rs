//! `quarrier-sql`: SQL over messages, files and findings. `quarrier query` runs it.
//!
//! ```text
//!  arguments (quarrier-cli's) ─→ command: one statement after another, all at once, or a prompt
//!  serve …                   ─→ command::serve: clients answered by quarrier-wire
//!  explain …, over Parquet   ─→ quarrier-cli, with the Parquet reader that it lacks
//! ```

mod command;
mod stack;

use std::process::ExitCode;

use quarrier_cli::{StandardOutput, complain, guarded, query_arguments, serve_arguments};
use quarrier_core::threads;

use command::FAILED;
use stack::Stack;

fn main() -> ExitCode {
    // No valid statement consists of only one of these words.
    if std::env::args_os().nth(1).is_some_and(|first| first == "explain") {
        return quarrier_cli::run(Some(&quarrier_parquet::Reader));
    }
    if std::env::args_os().nth(1).is_some_and(|first| first == "serve") {
        return guarded(serve);
    }
    guarded(query)
}

/// Runs the query that the arguments describe. Returns the exit code.
fn query() -> u8 {
    let arguments = std::env::args_os().skip(1).collect();
    let query = match query_arguments(arguments) {
        Ok(query) => query,
        Err((help, true)) => return print(&help),
        Err((wrong, false)) => {
            complain(&wrong);
            return FAILED;
        }
    };
    let stack = Stack::that_fits();
    let work = move || command::run(&query, stack);
    match threads::alone_on_stack("", stack.bytes, work).map(std::thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        Ok(Err(_)) => FAILED,
        Err(error) => {
            complain(&format!("no thread to work in: {error}"));
            FAILED
        }
    }
}

/// Runs the server that the arguments describe. Returns the exit code.
fn serve() -> u8 {
    match serve_arguments(std::env::args_os().skip(2).collect()) {
        Ok(serve) => command::serve::run(&serve, Stack::that_fits()),
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
