//! Sets of regexes, and single ones, over text, over an image and over inputs that hurt: quarrier and vectorscan.

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
use rules::{ALONE, SETS};

/// The version of the data; increase it when they change.
const VERSION: u32 = 2;
/// The size of the set for the inputs that hurt.
const HURT: usize = 200;
/// MiB of each input to search with each regex alone, for comparison.
const ALONE_MIB: usize = 2;

/// A set or a regex, with the inputs for it.
struct Set {
    name: String,
    file: String,
    rules: Vec<String>,
    inputs: &'static [&'static str],
}

/// A set and an input.
struct Case {
    set: String,
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
    let sets = sets();
    let mut cases = Vec::new();
    for set in &sets {
        let files = files(folder, set)?;
        for (input, path) in inputs.iter().filter(|(input, _)| set.inputs.contains(input)) {
            warm(path)?;
            eprintln!("checking {} on {input}", set.name);
            cases.push(checked(programs, &files, &set.name, (input, path))?);
        }
    }
    println!("regexes: all {} sets checked against each regex alone", sets.len());
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

/// Returns all sets.
fn sets() -> Vec<Set> {
    let set = |name: String, file: String, rules, inputs| Set { name, file, rules, inputs };
    let many = |count: usize| (count.to_string(), count.to_string(), rules::rules(count));
    let plain = SETS.into_iter().map(|count| {
        let (name, file, rules) = many(count);
        set(name, file, rules, &["text", "image"])
    });
    let alone = ALONE.into_iter().enumerate().map(|(at, regex)| {
        set(regex.to_string(), format!("alone-{at}"), vec![regex.to_string()], &["text", "image"])
    });
    let (name, file, rules) = many(HURT);
    let hurt = set(name, file, rules, &data::HURTING);
    plain.chain(alone).chain([hurt]).collect()
}

/// Returns both files of a set: for quarrier, and for vectorscan.
fn files(folder: &Path, set: &Set) -> Result<[PathBuf; 2]> {
    let lines = |prefix: &str| set.rules.iter().map(|rule| format!("{prefix}{rule}\n")).collect();
    let plain: String = lines("");
    let ours: String = lines("re:");
    let name = |end: &str| folder.join(format!("regexes-v{VERSION}-{}.{end}", set.file));
    write(&name("txt"), ours.as_bytes())?;
    write(&name("regexes"), plain.as_bytes())?;
    Ok([name("txt"), name("regexes")])
}

fn inputs(folder: &Path, size: usize) -> Result<Vec<(&'static str, PathBuf)>> {
    let path = |name: &str| folder.join(format!("regexes-{name}-v{VERSION}-{}.bin", size >> 20));
    let names = ["text", "image"].into_iter().chain(data::HURTING);
    let all: Vec<(&str, PathBuf)> = names.map(|name| (name, path(name))).collect();
    if all.iter().any(|(_, path)| !path.is_file()) {
        eprintln!("making {}", all[0].1.display());
        let text = data::text(size);
        for (name, path) in &all {
            match *name {
                "text" => write(path, &text)?,
                "image" => write(path, &data::image(&text))?,
                name => write(path, &data::hurting(name, size))?,
            }
        }
    }
    Ok(all)
}

/// Returns a case whose counts were verified: those of each regex alone on the first bytes, and the
/// number of rules that match, as vectorscan finds them.
fn checked(
    programs: &Programs,
    files: &[PathBuf; 2],
    set: &str,
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
    Ok(Case { set: set.to_string(), input, bytes, quarrier, vectorscan, found, matching })
}

fn report(case: &Case, runs: &[Runs]) -> Result<(Vec<String>, Value)> {
    let of = |name: &str| runs.iter().find(|runs| runs.contender.name == name);
    let quarrier = of("quarrier").context("quarrier did not run")?;
    let vectorscan = of("vectorscan");
    let times = times_as_fast(quarrier, vectorscan, scan_seconds);
    let row = vec![
        case.set.clone(),
        case.input.to_string(),
        case.found.to_string(),
        rate(case.bytes, quarrier.scan()),
        rate(case.bytes, vectorscan.and_then(Runs::scan)),
        ratio(times),
        seconds(quarrier.compile()),
        seconds(vectorscan.and_then(Runs::compile)),
    ];
    let record = json!({
        "regexes": case.set,
        "input": case.input,
        "input_bytes": case.bytes,
        "found": case.found,
        "contenders": runs.iter().map(Runs::to_json).collect::<Vec<_>>(),
        "times_as_fast": {"scan_to_vectorscan": Spread::to_json(times)},
    });
    Ok((row, record))
}
