//! The binary `quarrier`: see the library of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    quarrier_cli::run(None)
}
