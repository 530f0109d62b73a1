//! Contenders: programs that run as whole processes, and their own reports.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Number of threads of every contender. (ripgrep uses one for a single file.)
pub(crate) const THREADS: usize = 2;

/// The paths of the programs; `None` leaves one out.
pub(crate) struct Programs {
    pub(crate) quarrier: PathBuf,
    pub(crate) sum: PathBuf,
    pub(crate) ahocorasick: PathBuf,
    pub(crate) vectorscan: Option<PathBuf>,
    pub(crate) ripgrep: Option<PathBuf>,
}

/// The exit code of a rival for an engine that does not support these patterns.
const NOT_SERVED: i32 = 3;

/// The form in which a program reports its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaks {
    /// One JSON object on standard output.
    Json,
    /// Rows of counts as CSV on standard output; with `--stats -`, one JSON object on
    /// standard error.
    Rows,
    /// A number on standard output.
    Number,
}

/// A program with its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    pub(crate) threads: usize,
    program: PathBuf,
    arguments: Vec<OsString>,
    speaks: Speaks,
    /// The engine that the arguments force, if the program does not report it.
    engine: Option<&'static str>,
}

/// One run of a contender.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    pub(crate) found: u64,
    /// Time from start to end of the process, measured from outside.
    pub(crate) whole_seconds: f64,
    /// The time of the scan alone, as the program reports it.
    pub(crate) scan_seconds: Option<f64>,
    pub(crate) compile_seconds: Option<f64>,
    pub(crate) engine: Option<String>,
}

impl Programs {
    pub(crate) fn quarrier(&self, patterns: &Path, image: &Path) -> Contender {
        let workers = THREADS.to_string();
        let arguments: [&dyn AsRef<std::ffi::OsStr>; 7] =
            [&"search", &"-f", &patterns, &"-c", &image, &"--workers", &workers];
        Contender::new("quarrier", &self.quarrier, &arguments, Speaks::Rows)
    }

    pub(crate) fn sum(&self, image: &Path) -> Contender {
        let threads = THREADS.to_string();
        Contender::new("sum", &self.sum, &[&image, &threads], Speaks::Json)
    }

    pub(crate) fn vectorscan(&self, patterns: &Path, image: &Path) -> Option<Contender> {
        let threads = THREADS.to_string();
        let arguments: [&dyn AsRef<std::ffi::OsStr>; 3] = [&patterns, &image, &threads];
        let program = self.vectorscan.as_ref()?;
        Some(Contender::new("vectorscan", program, &arguments, Speaks::Json))
    }

    /// A contender that counts the regexes that match anywhere.
    pub(crate) fn vectorscan_regexes(&self, regexes: &Path, image: &Path) -> Option<Contender> {
        let threads = THREADS.to_string();
        let arguments: [&dyn AsRef<std::ffi::OsStr>; 4] =
            [&"--regexes", &regexes, &image, &threads];
        let program = self.vectorscan.as_ref()?;
        Some(Contender::new("vectorscan", program, &arguments, Speaks::Json))
    }

    pub(crate) fn ripgrep(&self, patterns: &Path, image: &Path) -> Option<Contender> {
        let arguments: [&dyn AsRef<std::ffi::OsStr>; 8] =
            [&"--no-config", &"-a", &"-E", &"none", &"--count-matches", &"-Ff", &patterns, &image];
        let program = self.ripgrep.as_ref()?;
        let contender = Contender::new("ripgrep", program, &arguments, Speaks::Number);
        Some(Contender { threads: 1, ..contender })
    }

    /// Returns one contender for each engine of the crate.
    pub(crate) fn ahocorasick(&self, patterns: &Path, image: &Path) -> Vec<Contender> {
        let threads = THREADS.to_string();
        ["auto", "dfa", "packed", "memmem"]
            .into_iter()
            .map(|engine| {
                let arguments: [&dyn AsRef<std::ffi::OsStr>; 4] =
                    [&patterns, &image, &threads, &engine];
                let contender =
                    Contender::new("aho-corasick", &self.ahocorasick, &arguments, Speaks::Json);
                Contender { engine: Some(engine), ..contender }
            })
            .collect()
    }
}

impl Contender {
    fn new(
        name: &'static str,
        program: &Path,
        arguments: &[&dyn AsRef<std::ffi::OsStr>],
        speaks: Speaks,
    ) -> Self {
        Contender {
            name,
            threads: THREADS,
            program: program.to_path_buf(),
            arguments: arguments.iter().map(|&argument| argument.as_ref().into()).collect(),
            speaks,
            engine: None,
        }
    }

