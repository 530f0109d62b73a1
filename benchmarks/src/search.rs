//! 1 to 100,000 literals in the image: quarrier, vectorscan, ripgrep, and the ceiling.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::contender::{Contender, Programs};
use crate::image::{Image, Plant, SETS};
use crate::measure::{self, Runs, Spread, scan_seconds, times_as_fast, whole_seconds};
use crate::patterns::PatternFiles;
use crate::table::{Table, rate, ratio, seconds, share};
use crate::{Scale, warm};

/// With more patterns, ripgrep takes minutes.
const RIPGREP_PATTERNS_MAX: usize = 10_000;

/// One line of the table: the first `patterns` keywords.
struct Definition {
    patterns: usize,
    found: u64,
    files: PatternFiles,
}

/// Checks everything, then measures; prints the table and returns the record.
pub(crate) fn run(programs: &Programs, folder: &Path, scale: &Scale) -> Result<Option<Value>> {
    let image = Image::prepare(folder, scale.image_bytes)?;
    let mut definitions = Vec::new();
    for patterns in SETS {
        let files = image.pattern_files(folder, patterns)?;
        let found = image.plants_of(patterns).count() as u64;
        definitions.push(Definition { patterns, found, files });
    }
    warm(&image.path)?;
    for definition in &definitions {
        eprintln!("checking {} patterns", definition.patterns);
        check_places(programs, &image, definition)?;
        for (contender, expected) in definition.contenders(programs, &image) {
            measure::checked(&contender, expected)?;
        }
    }
    println!(
        "search: all {} sets checked, offset by offset, against the planted keywords",
        SETS.len()
    );
    if scale.rounds == 0 {
        return Ok(None);
    }
    let mut table = Table::new(&HEADINGS);
    let mut records = Vec::new();
    for definition in &definitions {
        eprintln!("measuring {} patterns, {} rounds", definition.patterns, scale.rounds);
        warm(&image.path)?;
        let contenders = definition.contenders(programs, &image);
        let (row, record) =
            report(definition, &image, &measure::rounds(contenders, scale.rounds)?)?;
        table.row(row);
        records.push(record);
    }
    println!(
        "\nAn image of {} MiB in the page cache, 2 threads (ripgrep: 1), {} rounds.\n\
         GB/s (10^9 bytes a second): median of the rounds. Times as fast: median of the\n\
         ratios of each round; above 1 quarrier is faster. scan: as the program says;\n\
         whole: the process, with start and compiling the patterns.\n\n{table}",
        image.bytes >> 20,
        scale.rounds
    );
    Ok(Some(Value::Array(records)))
}

/// Makes the image and a file of `patterns` patterns, for other ways of searching.
pub(crate) fn make(folder: &Path, scale: &Scale, patterns: usize) -> Result<(PathBuf, PathBuf)> {
    let image = Image::prepare(folder, scale.image_bytes)?;
    let files = image.pattern_files(folder, patterns)?;
    warm(&image.path)?;
    Ok((image.path, files.plain))
}

impl Definition {
    /// Returns each contender with its expected count; quarrier first, the sum last.
    fn contenders(&self, programs: &Programs, image: &Image) -> Vec<(Contender, u64)> {
        let PatternFiles { plain, hex } = &self.files;
        let has_ripgrep = self.patterns <= RIPGREP_PATTERNS_MAX;
        // Planted keywords do not overlap, so ripgrep counts all of them.
        let ripgrep = programs.ripgrep(plain, &image.path).filter(|_| has_ripgrep);
        let searchers = [
            Some(programs.quarrier(plain, &image.path)),
            programs.vectorscan(hex, &image.path),
            ripgrep,
        ];
        let sum = (programs.sum(&image.path), image.sum);
        let searchers = searchers.into_iter().flatten().map(|contender| (contender, self.found));
        searchers.chain([sum]).collect()
    }
}

/// Compares every row that quarrier prints with every planted keyword.
fn check_places(programs: &Programs, image: &Image, definition: &Definition) -> Result<()> {
    let quarrier = programs.quarrier(&definition.files.plain, &image.path);
    let command = format!("{quarrier} --format json (without -c)");
    let rows = quarrier.findings()?;
    let mut expected = image.plants_of(definition.patterns);
    for (number, row) in rows.iter().enumerate() {
        let place = |plant: Plant| {
            let keyword = String::from_utf8_lossy(&image.keywords[plant.keyword]);
            json!({"offset": plant.offset, "length": keyword.len(), "pattern": keyword})
        };
        let expected = expected.next().map_or(Value::Null, place);
        if ["offset", "length", "pattern"].iter().any(|&field| row[field] != expected[field]) {
            bail!("WRONG FINDING: row {number} is {row}, expected {expected}. Try: {command}");
        }
    }
    if let Some(plant) = expected.next() {
        bail!("MISSED: {plant:?}, after {} right rows. Try: {command}", rows.len());
    }
    Ok(())
}

const HEADINGS: [&str; 13] = [
    "patterns",
    "found",
    "quarrier scan",
    "whole",
    "vectorscan scan",
    "whole",
    "ripgrep whole",
    "sum scan",
    "times vectorscan: scan",
    "whole",
    "times ripgrep: whole",
    "share of sum",
    "compile",
];

fn report(definition: &Definition, image: &Image, runs: &[Runs]) -> Result<(Vec<String>, Value)> {
    let of = |name: &str| runs.iter().find(|runs| runs.contender.name == name);
    let quarrier = of("quarrier").context("quarrier did not run")?;
    let (vectorscan, ripgrep, sum) = (of("vectorscan"), of("ripgrep"), of("sum"));
    let scan_to_vectorscan = times_as_fast(quarrier, vectorscan, scan_seconds);
    let whole_to_vectorscan = times_as_fast(quarrier, vectorscan, whole_seconds);
    let whole_to_ripgrep = times_as_fast(quarrier, ripgrep, whole_seconds);
    let share_of_sum = times_as_fast(quarrier, sum, scan_seconds);
    let scan = |runs: Option<&Runs>| rate(image.bytes, runs.and_then(Runs::scan));
    let whole = |runs: Option<&Runs>| rate(image.bytes, runs.and_then(Runs::whole));
    let row = vec![
        definition.patterns.to_string(),
        definition.found.to_string(),
        scan(Some(quarrier)),
        whole(Some(quarrier)),
        scan(vectorscan),
        whole(vectorscan),
        whole(ripgrep),
        scan(sum),
        ratio(scan_to_vectorscan),
        ratio(whole_to_vectorscan),
        ratio(whole_to_ripgrep),
        share(share_of_sum),
        seconds(quarrier.compile()),
    ];
    let record = json!({
        "patterns": definition.patterns,
        "image_bytes": image.bytes,
        "found": definition.found,
        "contenders": runs.iter().map(Runs::to_json).collect::<Vec<_>>(),
        "times_as_fast": {
            "scan_to_vectorscan": Spread::to_json(scan_to_vectorscan),
            "whole_to_vectorscan": Spread::to_json(whole_to_vectorscan),
            "whole_to_ripgrep": Spread::to_json(whole_to_ripgrep),
        },
        "scan_share_of_sum": Spread::to_json(share_of_sum),
    });
    Ok((row, record))
}
