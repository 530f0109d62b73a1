//! One module a verb.

pub(crate) mod carve;
pub(crate) mod engines;
pub(crate) mod explain;
pub(crate) mod filter;
pub(crate) mod gauge;
pub(crate) mod markdown;
pub(crate) mod query;
pub(crate) mod search;

/// A closed pipe is success: the reader has what it wanted.
fn is_closed_pipe(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::BrokenPipe
}

fn broken_output(error: &std::io::Error) -> crate::Outcome {
    crate::complain(&format!("standard output: cannot write: {error}"));
    crate::Outcome::Failed
}

/// Writes `text`, which is harmless, to standard output; a closed pipe is success.
fn print(text: &str) -> crate::Outcome {
    print_to(std::io::stdout().lock(), text)
}

/// As [`print`], for JSON, whose values a terminal shows escaped.
fn print_json(text: &str) -> crate::Outcome {
    use quarrier_report::{Manner, on_terminal};
    print_to(on_terminal(std::io::stdout(), Manner::Json), text)
}

fn print_to(mut out: impl std::io::Write, text: &str) -> crate::Outcome {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => crate::Outcome::Found,
        Err(error) if is_closed_pipe(&error) => crate::Outcome::Found,
        Err(error) => broken_output(&error),
    }
}
