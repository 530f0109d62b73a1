//! Sparse files: single calls of quarrier, in Rust and from C++, and of svfsc, all as compiled code.

use std::path::{Path, PathBuf};
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

/// The rival's program, and its calls on quarrier's sparse files.
pub(crate) struct Rival {
    /// With svfsc.
    pub(crate) svfsc: PathBuf,
    /// The same source with `quarrier/svfs.hpp`.
    pub(crate) svfs_hpp: PathBuf,
}

/// The answers of a round.
struct Round {
    rust: Vec<Answer>,
    cpp: Vec<Answer>,
    svfsc: Vec<Answer>,
}

/// Runs the programs in turn; compares each answer with the rival's before it shows a time.
pub(crate) fn run(ours: &Path, rival: Option<&Rival>, scale: &Scale) -> Result<Option<Value>> {
    let checked = answers(ours)?;
    println!("sparse: {} cases run", checked.len());
    let Some(rival) = rival.filter(|_| scale.rounds > 0) else { return Ok(None) };
    eprintln!("measuring sparse files, {} rounds", scale.rounds);
    let mut rounds = Vec::new();
    for _ in 0..scale.rounds {
        let (rust, cpp) = (answers(ours)?, answers(&rival.svfs_hpp)?);
        let svfsc = answers(&rival.svfsc)?;
        compare(&rust, &svfsc)?;
        compare(&cpp, &svfsc)?;
        rounds.push(Round { rust, cpp, svfsc });
    }
    let mut table =
        Table::new(&["case", "block B", "Rust ns", "C++ ns", "svfsc ns", "Rust", "C++"]);
    let mut records = Vec::new();
    for (index, case) in checked.iter().enumerate() {
        let (row, record) = compared(&rounds, index, case);
        table.row(row);
        records.push(record);
    }
    println!(
        "\nSparse files, a file of 1 MiB, one thread, {} rounds of three processes, the best of 5 in\n\
         each: nanoseconds a call, and how many times as fast as svfsc 0.4.1 (its C++) by the crate and\n\
         by quarrier/svfs.hpp.\n\n{table}",
        scale.rounds
    );
    Ok(Some(Value::Array(records)))
}

/// The row of a case, and what is recorded of it.
fn compared(rounds: &[Round], index: usize, case: &Answer) -> (Vec<String>, Value) {
    type Side = fn(&Round) -> &Vec<Answer>;
    let of_call = |round: &Round, side: Side| {
        let answer = &side(round)[index];
        answer.seconds / answer.calls as f64
    };
    let seconds = |side: Side| Spread::of(rounds.iter().map(|round| of_call(round, side)));
    let svfsc: Side = |round| &round.svfsc;
    let times = |side: Side| {
        Spread::of(rounds.iter().map(|round| of_call(round, svfsc) / of_call(round, side)))
    };
    let (rust, cpp): (Side, Side) = (|round| &round.rust, |round| &round.cpp);
    let ns = |side: Side| seconds(side).map_or(0.0, |spread| 1e9 * spread.median);
    let row = vec![
        case.name.clone(),
        case.block.to_string(),
        format!("{:.1}", ns(rust)),
        format!("{:.1}", ns(cpp)),
        format!("{:.1}", ns(svfsc)),
        ratio(times(rust)),
        ratio(times(cpp)),
    ];
    let record = json!({
        "case": case.name,
        "block_bytes": case.block,
        "calls": case.calls,
        "quarrier_seconds_per_call": Spread::to_json(seconds(rust)),
        "svfs_hpp_seconds_per_call": Spread::to_json(seconds(cpp)),
        "svfsc_seconds_per_call": Spread::to_json(seconds(svfsc)),
        "times_as_fast": Spread::to_json(times(rust)),
        "svfs_hpp_times_as_fast": Spread::to_json(times(cpp)),
    });
    (row, record)
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
