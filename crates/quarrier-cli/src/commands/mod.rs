//! One module a verb.

pub(crate) mod carve;
pub(crate) mod engines;
pub(crate) mod explain;
pub(crate) mod filter;
pub(crate) mod gauge;
mod machine;
pub(crate) mod markdown;
pub(crate) mod query;
pub(crate) mod search;

/// Writes `text` to standard output; a closed pipe is success.
fn print(text: &str) -> crate::Outcome {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => crate::Outcome::Found,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => crate::Outcome::Found,
        Err(error) => {
            crate::complain(&format!("standard output: cannot write: {error}"));
            crate::Outcome::Failed
        }
    }
}
