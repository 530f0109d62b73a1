//! Sets of regexes over text and over an image: quarrier and vectorscan.

mod data;
mod rules;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::contender::{Contender, Programs};
use crate::image::write;
use crate::measure::{self, Runs, Spread, scan_seconds, times_as_fast};
use crate::table::{Table, rate, ratio, seconds};
use crate::{Scale, warm};
use rules::SETS;

/// The version of the data; increase it when they change.
const VERSION: u32 = 1;
/// MiB of each input to search with each regex alone, for comparison.
const ALONE_MIB: usize = 2;

/// A set and an input.
struct Case {
    count: usize,
    input: &'static str,
    bytes: u64,
    quarrier: Contender,
    vectorscan: Option<Contender>,
    found: u64,
    /// Number of rules that match anywhere.
    matching: u64,
}

const HEADINGS: [&str; 8] = [
    "regexes",
    "input",
    "found",
    "quarrier scan",
    "vectorscan scan",
    "times vectorscan: scan",
    "quarrier compile",
    "vectorscan compile",
];

/// Checks everything, then measures; prints the table and returns the record.
pub(crate) fn run(programs: &Programs, folder: &Path, scale: &Scale) -> Result<Option<Value>> {
    let inputs = inputs(folder, scale.hostile_bytes as usize)?;
    let mut cases = Vec::new();
    for count in SETS {
        let files = files(folder, count)?;
        for (input, path) in &inputs {
            warm(path)?;
            eprintln!("checking {count} regexes on {input}");
            cases.push(checked(programs, &files, count, (input, path))?);
        }
    }
    println!("regexes: all {} sets checked against each regex alone", SETS.len());
    if scale.rounds == 0 {
        return Ok(None);
    }
    let (mut table, mut records) = (Table::new(&HEADINGS), Vec::new());
    for case in cases {
        let vectorscan = case.vectorscan.clone().map(|contender| (contender, case.matching));
        let contenders = [Some((case.quarrier.clone(), case.found)), vectorscan];
        let runs = measure::rounds(contenders.into_iter().flatten().collect(), scale.rounds)?;
        let (row, record) = report(&case, &runs)?;
        table.row(row);
        records.push(record);
    }
    println!(
        "\nGB/s (10^9 bytes a second), 2 threads, the file in the page cache, {} rounds. vectorscan reports\n\
         every end of a match, quarrier the leftmost-first matches: compared are the regexes that\n\
         match at all.\n\n{table}",
        scale.rounds
    );
    Ok(Some(Value::Array(records)))
}

/// Returns both files of a set: for quarrier, and for vectorscan.
fn files(folder: &Path, count: usize) -> Result<[PathBuf; 2]> {
    let rules = rules::rules(count);
    let lines = |prefix: &str| rules.iter().map(|rule| format!("{prefix}{rule}\n")).collect();
    let plain: String = lines("");
    let ours: String = lines("re:");
    let name = |end: &str| folder.join(format!("regexes-v{VERSION}-{count}.{end}"));
    write(&name("txt"), ours.as_bytes())?;
    write(&name("regexes"), plain.as_bytes())?;
    Ok([name("txt"), name("regexes")])
}

fn inputs(folder: &Path, size: usize) -> Result<[(&'static str, PathBuf); 2]> {
    let path = |name: &str| folder.join(format!("regexes-{name}-v{VERSION}-{}.bin", size >> 20));
    let all = [("text", path("text")), ("image", path("image"))];
    if all.iter().any(|(_, path)| !path.is_file()) {
        eprintln!("making {}", all[0].1.display());
        let text = data::text(size);
        write(&all[0].1, &text)?;
        write(&all[1].1, &data::image(&text))?;
    }
    Ok(all)
}

/// Returns a case whose counts were verified: those of each regex alone on the first bytes, and the
/// number of rules that match, as vectorscan finds them.
fn checked(
    programs: &Programs,
    files: &[PathBuf; 2],
    count: usize,
    (input, path): (&'static str, &Path),
) -> Result<Case> {
    let quarrier = programs.quarrier(&files[0], path);
    let range = format!("0..{ALONE_MIB}M");
    let alone = quarrier.counts(&["--range", &range, "--engine", "naive"])?;
    if quarrier.counts(&["--range", &range])? != alone {
        bail!("WRONG COUNTS: {quarrier} --range {range}, compared with --engine naive");
    }
    let counts = quarrier.counts(&[])?;
    let vectorscan = programs.vectorscan_regexes(&files[1], path);
    let matching = counts.iter().filter(|&&count| count > 0).count() as u64;
    if let Some(vectorscan) = &vectorscan {
        measure::checked(vectorscan, matching)?;
    }
    let bytes = std::fs::metadata(path).with_context(|| path.display().to_string())?.len();
    let found = counts.iter().sum();
    Ok(Case { count, input, bytes, quarrier, vectorscan, found, matching })
}

fn report(case: &Case, runs: &[Runs]) -> Result<(Vec<String>, Value)> {
    let of = |name: &str| runs.iter().find(|runs| runs.contender.name == name);
    let quarrier = of("quarrier").context("quarrier did not run")?;
    let vectorscan = of("vectorscan");
    let times = times_as_fast(quarrier, vectorscan, scan_seconds);
    let row = vec![
        case.count.to_string(),
        case.input.to_string(),
        case.found.to_string(),
        rate(case.bytes, quarrier.scan()),
        rate(case.bytes, vectorscan.and_then(Runs::scan)),
        ratio(times),
        seconds(quarrier.compile()),
        seconds(vectorscan.and_then(Runs::compile)),
    ];
    let record = json!({
        "regexes": case.count,
        "input": case.input,
        "input_bytes": case.bytes,
        "found": case.found,
        "contenders": runs.iter().map(Runs::to_json).collect::<Vec<_>>(),
        "times_as_fast": {"scan_to_vectorscan": Spread::to_json(times)},
    });
    Ok((row, record))
}
