//! Metadata read over HTTP: runs `python/traces.py`, which measures, and records the result.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::Scale;

/// Runs the script with an interpreter that has quarrier, fsspec and the readers.
pub(crate) fn run(python: &Path, home: &Path, scale: &Scale) -> Result<Value> {
    let rounds = scale.rounds.max(5);
    eprintln!("measuring reads of metadata over HTTP, {rounds} rounds");
    println!(
        "\nMetadata read over HTTP, 20 ms before each answer, {rounds} rounds: requests / bytes /\n\
         median time. quarrier: at most as many requests as the best of fsspec's caches, at most\n\
         64 KiB more data than the leanest.\n"
    );
    let figures = home.join("data/traces.json");
    let status = Command::new(python)
        .arg(home.join("python/traces.py"))
        .args(["--rounds", &rounds.to_string(), "--json"])
        .arg(&figures)
        .status()
        .with_context(|| format!("cannot run {}", python.display()))?;
    // 1 means that a limit was exceeded, which the script has printed.
    if !matches!(status.code(), Some(0 | 1)) {
        bail!("python/traces.py failed");
    }
    Ok(serde_json::from_slice(&std::fs::read(&figures)?)?)
}
