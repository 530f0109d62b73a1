//! The project's own checks, run as `cargo xtask <task>`.
//!
//! ```text
//! cargo xtask check ─┬─ cargo fmt --check
//!                    ├─ tidy    layering, manifests, left-over marks, links   (src/tidy/)
//!                    ├─ cargo clippy -D warnings
//!                    ├─ docs    is docs/cli.md what the program prints?    (src/docs.rs)
//!                    └─ cargo doc -D warnings
//! ```
//!
//! It uses the standard library only, so that it builds in seconds on a fresh checkout and never
//! waits for the dependencies that it checks.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool prints its results"
)]

mod check;
mod docs;
mod tidy;
mod workspace;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <task>

  check           all that CI runs before the tests; stops at the first failure
  tidy            layering, manifests, left-over marks, file lengths, paths, links, words
  docs            write docs/cli.md from the command line's own help
  docs --check    fail if docs/cli.md is stale
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = workspace::root();
    match words.as_slice() {
        ["check"] => check::run(&root),
        ["tidy"] => tidy::run(&root),
        ["docs"] => docs::run(&root, docs::Mode::Write),
        ["docs", "--check"] => docs::run(&root, docs::Mode::Check),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        [] => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
        _ => {
            eprint!("no such task: {}\n\n{USAGE}", words.join(" "));
            ExitCode::from(2)
        }
    }
}
