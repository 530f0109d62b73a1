//! One module per command.

pub(crate) mod cache;
pub(crate) mod carve;
pub(crate) mod cluster;
pub(crate) mod completions;
pub(crate) mod engines;
pub(crate) mod explain;
pub(crate) mod files;
pub(crate) mod filter;
pub(crate) mod gathered;
pub(crate) mod gauge;
pub(crate) mod load;
pub(crate) mod markdown;
pub(crate) mod mount;
pub(crate) mod packed;
pub(crate) mod pages;
mod program;
pub(crate) mod query;
mod results;
pub(crate) mod search;
pub(crate) mod spread;
pub(crate) mod verify;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier::source::line_of;
use quarrier::{Opener, read_names};

/// A closed pipe is success: the reader has all it wanted.
fn is_closed_pipe(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::BrokenPipe
}

/// The names given, then those in the files of names.
///
/// # Errors
/// Those of [`read_names`].
fn all_names(
    given: &[OsString],
    files_from: &[PathBuf],
    stop: &AtomicBool,
) -> quarrier::Result<Vec<OsString>> {
    let mut names = given.to_vec();
    for path in files_from {
        names.extend(read_names(path, stop)?);
    }
    Ok(names)
}

/// Reports that the cache of remote sources is out of use, if so.
fn warn_of_cache(opener: &Opener) {
    if let Some(warning) = opener.cache_warning() {
        crate::complain(&warning);
    }
}

/// Reports why a command failed. After a signal, the outcome is an interruption.
fn failed(message: &str, stop: &AtomicBool) -> crate::Outcome {
    crate::complain(message);
    match stop.load(Ordering::Relaxed) {
        true => crate::Outcome::Interrupted,
        false => crate::Outcome::Failed,
    }
}

/// Reports a line about a source, and adds the source's name unless the line has it.
fn complain_of(name: &str, line: &str) {
    crate::complain(&line_of(name, line));
}

/// The outcome of a command whose write to standard output failed. [`crate::end`] reports the error
/// once.
fn broken_output(error: &std::io::Error) -> crate::Outcome {
    match is_closed_pipe(error) {
        true => crate::Outcome::Found,
        false => crate::Outcome::Failed,
    }
}

/// Writes `text`, which needs no escaping, to standard output; a closed pipe is success.
pub(crate) fn print(text: &str) -> crate::Outcome {
    print_to(crate::StandardOutput::new(), text)
}

/// Like [`print`], for JSON, whose values are escaped on a terminal.
fn print_json(text: &str) -> crate::Outcome {
    print_to(crate::StandardOutput::new().shown(quarrier_report::Manner::Json), text)
}

fn print_to(mut out: impl std::io::Write, text: &str) -> crate::Outcome {
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_or_else(|error| broken_output(&error), |()| crate::Outcome::Found)
}
