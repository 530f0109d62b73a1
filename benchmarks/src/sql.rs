//! All of SQL: runs the programs of `python/sql`, which compare and measure, and records the
//! result.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::Scale;

/// Number of random statements to compare.
const STATEMENTS: &str = "1000";
/// Number of patterns to search for.
pub(crate) const PATTERNS: usize = 1000;

/// The programs to measure.
pub(crate) struct Programs<'p> {
    pub(crate) python: &'p Path,
    pub(crate) quarrier: &'p Path,
    pub(crate) quarrier_sql: &'p Path,
}

/// Compares random statements, then measures questions, TPC-H and searches of `image`.
pub(crate) fn run(
    programs: &Programs<'_>,
    home: &Path,
    image: &Path,
    patterns: &Path,
    scale: &Scale,
) -> Result<Value> {
    let rounds = scale.rounds.max(5).to_string();
    let rows = ((scale.image_bytes >> 20) * 6_500).to_string();
    let tpch = if scale.image_bytes < 1 << 30 { "0.1" } else { "1" };
    let script = |name: &str| {
        let mut command = Command::new(programs.python);
        command.arg(home.join("python/sql").join(name)).arg(programs.quarrier_sql);
        command
    };
    checked(script("statements.py").arg(STATEMENTS))?;
    let ask = measured(home, script("ask.py").args(["--rows", &rows, "--rounds", &rounds]))?;
    let tpch = measured(home, script("tpc.py").args(["--scale", tpch, "--rounds", &rounds]))?;
    let search = measured(
        home,
        script("find.py").args([programs.quarrier, image, patterns]).args(["--rounds", &rounds]),
    )?;
    Ok(json!({ "ask": ask, "tpch": tpch, "search": search }))
}

/// Runs a program that writes its figures to a file.
fn measured(home: &Path, command: &mut Command) -> Result<Value> {
    let figures = home.join("data/sql.json");
    checked(command.arg("--data").arg(home.join("data")).arg("--json").arg(&figures))?;
    Ok(serde_json::from_slice(&std::fs::read(&figures)?)?)
}

fn checked(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed");
    }
    Ok(())
}
