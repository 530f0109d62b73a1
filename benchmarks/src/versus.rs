//! quarrier against the best engine of aho-corasick, on hostile inputs.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::contender::{Contender, Programs};
use crate::hostile::{DEFINITIONS, Definition, Input};
use crate::measure::{self, Runs, Spread, scan_seconds, times_as_fast, whole_seconds};
use crate::table::{Table, rate, ratio};
use crate::{Scale, warm};

/// An input with its expected count, and the rival's best engine for it.
struct Duel<'d> {
    definition: &'d Definition,
    input: Input,
    found: u64,
    quarrier: Contender,
    rival: Contender,
}

/// Checks everything, then measures; prints the table and returns the record.
pub(crate) fn run(programs: &Programs, folder: &Path, scale: &Scale) -> Result<Option<Value>> {
    let mut duels = Vec::new();
    for definition in &DEFINITIONS {
        let input = definition.prepare(folder, scale.hostile_bytes)?;
        eprintln!("checking {}", definition.name);
        duels.push(check(programs, definition, input)?);
    }
    println!("hostile: all {} inputs checked, against every engine of the rival", duels.len());
    if scale.rounds == 0 {
        return Ok(None);
    }
    let mut table = Table::new(&HEADINGS);
    let (mut records, mut slower) = (Vec::new(), Vec::new());
    for duel in &duels {
        eprintln!("measuring {}, {} rounds", duel.definition.name, scale.rounds);
        warm(&duel.input.path)?;
        let contenders =
            [&duel.quarrier, &duel.rival].map(|contender| (contender.clone(), duel.found));
        let runs = measure::rounds(contenders.to_vec(), scale.rounds)?;
        let (row, record) = report(duel, &runs)?;
        if record["times_as_fast"]["scan"]["median"].as_f64().is_some_and(|times| times < 1.0) {
            slower.push(duel.definition.name);
        }
        table.row(row);
        records.push(record);
    }
    println!(
        "\nInputs that hurt, 2 threads, {} rounds, against the fastest engine of the crates\n\
         aho-corasick and memchr. GB/s and times as fast as above; below 1 quarrier is slower,\n\
         which must not happen.\n\n{table}",
        scale.rounds
    );
    if !slower.is_empty() {
        println!("slower than the rival: {}\n", slower.join(", "));
    }
    Ok(Some(Value::Array(records)))
}

/// Checks that all engines of the rival and quarrier agree; keeps the rival's fastest.
fn check<'d>(programs: &Programs, definition: &'d Definition, input: Input) -> Result<Duel<'d>> {
    warm(&input.path)?;
    let mut best: Option<(f64, Contender)> = None;
    let mut found = input.expected;
    for rival in programs.ahocorasick(&input.patterns.hex, &input.path) {
        // The first engine is the crate's automaton, which the others must agree with.
        let answer = match found {
            Some(found) => measure::checked(&rival, found)?,
            None => rival.run()?,
        };
        let Some(answer) = answer else { continue };
        found = Some(answer.found);
        // Twice, so that a disturbance does not decide which engine is best.
        let again = measure::checked(&rival, answer.found)?.unwrap_or_default();
        let seconds = [&answer, &again].map(|answer| answer.scan_seconds);
        let took = seconds.into_iter().flatten().fold(f64::INFINITY, f64::min);
        if best.as_ref().is_none_or(|(least, _)| took < *least) {
            best = Some((took, rival));
        }
    }
    let (_, rival) = best.context("no engine of the rival serves these patterns")?;
    let found = found.context("nobody counted")?;
    let quarrier = programs.quarrier(&input.patterns.plain, &input.path);
    measure::checked(&quarrier, found)?;
    Ok(Duel { definition, input, found, quarrier, rival })
}

const HEADINGS: [&str; 12] = [
    "input",
    "MiB",
    "patterns",
    "found",
    "quarrier scan",
    "whole",
    "engine",
    "rival scan",
    "whole",
    "engine",
    "times as fast: scan",
    "whole",
];

fn report(duel: &Duel<'_>, runs: &[Runs]) -> Result<(Vec<String>, Value)> {
    let [quarrier, rival] = runs else { bail!("two contenders were to run") };
    let scan = times_as_fast(quarrier, Some(rival), scan_seconds);
    let whole = times_as_fast(quarrier, Some(rival), whole_seconds);
    let (input, bytes) = (&duel.input, duel.input.bytes);
    let engine = |runs: &Runs| runs.engine().unwrap_or("-").to_string();
    let row = vec![
        duel.definition.name.to_string(),
        (bytes >> 20).to_string(),
        input.pattern_count.to_string(),
        duel.found.to_string(),
        rate(bytes, quarrier.scan()),
        rate(bytes, quarrier.whole()),
        engine(quarrier),
        rate(bytes, rival.scan()),
        rate(bytes, rival.whole()),
        engine(rival),
        ratio(scan),
        ratio(whole),
    ];
    let record = json!({
        "input": duel.definition.name,
        "hurts": duel.definition.hurts,
        "patterns": input.pattern_count,
        "image_bytes": bytes,
        "found": duel.found,
        "contenders": runs.iter().map(Runs::to_json).collect::<Vec<_>>(),
        "times_as_fast": {"scan": Spread::to_json(scan), "whole": Spread::to_json(whole)},
    });
    Ok((row, record))
}
