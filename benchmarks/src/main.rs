//! quarrier against its rivals and against the ceiling of the machine.
//!
//! ```text
//!  run ──→ image, hostile ──→ contender ──→ measure ──→ table   for people
//!          data and truth     processes     rounds  └─→ record  for later
//! ```
//!
//! Every run's count is compared with the truth before a time is shown. The script `run` builds
//! everything needed and starts this program; see README.md.

mod carving;
mod contender;
mod gauge;
mod gpu;
mod hostile;
mod image;
mod measure;
mod messages;
mod parallel;
mod patterns;
mod plan;
mod random;
mod record;
mod regexes;
mod search;
mod sparse;
mod sparse_python;
mod sql;
mod table;
mod traces;
mod versus;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use contender::Programs;

const PARTS: [&str; 12] = [
    "search", "regexes", "hostile", "plan", "sparse", "traces", "parallel", "messages", "carve",
    "sql", "gauge", "gpu",
];

const USAGE: &str = "usage: benchmarks/run [--quick|--tiny] [--only PART]";

/// The size of a measurement.
struct Scale {
    name: &'static str,
    image_bytes: u64,
    hostile_bytes: u64,
    /// Number of rounds; 0: only check.
    rounds: usize,
}

const FULL: Scale =
    Scale { name: "full", image_bytes: 1 << 30, hostile_bytes: 256 << 20, rounds: 7 };
const QUICK: Scale =
    Scale { name: "quick", image_bytes: 256 << 20, hostile_bytes: 64 << 20, rounds: 3 };
const TINY: Scale = Scale { name: "tiny", image_bytes: 1 << 20, hostile_bytes: 1 << 20, rounds: 0 };

struct Arguments {
    scale: Scale,
    only: Option<String>,
    /// The folder of the benchmarks, which contains data and records.
    home: PathBuf,
    quarrier: PathBuf,
    quarrier_sql: Option<PathBuf>,
    vectorscan: Option<PathBuf>,
    svfsc: Option<PathBuf>,
    svfs_hpp: Option<PathBuf>,
    /// The kernels of `parallel` in OCaml.
    parmap: Option<PathBuf>,
    /// An interpreter with quarrier and svfsc.
    python: Option<PathBuf>,
    /// The example of quarrier-filter that evaluates conditions on a device.
    resident: Option<PathBuf>,
    /// The revision from which the programs were built.
    built_from: Option<String>,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("benchmarks: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let Arguments {
        scale,
        only,
        home,
        quarrier,
        quarrier_sql,
        vectorscan,
        svfsc,
        svfs_hpp,
        parmap,
        python,
        resident,
        built_from,
    } = arguments()?;
    let neighbours = std::env::current_exe()?;
    let programs = Programs {
        quarrier,
        sum: neighbours.with_file_name("sum"),
        ahocorasick: neighbours.with_file_name("ahocorasick"),
        vectorscan,
        ripgrep: find_in_path("rg"),
    };
    for (name, program) in [("vectorscan", &programs.vectorscan), ("ripgrep", &programs.ripgrep)] {
        if program.is_none() {
            eprintln!("{name} is not here and is left out");
        }
    }
    if scale.rounds > 0 {
        warn_if_busy();
    }
    let folder = home.join("data");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let is_wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    let mut record = record::begin(scale.name, &programs, built_from.as_deref())?;
    if is_wanted("search") {
        record["search"] = search::run(&programs, &folder, &scale)?.into();
    }
    if is_wanted("regexes") {
        record["regexes"] = regexes::run(&programs, &folder, &scale)?.into();
    }
    if is_wanted("hostile") {
        record["hostile"] = versus::run(&programs, &folder, &scale)?.into();
    }
    if is_wanted("plan") && scale.rounds > 0 {
        record["plan"] = plan::run(&folder, &scale)?;
    }
    if is_wanted("sparse") {
        let ours = neighbours.with_file_name("sparse");
        let rival = svfsc.zip(svfs_hpp).map(|(svfsc, svfs_hpp)| sparse::Rival { svfsc, svfs_hpp });
        record["sparse"] = sparse::run(&ours, rival.as_ref(), &scale)?.into();
    }
    let kernels = neighbours.with_file_name("parallel");
    if is_wanted("parallel") && scale.rounds == 0 {
        parallel::check(&kernels, scale.image_bytes)?;
    }
    if let Some(python) = python.filter(|_| scale.rounds > 0) {
        if is_wanted("sparse") {
            record["sparse_python"] = sparse_python::run(&python, &home, &scale)?;
        }
        if is_wanted("traces") {
            record["traces"] = traces::run(&python, &home, &scale)?;
        }
        if is_wanted("parallel") {
            record["parallel"] =
                parallel::run(&python, &home, &kernels, parmap.as_deref(), &scale)?;
        }
        if is_wanted("messages") {
            record["messages"] = messages::run(&python, &programs.quarrier, &home, &scale)?;
        }
        if is_wanted("carve") {
            record["carve"] = carving::run(&python, &programs.quarrier, &home, &scale)?;
        }
        if let Some(quarrier_sql) = quarrier_sql.filter(|_| is_wanted("sql")) {
            let (image, patterns) = search::make(&folder, &scale, sql::PATTERNS)?;
            let quarrier = &programs.quarrier;
            let programs = sql::Programs { python: &python, quarrier, quarrier_sql: &quarrier_sql };
            record["sql"] = sql::run(&programs, &home, &image, &patterns, &scale)?;
        }
    }
    if is_wanted("gauge") && scale.rounds > 0 {
        record["gauge"] = gauge::run(&home, &scale)?;
    }
    if is_wanted("gpu") {
        record["gpu"] = gpu::run(&programs.quarrier, resident.as_deref(), &folder, &scale)?.into();
    }
    if scale.rounds > 0 {
        let path = record::append(&home.join("records"), record)?;
        println!("recorded in {}", path.display());
    }
    Ok(())
}

