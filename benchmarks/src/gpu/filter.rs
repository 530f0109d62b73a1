//! Conditions on columns in a device's memory, compared with the CPU's shared scan. The example
//! `resident` of quarrier-filter measures them, because columns of messages need crates that
//! nothing else here needs.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::Scale;
use crate::contender::THREADS;
use crate::measure::Spread;
use crate::table::Table;

/// Bytes of the image per row: 20 million orders at full scale.
const IMAGE_BYTES_A_ROW: u64 = 53;

/// Returns the rates of both, in rows per second. With no rounds it only compares the answers, and
/// prints nothing.
pub(super) fn run(resident: &Path, scale: &Scale) -> Result<Vec<Value>> {
    let rows = (scale.image_bytes / IMAGE_BYTES_A_ROW).max(100_000);
    let rounds = scale.rounds.max(1);
    let arguments = [rows.to_string(), rounds.to_string(), THREADS.to_string()];
    let answer = Command::new(resident).args(arguments).output();
    let answer = answer.with_context(|| resident.display().to_string())?;
    if !answer.status.success() {
        bail!("{}: {}", resident.display(), String::from_utf8_lossy(&answer.stderr).trim());
    }
    let lines = String::from_utf8(answer.stdout)?;
    let lines: Vec<Value> = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    if scale.rounds == 0 {
        return Ok(Vec::new());
    }
    let mut table = Table::new(&["conditions", "kernel", "device", "CPU", "device / CPU"]);
    let mut records = Vec::new();
    for line in &lines {
        let seconds = |of: &str| -> Vec<f64> {
            line[of].as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
        };
        let rate = |of: &str| Spread::of(seconds(of).into_iter().map(|s| rows as f64 / s));
        let pairs = seconds("device_seconds").into_iter().zip(seconds("cpu_seconds"));
        let ratio = Spread::of(pairs.map(|(device, cpu)| cpu / device));
        let [kernel, whole, cpu] = ["kernel_seconds", "device_seconds", "cpu_seconds"].map(rate);
        table.row(vec![
            line["conditions"].to_string(),
            millions(kernel),
            millions(whole),
            millions(cpu),
            crate::table::ratio(ratio),
        ]);
        records.push(json!({
            "conditions": line["conditions"],
            "rows": rows,
            "bytes": line["bytes"],
            "kernel_rows_per_second": Spread::to_json(kernel),
            "device_rows_per_second": Spread::to_json(whole),
            "cpu_rows_per_second": Spread::to_json(cpu),
            "ratio": Spread::to_json(ratio),
        }));
    }
    println!(
        "\nConditions in one pass over {:.0} million orders in the device's memory, against the\n\
         shared scan on {THREADS} threads; millions of rows a second. kernel: by the device's\n\
         clock; device: from conditions to counts.\n\n{table}",
        rows as f64 / 1e6,
    );
    Ok(records)
}

fn millions(rate: Option<Spread>) -> String {
    rate.map_or("–".to_string(), |rate| format!("{:.0}", rate.median / 1e6))
}
