//! What is handed over to `quarrier-sql`: `quarrier query`, for it has all of SQL, and
//! `quarrier explain` over Parquet, which only it reads.

pub(crate) mod account;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use crate::{Outcome, complain};

/// The second binary.
const NAME: &str = "quarrier-sql";

/// Becomes `quarrier-sql`, with the arguments that stand behind `query`.
pub(crate) fn run() -> Outcome {
    hand_over("query", 2)
}

/// Becomes `quarrier-sql` with the arguments but for the first few; `what` needs it.
pub(crate) fn hand_over(what: &str, skipped: usize) -> Outcome {
    let arguments: Vec<OsString> = std::env::args_os().skip(skipped).collect();
    let mut last = None;
    for path in places() {
        // Does not return where it succeeds.
        let error = Command::new(&path).args(&arguments).exec();
        if error.kind() != std::io::ErrorKind::NotFound {
            last = Some(format!("{}: cannot start: {error}", path.display()));
            break;
        }
    }
    complain(&last.unwrap_or_else(|| {
        format!(
            "{what} needs {NAME}, which is neither beside this binary nor on PATH; build it with \
             'make all'"
        )
    }));
    Outcome::Failed
}

/// Where it may stand: beside this binary, then on PATH.
fn places() -> Vec<PathBuf> {
    let beside = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.join(NAME)));
    beside.into_iter().chain([PathBuf::from(NAME)]).collect()
}
