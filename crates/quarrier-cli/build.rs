//! The commit that the program is built from, for `--version`.
//!
//! ```text
//! QUARRIER_COMMIT of the environment ─┐
//! commit.txt, as git archive fills it ─┼─ the first that says something ─→ env!("QUARRIER_COMMIT")
//! git, where this is its work tree ───┘
//! ```
//!
//! A build without optimisation leaves the commit out: otherwise every commit would recompile all
//! dependent crates.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=QUARRIER_COMMIT");
    println!("cargo:rerun-if-changed=commit.txt");
    let is_development = std::env::var("PROFILE").is_ok_and(|profile| profile == "debug");
    let commit = given().or_else(archived).or_else(|| match is_development {
        true => Some("development build".to_string()),
        false => checked_out(),
    });
    println!("cargo:rustc-env=QUARRIER_COMMIT={}", commit.unwrap_or_default());
}

/// The commit that a packager passes in the environment.
fn given() -> Option<String> {
    std::env::var("QUARRIER_COMMIT").ok().filter(|commit| !commit.is_empty())
}

/// The commit that `git archive`, and so the archive of every forge, wrote into `commit.txt`.
fn archived() -> Option<String> {
    let text = std::fs::read_to_string("commit.txt").ok()?;
    let commit = text.trim();
    (!commit.is_empty() && !commit.contains('$')).then(|| commit.to_string())
}

/// The commit of the work tree, if that is this project's.
fn checked_out() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?;
    let top = PathBuf::from(git(&["rev-parse", "--show-toplevel"])?);
    if top.canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    // Git appends to this log whenever it checks out another commit.
    let log = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).exists() {
        println!("cargo:rerun-if-changed={log}");
    }
    git(&["log", "-1", "--format=%h %cs"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_string())
}
