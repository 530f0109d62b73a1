//! Sparse files from Python: runs `python/sparse.py`, which measures, and compares the results.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::Scale;
use crate::measure::Spread;
use crate::table::{Table, ratio};

/// Minimum number of rounds.
const ROUNDS_MIN: usize = 5;

/// Runs the script with an interpreter that has quarrier and its rival.
pub(crate) fn run(python: &Path, home: &Path, scale: &Scale) -> Result<Value> {
    let rounds = scale.rounds.max(ROUNDS_MIN);
    eprintln!("measuring sparse files from Python, {rounds} rounds");
    let output = Command::new(python)
        .arg(home.join("python/sparse.py"))
        .arg(rounds.to_string())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", python.display()))?;
    if !output.status.success() {
        bail!("python/sparse.py failed");
    }
    let mut table =
        Table::new(&["case", "block B", "quarrier", "against", "unit", "times as good", "must be"]);
    let mut records = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let mut case: Value = serde_json::from_str(line).context("not a case")?;
        let (ours, against) = (figures(&case, "ours")?, figures(&case, "against")?);
        let better = Spread::of(ours.iter().zip(&against).map(|(ours, other)| other / ours));
        let (ours, against) = (Spread::of(ours), Spread::of(against));
        let is_time = case["unit"] == "s";
        let shown = |spread: Option<Spread>| {
            let median = spread.map_or(0.0, |spread| spread.median);
            format!("{:.1}", if is_time { 1e9 * median } else { median })
        };
        table.row(vec![
            case["name"].as_str().unwrap_or_default().to_string(),
            case["block"].to_string(),
            shown(ours),
            shown(against),
            if is_time { "ns" } else { "B" }.to_string(),
            ratio(better),
            case["at_least"].as_f64().map_or(String::new(), |least| least.to_string()),
        ]);
        case["ours"] = Spread::to_json(ours);
        case["against"] = Spread::to_json(against);
        case["times_as_good"] = Spread::to_json(better);
        records.push(case);
    }
    println!(
        "\nSparse files from Python, {rounds} rounds: medians for each call, against svfsc 0.4.1\n\
         (of two threads: against one thread, twice).\n\n{table}"
    );
    Ok(json!(records))
}

fn figures(case: &Value, name: &str) -> Result<Vec<f64>> {
    let figures = case[name].as_array().with_context(|| format!("a case without {name}"))?;
    Ok(figures.iter().filter_map(Value::as_f64).collect())
}
