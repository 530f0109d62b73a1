//! DataFusion's own sqllogictest files of plain queries, run over packed columns.
//!
//! ```text
//! cargo run --manifest-path benchmarks/sqllogictest/Cargo.toml [-- [--list] [--checkout FOLDER] [FILE…]]
//! ```
//!
//! Some tables are in files that are not part of DataFusion's package, but of its repository (the
//! folder `datafusion/core`) and of two submodules (`testing`, `parquet-testing`): `--checkout
//! FOLDER` finds them in a checkout of it.
//!
//! Every table that a file creates is packed, so that its rows pass through quarrier's scan. Prints
//! a line for each file: the number of queries with the expected answer, those without it by
//! reason, and those not compared. With `--list` it shows every query without the expected answer.

mod engine;
mod packed;
mod reason;
mod shown;

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use sqllogictest::{Record, Runner, parse_file, strict_column_validator};

use engine::{Engine, Kind};
use reason::Reason;

/// The files with plain queries.
const FILES: [&str; 24] = [
    "aggregates_topk",
    "case",
    "coalesce",
    "cte",
    "distinct_on",
    "group",
    "group_by",
    "in_list",
    "intersection",
    "join_is_not_distinct_from",
    "join_only",
    "joins",
    "limit",
    "null_aware_anti_join",
    "nullif",
    "order",
    "pg_compat/pg_compat_union",
    "pg_compat/pg_compat_window",
    "predicates",
    "qualify",
    "select",
    "subquery",
    "union",
    "window",
];

/// The results of a file.
#[derive(Default)]
struct Count {
    passed: usize,
    failed: BTreeMap<Reason, usize>,
    /// Queries about the engine's plans or settings, which have no answer to compare.
    left_out: usize,
}

/// Stack size for deeply nested statements, as in the program.
const STACK_BYTES: usize = 32 << 20;

fn main() -> Result<()> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.thread_stack_size(STACK_BYTES).enable_all().build()?.block_on(files())
}

async fn files() -> Result<()> {
    let mut arguments = Arguments::of(std::env::args().skip(1))?;
    if arguments.files.is_empty() {
        arguments.files = FILES.iter().map(|name| name.to_string()).collect();
    }
    let folder = test_files()?;
    // The files refer to others by paths relative to the package in DataFusion's repository.
    let place = tempfile::tempdir()?;
    let beside = place.path().join("datafusion/sqllogictest");
    // Files are written beside the links, not into cargo's own folder.
    std::fs::create_dir_all(beside.join("test_files"))?;
    for entry in std::fs::read_dir(&folder)? {
        let entry = entry?;
        symlink(entry.path(), beside.join("test_files").join(entry.file_name()))?;
    }
    symlink(folder.with_file_name("data"), beside.join("data"))?;
    if let Some(checkout) = &arguments.checkout {
        for name in ["testing", "parquet-testing"] {
            symlink(checkout.canonicalize()?.join(name), place.path().join(name))?;
        }
        let core = checkout.canonicalize()?.join("datafusion/core");
        symlink(core, place.path().join("datafusion/core"))?;
    }
    std::env::set_current_dir(&beside)?;
    let mut all = Count::default();
    for name in &arguments.files {
        let count = run(&folder.join(format!("{name}.slt")), arguments.lists).await?;
        println!("{}", summary(name, &count));
        all.passed += count.passed;
        all.left_out += count.left_out;
        for (reason, many) in count.failed {
            *all.failed.entry(reason).or_default() += many;
        }
    }
    println!("{}", summary("all", &all));
    Ok(())
}

/// The arguments of the command line.
#[derive(Default)]
struct Arguments {
    lists: bool,
    checkout: Option<PathBuf>,
    files: Vec<String>,
}

impl Arguments {
    fn of(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut arguments = Arguments::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--list" => arguments.lists = true,
                "--checkout" => {
                    arguments.checkout =
                        Some(words.next().context("--checkout needs a folder")?.into());
                }
                _ => arguments.files.push(word),
            }
        }
        Ok(arguments)
    }
}

fn summary(name: &str, count: &Count) -> String {
    let failed: usize = count.failed.values().sum();
    let reasons: Vec<_> =
        count.failed.iter().map(|(reason, many)| format!("{many} {reason}")).collect();
    format!(
        "{name}: {} of {} queries have the expected answer{}{}; {} not compared",
        count.passed,
        count.passed + failed,
        if reasons.is_empty() { "" } else { "; " },
        reasons.join(", "),
        count.left_out
    )
}

/// Runs a file, record by record; a failure does not stop it.
async fn run(path: &Path, lists: bool) -> Result<Count> {
    let records =
        parse_file::<Kind>(path).with_context(|| format!("cannot read {}", path.display()))?;
    let engine = Engine::new()?;
    let mut runner = Runner::new(move || {
        let engine = engine.clone();
        async move { Ok(engine) }
    });
    runner.add_label("Datafusion");
    runner.with_column_validator(strict_column_validator);
    runner.with_normalizer(shown::trimmed);
    runner.with_validator(shown::are_same);
    let mut count = Count::default();
    for record in records {
        let arguments = match &record {
            Record::Halt { .. } => break,
            Record::Query { sql, loc, .. } => Some((sql.clone(), loc.to_string())),
            _ => None,
        };
        if arguments.as_ref().is_some_and(|(sql, _)| is_no_question(sql)) {
            count.left_out += 1;
            continue;
        }
        let done = runner.run_async(record).await;
        let Some((sql, place)) = arguments else {
            if let (true, Err(error)) = (lists, &done) {
                println!("a statement failed: {error}");
            }
            continue;
        };
        match done {
            Ok(_) => count.passed += 1,
            Err(error) => {
                let reason = Reason::of(&sql, &error.to_string());
                if lists {
                    println!("{place}: {reason}\n{sql}\n{error}");
                }
                *count.failed.entry(reason).or_default() += 1;
            }
        }
    }
    Ok(count)
}

/// Whether a query asks for the engine's plans or settings.
fn is_no_question(sql: &str) -> bool {
    let text = sql.trim_start().to_lowercase();
    ["explain", "show", "describe", "set "].iter().any(|word| text.starts_with(word))
        || text.contains("information_schema")
        || text.contains("arrow_typeof")
}

/// Returns the folder of the test files, in the package that cargo fetched.
fn test_files() -> Result<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let summary = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--manifest-path"])
        .arg(&manifest)
        .output()
        .context("cannot run cargo metadata")?;
    let summary: serde_json::Value = serde_json::from_slice(&summary.stdout)?;
    let packages = summary["packages"].as_array().context("cargo metadata lists no packages")?;
    let package = packages.iter().find(|package| package["name"] == "datafusion-sqllogictest");
    let path = package.and_then(|package| package["manifest_path"].as_str());
    match path.and_then(|path| Path::new(path).parent()) {
        Some(folder) => Ok(folder.join("test_files")),
        None => bail!("the package datafusion-sqllogictest is not there; run 'cargo fetch'"),
    }
}
