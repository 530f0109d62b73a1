//! The gauge in pairs with the tools that it replaces: runs `python/gauge.py`, which measures, and
//! records the result.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::Scale;

/// Minimum number of rounds.
const ROUNDS_MIN: usize = 5;

/// Runs the script, which needs no Python package.
pub(crate) fn run(home: &Path, scale: &Scale) -> Result<Value> {
    let rounds = scale.rounds.clamp(ROUNDS_MIN, 7);
    eprintln!("measuring the gauge in pairs with the tools that it replaces, {rounds} rounds");
    let figures = home.join("data/gauge.json");
    // Only figures of this run may be read below.
    let _ = std::fs::remove_file(&figures);
    let status = Command::new("python3")
        .arg(home.join("python/gauge.py"))
        .args(["--rounds", &rounds.to_string(), "--wait", "2", "--json"])
        .arg(&figures)
        .status()
        .context("cannot run python3")?;
    // 1 means that a ratio is out of bounds, which the script has printed.
    if !matches!(status.code(), Some(0 | 1)) {
        bail!("python/gauge.py failed");
    }
    let text = std::fs::read(&figures).context("python/gauge.py failed")?;
    Ok(serde_json::from_slice(&text)?)
}
