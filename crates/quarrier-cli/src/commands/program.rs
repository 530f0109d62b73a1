//! Hands over to a program beside this one.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Outcome, complain};

/// Becomes the program with this name; `missing` is the error if there is none.
pub(super) fn become_program(name: &str, arguments: &[OsString], missing: &str) -> Outcome {
    let mut last = None;
    for path in places(name) {
        // Returns only on failure.
        let error = Command::new(&path).args(arguments).exec();
        if error.kind() != std::io::ErrorKind::NotFound {
            last = Some(format!("{}: cannot start: {error}", path.display()));
            break;
        }
    }
    complain(&last.unwrap_or_else(|| missing.to_string()));
    Outcome::Failed
}

/// Candidate locations: the folder of this program, the package's libexec, then PATH.
fn places(name: &str) -> Vec<PathBuf> {
    let program = std::env::current_exe().ok();
    let folder = program.as_deref().and_then(Path::parent);
    let near = folder.map(|bin| [bin.join(name), bin.join("../libexec/quarrier").join(name)]);
    near.into_iter().flatten().chain([PathBuf::from(name)]).collect()
}
