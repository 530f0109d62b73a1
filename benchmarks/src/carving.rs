//! Carving compared with other tools: runs `python/carving.py`, which measures, and records the
//! result.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::Scale;

/// Runs the script, which needs numpy for the image. `None` if it cannot make the image.
pub(crate) fn run(python: &Path, quarrier: &Path, home: &Path, scale: &Scale) -> Result<Value> {
    eprintln!("measuring carving against other tools, {} rounds", scale.rounds);
    let folder = home.join("data");
    let figures = folder.join("carving.json");
    // Only figures of this run may be read below.
    let _ = std::fs::remove_file(&figures);
    let status = Command::new(python)
        .arg(home.join("python/carving.py"))
        .arg("all")
        .arg(&folder)
        .args(["--size", &format!("{}MiB", scale.image_bytes >> 20)])
        .args(["--rounds", &scale.rounds.to_string(), "--quarrier"])
        .arg(quarrier)
        .arg("--figures")
        .arg(&figures)
        .status()
        .with_context(|| format!("cannot run {}", python.display()))?;
    if !status.success() {
        bail!("python/carving.py failed");
    }
    match std::fs::read(&figures) {
        Ok(text) => Ok(serde_json::from_slice(&text)?),
        Err(_) => Ok(Value::Null),
    }
}
