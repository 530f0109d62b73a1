//! Messages in memory compared with column stores: runs `python/messages/rounds.py`, which
//! measures, and records the result.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::Scale;

/// Messages of the tables per megabyte of the scale's image.
const ROWS_A_MEGABYTE: u64 = 20_000;

/// Runs the script with an interpreter that has quarrier and the column stores.
pub(crate) fn run(python: &Path, quarrier: &Path, home: &Path, scale: &Scale) -> Result<Value> {
    let rounds = scale.rounds.max(5);
    let rows = (scale.image_bytes >> 20) * ROWS_A_MEGABYTE;
    eprintln!("measuring {rows} messages in memory, {rounds} rounds");
    let figures = home.join("data/messages.json");
    let status = Command::new(python)
        .arg(home.join("python/messages/rounds.py"))
        .args(["--rows", &rows.to_string(), "--text-rows", &(rows / 3).to_string()])
        .args(["--rounds", &rounds.to_string()])
        .arg("--data")
        .arg(home.join("data"))
        .arg("--quarrier")
        .arg(quarrier)
        .arg("--json")
        .arg(&figures)
        .status()
        .with_context(|| format!("cannot run {}", python.display()))?;
    if !status.success() {
        bail!("python/messages/rounds.py failed");
    }
    Ok(serde_json::from_slice(&std::fs::read(&figures)?)?)
}
