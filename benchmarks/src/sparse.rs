//! Sparse files: single calls of quarrier and of svfsc, both as compiled code.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::Scale;
use crate::measure::Spread;
use crate::table::{Table, ratio};

/// The result of a case in one process.
struct Answer {
    name: String,
    block: u64,
    calls: u64,
    seconds: f64,
    sum: u64,
}

/// Runs both programs in turn; compares each answer with the rival's before it shows a time.
pub(crate) fn run(ours: &Path, rival: Option<&Path>, scale: &Scale) -> Result<Option<Value>> {
    let checked = answers(ours)?;
    println!("sparse: {} cases run", checked.len());
    let Some(rival) = rival.filter(|_| scale.rounds > 0) else { return Ok(None) };
    eprintln!("measuring sparse files, {} rounds", scale.rounds);
    let mut rounds = Vec::new();
    for _ in 0..scale.rounds {
        let (ours, rival) = (answers(ours)?, answers(rival)?);
        compare(&ours, &rival)?;
        rounds.push((ours, rival));
    }
    let mut table = Table::new(&["case", "block B", "quarrier ns", "svfsc ns", "times as fast"]);
    let mut records = Vec::new();
    for (index, case) in checked.iter().enumerate() {
        let of_call = |answer: &Answer| answer.seconds / answer.calls as f64;
        let ours = Spread::of(rounds.iter().map(|(ours, _)| of_call(&ours[index])));
        let theirs = Spread::of(rounds.iter().map(|(_, rival)| of_call(&rival[index])));
        let pairs = rounds.iter().map(|(o, r)| of_call(&r[index]) / of_call(&o[index]));
        let faster = Spread::of(pairs);
        let ns = |spread: Option<Spread>| spread.map_or(0.0, |spread| 1e9 * spread.median);
        table.row(vec![
            case.name.clone(),
            case.block.to_string(),
            format!("{:.1}", ns(ours)),
            format!("{:.1}", ns(theirs)),
            ratio(faster),
        ]);
        records.push(json!({
            "case": case.name,
            "block_bytes": case.block,
            "calls": case.calls,
            "quarrier_seconds_per_call": Spread::to_json(ours),
            "svfsc_seconds_per_call": Spread::to_json(theirs),
            "times_as_fast": Spread::to_json(faster),
        }));
    }
    println!(
        "\nSparse files, a file of 1 MiB, one thread, {} rounds of two processes, the best of 5 in\n\
         each: nanoseconds a call, and how many times as fast as svfsc 0.4.1 (its C++).\n\n{table}",
        scale.rounds
    );
    Ok(Some(Value::Array(records)))
}

fn answers(program: &Path) -> Result<Vec<Answer>> {
    let output = Command::new(program)
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    if !output.status.success() {
        bail!("{} failed: {}", program.display(), String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8(output.stdout)?;
    text.lines().map(|line| parse(line).with_context(|| format!("not an answer: {line}"))).collect()
}

fn parse(line: &str) -> Option<Answer> {
    let mut cells = line.split('\t');
    Some(Answer {
        name: cells.next()?.to_string(),
        block: cells.next()?.parse().ok()?,
        calls: cells.next()?.parse().ok()?,
        seconds: cells.next()?.parse().ok()?,
        sum: cells.next()?.parse().ok()?,
    })
}

fn compare(ours: &[Answer], rival: &[Answer]) -> Result<()> {
    if ours.len() != rival.len() {
        bail!("{} cases against the rival's {}", ours.len(), rival.len());
    }
    for (ours, rival) in ours.iter().zip(rival) {
        let same_case =
            (&ours.name, ours.block, ours.calls) == (&rival.name, rival.block, rival.calls);
        if !same_case || ours.sum != rival.sum {
            bail!(
                "WRONG SUM: {} of {} bytes gives {}, the rival's {} of {} bytes {}; no time is given",
                ours.name,
                ours.block,
                ours.sum,
                rival.name,
                rival.block,
                rival.sum
            );
        }
    }
    Ok(())
}
