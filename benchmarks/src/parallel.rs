//! Workers that fill one array: runs `python/parallel.py`, which measures, and records the result.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::Scale;

/// Minimum number of rounds.
const ROUNDS_MIN: usize = 5;

/// Compares the kernels in Rust with one-line loops.
pub(crate) fn check(kernels: &Path, bytes: u64) -> Result<()> {
    let status = Command::new(kernels).args(["check", &bytes.to_string()]).status();
    match status.with_context(|| format!("cannot run {}", kernels.display()))?.success() {
        true => Ok(()),
        false => bail!("the kernels of 'parallel' failed"),
    }
}

/// Runs the script with an interpreter that has quarrier and its rivals.
pub(crate) fn run(
    python: &Path,
    home: &Path,
    kernels: &Path,
    parmap: Option<&Path>,
    scale: &Scale,
) -> Result<Value> {
    let rounds = scale.rounds.max(ROUNDS_MIN);
    eprintln!("measuring workers that fill one array, {rounds} rounds");
    let sizes = if scale.name == "full" { "268435456,1073741824" } else { "268435456" };
    let figures = home.join("data/parallel.json");
    // Only figures of this run may be read below.
    let _ = std::fs::remove_file(&figures);
    let mut command = Command::new(python);
    command
        .arg(home.join("python/parallel.py"))
        .args(["--rounds", &rounds.to_string(), "--bytes", sizes, "--data"])
        .arg(home.join("data"))
        .arg("--rust")
        .arg(kernels)
        .arg("--json")
        .arg(&figures);
    match parmap {
        Some(parmap) => drop(command.arg("--parmap").arg(parmap)),
        None => eprintln!("OCaml's Parmap is not here and is left out"),
    }
    let status = command.status().with_context(|| format!("cannot run {}", python.display()))?;
    // 1 means that a promise does not hold, which the script has printed; a wrong result leaves no
    // figures.
    let text = std::fs::read(&figures).context("python/parallel.py failed");
    if !matches!(status.code(), Some(0 | 1)) {
        bail!("python/parallel.py failed");
    }
    let figures = serde_json::from_slice(&text?)?;
    Ok(figures)
}
