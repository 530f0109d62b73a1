//! Hands over to `quarrier-sql`: `quarrier query` and `quarrier serve`, because it has all of SQL, and
//! `quarrier explain` over Parquet, which only it reads.

pub(crate) mod account;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Outcome, complain};

/// The second binary.
const NAME: &str = "quarrier-sql";

/// Becomes `quarrier-sql`, with the arguments after `query`.
pub(crate) fn run() -> Outcome {
    hand_over("query", 2)
}

/// Becomes `quarrier-sql`, with the arguments from `serve` on.
pub(crate) fn serve() -> Outcome {
    hand_over("serve", 1)
}

/// Becomes `quarrier-sql`, with all arguments except the first `skipped`; `what` names the caller in an
/// error.
pub(crate) fn hand_over(what: &str, skipped: usize) -> Outcome {
    let arguments: Vec<OsString> = std::env::args_os().skip(skipped).collect();
    let mut last = None;
    for path in places() {
        // Returns only on failure.
        let error = Command::new(&path).args(&arguments).exec();
        if error.kind() != std::io::ErrorKind::NotFound {
            last = Some(format!("{}: cannot start: {error}", path.display()));
            break;
        }
    }
    complain(&last.unwrap_or_else(|| {
        format!(
            "{what} needs {NAME}, which is neither beside this program nor in ../libexec/quarrier \
             nor on PATH; it comes with pip install 'quarrier[sql]', with packages and archives, and \
             with 'make install'"
        )
    }));
    Outcome::Failed
}

/// Candidate locations: the folder of this program, the package's libexec, then PATH.
fn places() -> Vec<PathBuf> {
    let program = std::env::current_exe().ok();
    let folder = program.as_deref().and_then(Path::parent);
    let near = folder.map(|bin| [bin.join(NAME), bin.join("../libexec/quarrier").join(NAME)]);
    near.into_iter().flatten().chain([PathBuf::from(NAME)]).collect()
}
