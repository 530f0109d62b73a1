//! `cargo xtask check`: the checks that CI runs before the tests, quickest first.
//!
//! Cargo runs without `--workspace`: members outside `default-members` are left out on purpose,
//! because they take minutes to build.

use std::path::Path;
use std::process::{Command, ExitCode};

use crate::workspace::cargo;
use crate::{docs, tidy};

/// Runs every step and stops at the first failure, with its exit code.
pub(crate) fn run(root: &Path) -> ExitCode {
    let steps: [(&str, &dyn Fn() -> ExitCode); 5] = [
        ("cargo fmt --all --check", &|| status(cargo(root).args(["fmt", "--all", "--check"]))),
        ("tidy", &|| tidy::run(root)),
        ("cargo clippy --all-targets -- -D warnings", &|| {
            status(cargo(root).args(["clippy", "--all-targets", "--", "-D", "warnings"]))
        }),
        ("docs --check", &|| docs::run(root, docs::Mode::Check)),
        ("RUSTDOCFLAGS='-D warnings' cargo doc --no-deps", &|| {
            status(cargo(root).env("RUSTDOCFLAGS", "-D warnings").args(["doc", "--no-deps"]))
        }),
    ];
    first_failure(&steps)
}

fn first_failure(steps: &[(&str, &dyn Fn() -> ExitCode)]) -> ExitCode {
    for (name, step) in steps {
        println!("== {name}");
        let code = step();
        if code != ExitCode::SUCCESS {
            eprintln!("check: failed at: {name}");
            return code;
        }
    }
    println!("== all checks passed");
    ExitCode::SUCCESS
}

/// Returns the exit code of `command`; 1 if it could not start or a signal ended it.
fn status(command: &mut Command) -> ExitCode {
    match command.status() {
        Ok(status) => match status.code() {
            Some(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
            None => {
                eprintln!("check: {command:?} was ended by a signal");
                ExitCode::FAILURE
            }
        },
        Err(error) => {
            eprintln!("check: {command:?} did not start: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn the_first_failure_ends_the_run_with_its_code() {
        let later_steps = Cell::new(0);
        let code = first_failure(&[
            ("passes", &|| ExitCode::SUCCESS),
            ("fails", &|| ExitCode::from(7)),
            ("is not reached", &|| {
                later_steps.set(later_steps.get() + 1);
                ExitCode::SUCCESS
            }),
        ]);
        assert_eq!(code, ExitCode::from(7));
        assert_eq!(later_steps.get(), 0);
    }

    #[test]
    fn passing_steps_pass() {
        assert_eq!(first_failure(&[("passes", &|| ExitCode::SUCCESS)]), ExitCode::SUCCESS);
    }

    #[test]
    fn a_command_that_does_not_start_fails() {
        assert_eq!(status(&mut Command::new("./no-such-program")), ExitCode::FAILURE);
    }
}
