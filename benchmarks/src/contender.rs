//! Contenders: programs run as whole processes, and what they say of themselves.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Threads that every contender gets. (ripgrep takes one for a single file.)
pub(crate) const THREADS: usize = 2;

/// Where the programs are. What is `None` is left out.
pub(crate) struct Programs {
    pub(crate) quarrier: PathBuf,
    pub(crate) sum: PathBuf,
    pub(crate) ahocorasick: PathBuf,
    pub(crate) vectorscan: Option<PathBuf>,
    pub(crate) ripgrep: Option<PathBuf>,
}

/// How a program gives its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaks {
    /// One JSON object on standard output.
    Json,
    /// `--stats -`: one JSON object on standard error.
    Stats,
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
    /// Forced by us, where the program does not say.
    engine: Option<&'static str>,
}

/// One run of a contender.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    pub(crate) found: u64,
    /// From start to end of the process, as seen from outside.
    pub(crate) whole_seconds: f64,
    /// The scan alone, as the program says.
    pub(crate) scan_seconds: Option<f64>,
    pub(crate) compile_seconds: Option<f64>,
    pub(crate) engine: Option<String>,
}

impl Programs {
    pub(crate) fn quarrier(&self, patterns: &Path, image: &Path) -> Contender {
        let workers = THREADS.to_string();
        let arguments: [&dyn AsRef<std::ffi::OsStr>; 9] =
            [&"search", &"-f", &patterns, &"-c", &image, &"--workers", &workers, &"--stats", &"-"];
        Contender::new("quarrier", &self.quarrier, &arguments, Speaks::Stats)
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

    pub(crate) fn ripgrep(&self, patterns: &Path, image: &Path) -> Option<Contender> {
        let arguments: [&dyn AsRef<std::ffi::OsStr>; 8] =
            [&"--no-config", &"-a", &"-E", &"none", &"--count-matches", &"-Ff", &patterns, &image];
        let program = self.ripgrep.as_ref()?;
        let contender = Contender::new("ripgrep", program, &arguments, Speaks::Number);
        Some(Contender { threads: 1, ..contender })
    }

    /// One contender for each engine of the crate.
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

    /// The same search, with rows as JSON in the place of times: for checks.
    pub(crate) fn rows(&self, with_counts: bool) -> Result<Vec<Value>> {
        let mut command = Command::new(&self.program);
        command.args(self.arguments.iter().filter(|a| with_counts || a.as_os_str() != "-c"));
        let output =
            command.args(["--format", "json"]).output().with_context(|| self.to_string())?;
        self.check_exit(&output)?;
        let lines = output.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        lines
            .map(serde_json::from_slice)
            .collect::<Result<_, _>>()
            .with_context(|| format!("a row is not JSON: {self} --format json"))
    }

    /// Runs it; `None` when it does not serve these patterns.
    pub(crate) fn run(&self) -> Result<Option<Answer>> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::null()).stderr(Stdio::piped());
        // Counts of each pattern are not looked at here; reading them would take our time.
        let stdout = if self.speaks == Speaks::Stats { Stdio::null() } else { Stdio::piped() };
        let start = Instant::now();
        let output = command
            .stdout(stdout)
            .spawn()
            .and_then(std::process::Child::wait_with_output)
            .with_context(|| self.to_string())?;
        let whole_seconds = start.elapsed().as_secs_f64();
        if self.engine.is_some() && output.status.code() == Some(3) {
            return Ok(None);
        }
        self.check_exit(&output)?;
        let mut answer = self.read(&output).with_context(|| format!("no result from: {self}"))?;
        answer.whole_seconds = whole_seconds;
        Ok(Some(answer))
    }

    fn check_exit(&self, output: &Output) -> Result<()> {
        // 1 is "nothing found", for quarrier and ripgrep alike.
        let nothing_found = self.speaks != Speaks::Json && output.status.code() == Some(1);
        if !output.status.success() && !nothing_found {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("{} ({}): {self}", said.trim(), output.status);
        }
        Ok(())
    }

    fn read(&self, output: &Output) -> Result<Answer> {
        let object = |bytes: &[u8]| -> Result<Value> {
            let text = std::str::from_utf8(bytes)?;
            let start = text.find('{').context("it printed no JSON object")?;
            let end = text.rfind('}').context("it printed no JSON object")?;
            Ok(serde_json::from_str(&text[start..=end])?)
        };
        let (value, found, scan) = match self.speaks {
            Speaks::Number => {
                let text = String::from_utf8_lossy(&output.stdout);
                let text = if text.trim().is_empty() { "0" } else { text.trim() };
                return Ok(Answer { found: text.parse()?, ..Answer::default() });
            }
            Speaks::Json => (object(&output.stdout)?, "found", "scan_seconds"),
            Speaks::Stats => (object(&output.stderr)?, "findings", "seconds"),
        };
        Ok(Answer {
            found: value[found].as_u64().with_context(|| format!("no field '{found}'"))?,
            whole_seconds: 0.0,
            scan_seconds: value[scan].as_f64(),
            compile_seconds: value["compile_seconds"].as_f64(),
            engine: self.engine.or(value["engine"].as_str()).map(str::to_string),
        })
    }
}

impl fmt::Display for Contender {
    /// The command line, to try by hand.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.program.display())?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {}", argument.to_string_lossy()))
    }
}