fn arguments() -> Result<Arguments> {
    let (mut scale, mut only, mut vectorscan, mut built_from) = (FULL, None, None, None);
    let mut home = PathBuf::from("benchmarks");
    let (mut quarrier, mut parmap, mut python) = (None, None, None);
    let (mut svfsc, mut svfs_hpp) = (None, None);
    let (mut quarrier_sql, mut resident) = (None, None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value\n{USAGE}"));
        match word.as_str() {
            "--quick" => scale = QUICK,
            "--tiny" => scale = TINY,
            "--only" => only = Some(value()?),
            "--home" => home = value()?.into(),
            "--quarrier" => quarrier = Some(value()?.into()),
            "--quarrier-sql" => quarrier_sql = Some(value()?.into()),
            "--built-from" => built_from = Some(value()?),
            "--svfsc" => svfsc = Some(value()?.into()),
            "--svfs-hpp" => svfs_hpp = Some(value()?.into()),
            "--parmap" => parmap = Some(value()?.into()),
            "--python" => python = Some(value()?.into()),
            "--resident" => resident = Some(value()?.into()),
            "--vectorscan" => vectorscan = Some(value()?.into()),
            _ => bail!("unknown argument '{word}'\n{USAGE}"),
        }
    }
    if only.as_deref().is_some_and(|only| !PARTS.contains(&only)) {
        bail!("--only takes one of {}\n{USAGE}", PARTS.join(", "));
    }
    let quarrier = quarrier.with_context(|| format!("--quarrier is missing\n{USAGE}"))?;
    Ok(Arguments {
        scale,
        only,
        home,
        quarrier,
        quarrier_sql,
        vectorscan,
        svfsc,
        svfs_hpp,
        parmap,
        python,
        resident,
        built_from,
    })
}

/// Warns if the machine is busy: the ratios of interleaved rounds hold, but the rates are low and
/// uneven.
fn warn_if_busy() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let last_minute = load.split(' ').next().and_then(|load| load.parse::<f64>().ok());
    if let Some(load) = last_minute.filter(|&load| load > 0.5) {
        eprintln!("others use this machine (load average {load}): rates will be low and uneven");
    }
}

fn find_in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Reads a file into the page cache. A virtual machine's memory that was not touched for a while
/// can take seconds per GiB to come back, which no contender's first run should pay for.
fn warm(path: &Path) -> Result<()> {
    let read = || io::copy(&mut File::open(path)?, &mut io::sink());
    read().with_context(|| format!("cannot read {}", path.display()))?;
    Ok(())
}