    /// Returns every finding as a row, instead of counts, for checks.
    pub(crate) fn findings(&self) -> Result<Vec<Value>> {
        let mut command = Command::new(&self.program);
        command.args(self.arguments.iter().filter(|argument| argument.as_os_str() != "-c"));
        let output =
            command.args(["--format", "json"]).output().with_context(|| self.to_string())?;
        self.check_exit(&output)?;
        let lines = output.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        lines
            .map(serde_json::from_slice)
            .collect::<Result<_, _>>()
            .with_context(|| format!("a row is not JSON: {self} --format json"))
    }

    /// Returns the counts of its rows, in order.
    pub(crate) fn counts(&self, more: &[&str]) -> Result<Vec<u64>> {
        let (output, _) = self.run_once(more)?.context("it does not serve")?;
        counts(&output.stdout)
    }

    /// Runs the contender; `None` if it does not support these patterns.
    ///
    /// quarrier runs twice. With `--stats` it also measures the machine's ceiling, by reading the
    /// file once more: the time of the scan comes from that run, the time of the whole process from
    /// one without.
    pub(crate) fn run(&self) -> Result<Option<Answer>> {
        let Some((output, whole_seconds)) = self.run_once(&[])? else { return Ok(None) };
        let mut answer = match self.speaks {
            Speaks::Json => self.read_object(&output.stdout, "found", "scan_seconds"),
            Speaks::Number => read_number(&output.stdout),
            Speaks::Rows => self.run_for_stats(&output.stdout),
        }
        .with_context(|| format!("no result from: {self}"))?;
        answer.whole_seconds = whole_seconds;
        Ok(Some(answer))
    }

    fn run_for_stats(&self, rows: &[u8]) -> Result<Answer> {
        let (output, _) = self.run_once(&["--stats", "-"])?.context("it does not serve")?;
        let answer = self.read_object(&output.stderr, "findings", "seconds")?;
        let counts: u64 = counts(rows)?.iter().sum();
        if counts != answer.found {
            bail!("WRONG COUNT: the rows add up to {counts}, --stats says {}", answer.found);
        }
        Ok(answer)
    }

    fn run_once(&self, more: &[&str]) -> Result<Option<(Output, f64)>> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(more).stdin(Stdio::null());
        if self.speaks == Speaks::Rows {
            command.args(["--format", "csv"]);
        }
        let start = Instant::now();
        let output = command.output().with_context(|| self.to_string())?;
        let whole_seconds = start.elapsed().as_secs_f64();
        if self.engine.is_some() && output.status.code() == Some(NOT_SERVED) {
            return Ok(None);
        }
        self.check_exit(&output)?;
        Ok(Some((output, whole_seconds)))
    }

    fn check_exit(&self, output: &Output) -> Result<()> {
        // Both quarrier and ripgrep exit with 1 if they find nothing.
        let nothing_found = self.speaks != Speaks::Json && output.status.code() == Some(1);
        if !output.status.success() && !nothing_found {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("{} ({}): {self}", said.trim(), output.status);
        }
        Ok(())
    }

    fn read_object(&self, bytes: &[u8], found: &str, scan: &str) -> Result<Answer> {
        let text = std::str::from_utf8(bytes)?;
        let ends = text.find('{').zip(text.rfind('}'));
        let (start, end) = ends.context("it printed no JSON object")?;
        let value: Value = serde_json::from_str(&text[start..=end])?;
        Ok(Answer {
            found: value[found].as_u64().with_context(|| format!("no field '{found}'"))?,
            whole_seconds: 0.0,
            scan_seconds: value[scan].as_f64(),
            compile_seconds: value["compile_seconds"].as_f64(),
            engine: self.engine.or(value["engine"].as_str()).map(str::to_string),
        })
    }
}

/// No output means a count of 0.
fn read_number(stdout: &[u8]) -> Result<Answer> {
    let text = std::str::from_utf8(stdout)?.trim();
    let found = if text.is_empty() { 0 } else { text.parse()? };
    Ok(Answer { found, ..Answer::default() })
}

/// Returns the last column of all rows after the header.
fn counts(rows: &[u8]) -> Result<Vec<u64>> {
    let lines = std::str::from_utf8(rows)?.lines().skip(1);
    let counts = lines.map(|line| line.rsplit(',').next().unwrap_or_default().parse::<u64>());
    counts.collect::<Result<_, _>>().context("a count is not a number")
}

impl fmt::Display for Contender {
    /// Formats the command line, to try by hand.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.program.display())?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {}", argument.to_string_lossy()))
    }
}
