//! Standard output: both binaries write it only through this module, which turns a failed write into an
//! exit code.
//!
//! The process remembers a failed write even if the caller drops the error. [`end`] checks for one, so
//! no command can succeed after losing output.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::OnceLock;

use quarrier_report::{EscapingWriter, Manner};

use crate::{Outcome, complain};

/// Why standard output can no longer be written.
#[derive(Debug)]
enum Failure {
    /// The reader closed the pipe: it has all it wanted.
    Closed,
    /// The system's error.
    Other(String),
}

/// The first failure of this process.
static FAILURE: OnceLock<Failure> = OnceLock::new();

/// A writer to standard output, buffered only on a terminal.
#[derive(Debug, Default)]
pub struct StandardOutput {
    is_terminal: bool,
}

impl StandardOutput {
    /// Standard output of this process.
    #[must_use]
    pub fn new() -> Self {
        StandardOutput { is_terminal: io::stdout().is_terminal() }
    }

    /// Whether the output is a terminal.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// The same writer, but harmful characters are escaped on a terminal.
    #[must_use]
    pub fn shown(self, manner: Manner) -> Box<dyn Write + Send> {
        match self.is_terminal {
            true => Box::new(EscapingWriter::new(self, manner)),
            false => Box::new(self),
        }
    }
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match self.is_terminal {
            true => io::stdout().write(bytes),
            // The writer of the standard library would scan everything for line feeds.
            false => descriptor().and_then(|mut file| file.write(bytes)),
        };
        written.inspect_err(remember)
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.is_terminal {
            true => io::stdout().flush().inspect_err(remember),
            false => Ok(()),
        }
    }
}

/// Standard output as a file, opened once.
fn descriptor() -> io::Result<&'static File> {
    static DESCRIPTOR: OnceLock<File> = OnceLock::new();
    if let Some(file) = DESCRIPTOR.get() {
        return Ok(file);
    }
    let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    Ok(DESCRIPTOR.get_or_init(|| file))
}

fn remember(error: &io::Error) {
    let failure = match error.kind() {
        // The caller tries again.
        io::ErrorKind::Interrupted => return,
        io::ErrorKind::BrokenPipe => Failure::Closed,
        _ => Failure::Other(error.to_string()),
    };
    // A later failure is a consequence of the first.
    let _ = FAILURE.set(failure);
}

/// Whether a write to standard output has failed. [`end`] reports it, so no other code needs to.
#[must_use]
pub fn has_failed() -> bool {
    FAILURE.get().is_some()
}

/// Turns `code` into the exit code of the command: 2, with one line on standard error, if its output
/// could not be written. A closed pipe is success, unless `code` says otherwise.
#[must_use]
pub fn end(code: u8) -> ExitCode {
    let (nothing, failed) = (Outcome::Nothing as u8, Outcome::Failed as u8);
    ExitCode::from(match FAILURE.get() {
        None => code,
        Some(Failure::Closed) if code == nothing => Outcome::Found as u8,
        Some(Failure::Closed) => code,
        Some(Failure::Other(error)) => {
            complain(&format!("standard output: cannot write: {error}"));
            failed
        }
    })
}
