//! `cargo xtask docs`: writes or checks `docs/cli.md`, which the command line generates.
//!
//! The options are defined once, where they are parsed; the hidden subcommand `help-markdown`
//! prints them, and this task keeps the file equal.

use std::fs;
use std::path::Path;
use std::process::{ExitCode, Stdio};

use crate::workspace::cargo;

const PATH: &str = "docs/cli.md";

/// What to do with the fresh text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Write it to the file.
    Write,
    /// Compare it with the file.
    Check,
}

/// Writes or checks `docs/cli.md`; prints one line on failure.
pub(crate) fn run(root: &Path, mode: Mode) -> ExitCode {
    let done = generate(root).and_then(|fresh| match mode {
        Mode::Write => write(root, &fresh),
        Mode::Check => {
            let stored = fs::read_to_string(root.join(PATH)).ok();
            compare(stored.as_deref(), &fresh)
        }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the Markdown that the command line prints.
fn generate(root: &Path) -> Result<String, String> {
    let what = "cargo run -q -p quarrier-cli -- help-markdown";
    let output = cargo(root)
        .args(["run", "-q", "-p", "quarrier-cli", "--", "help-markdown"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{PATH}:1: `{what}` did not start: {error}; is cargo in PATH?"))?;
    if !output.status.success() {
        return Err(format!(
            "{PATH}:1: `{what}` failed ({}); run it by hand and fix its errors",
            output.status
        ));
    }
    match String::from_utf8(output.stdout) {
        Ok(text) if !text.trim().is_empty() => Ok(text),
        Ok(_) => Err(format!("{PATH}:1: `{what}` printed nothing; fix the subcommand")),
        Err(_) => {
            Err(format!("{PATH}:1: `{what}` printed bytes that are not UTF-8; fix the subcommand"))
        }
    }
}

fn write(root: &Path, fresh: &str) -> Result<(), String> {
    let path = root.join(PATH);
    let folder = path.parent().unwrap_or(root);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&path, fresh))
        .map_err(|error| format!("{PATH}:1: cannot write it: {error}; check the folder's rights"))
}

/// Fails with the first line that differs. Line endings do not count, because git may convert them.
fn compare(stored: Option<&str>, fresh: &str) -> Result<(), String> {
    let Some(stored) = stored else {
        return Err(format!("{PATH}:1: the file is missing; run `cargo xtask docs`"));
    };
    let stored = stored.replace("\r\n", "\n");
    let fresh = fresh.replace("\r\n", "\n");
    if stored == fresh {
        return Ok(());
    }
    let same_lines = stored.lines().zip(fresh.lines()).take_while(|(old, new)| old == new).count();
    Err(format!(
        "{PATH}:{}: stale, the command line prints other text; run `cargo xtask docs`",
        same_lines + 1
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stored: Option<&str>, fresh: &str, expected: Result<(), &str>) {
        match (compare(stored, fresh), expected) {
            (Ok(()), Ok(())) => {}
            (Err(problem), Err(start)) => {
                assert!(problem.starts_with(start), "{problem}");
                assert!(problem.ends_with("run `cargo xtask docs`"), "{problem}");
                assert!(!problem.contains('\n'), "{problem}");
            }
            (got, expected) => panic!("got {got:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn an_equal_file_passes_with_any_line_endings() {
        check(Some("# a\nb\n"), "# a\nb\n", Ok(()));
        check(Some("# a\r\nb\r\n"), "# a\nb\n", Ok(()));
    }

    #[test]
    fn a_stale_or_missing_file_fails_with_one_line() {
        check(Some("# a\nb\n"), "# a\nc\n", Err("docs/cli.md:2: stale"));
        check(Some("# a\n"), "# a\nc\n", Err("docs/cli.md:2: stale"));
        check(None, "# a\n", Err("docs/cli.md:1: the file is missing"));
    }
}
