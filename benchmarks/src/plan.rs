//! The planner's choice against a sweep of all choices: a search from the page cache, from the
//! disk, and from a source with latency. The table is that of the older report: threads × buffers,
//! with the time and the load of each.

use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use quarrier_core::pipeline::{Access, Chunk, Pipeline, Rates, Run, Stage};
use quarrier_core::region::AsData;
use quarrier_core::source::{FileSource, Source};
use quarrier_search::{Pattern, Searcher};
use serde_json::{Value, json};

use crate::Scale;
use crate::image::Image;
use crate::table::Table;

/// The sweep keeps this many choices, which then run in turns with the planner's.
const FINALISTS: usize = 3;
const FINAL_ROUNDS: usize = 16;
/// Latency of the slow source, and its maximum rate.
const LATENCY: Duration = Duration::from_millis(4);
const BYTES_PER_SECOND_MAX: f64 = 800e6;
/// Bytes of the image to search there.
const SLOW_BYTES: u64 = 256 << 20;
/// The number of keywords to search for.
const PATTERNS: usize = 10;

/// A choice that a user could make by hand.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Choice {
    access: Access,
    readers: usize,
    workers: usize,
    buffers: usize,
    buffer_bytes: usize,
}

impl Choice {
    fn of(run: &Run) -> Self {
        let plan = &run.plan;
        Choice {
            access: plan.access,
            readers: plan.readers,
            workers: plan.workers,
            buffers: plan.buffers,
            buffer_bytes: plan.buffer_bytes,
        }
    }

    fn set<'a>(self, pipeline: Pipeline<'a>) -> Pipeline<'a> {
        pipeline
            .access(self.access)
            .readers(self.readers)
            .workers(self.workers)
            .buffers(self.buffers)
            .buffer_bytes(self.buffer_bytes)
    }
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Choice { access, readers, workers, buffers, buffer_bytes } = *self;
        let (access, kib) = (access.name(), buffer_bytes >> 10);
        write!(f, "{access}, {readers} readers, {workers} workers, {buffers} buffers of {kib} KiB")
    }
}

/// A file read as if over a slow line: each request waits, and all share a rate.
struct Slow {
    file: FileSource,
    free_at: std::sync::Mutex<std::time::Instant>,
}

impl Source for Slow {
    fn name(&self) -> &str {
        "slow"
    }
    fn length(&self) -> u64 {
        self.file.length().min(SLOW_BYTES)
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let asked = std::time::Instant::now();
        let bytes = self.file.read_at(offset, buffer)?;
        let sending = Duration::from_secs_f64(bytes as f64 / BYTES_PER_SECOND_MAX);
        let done = {
            let mut free_at = self.free_at.lock().unwrap_or_else(|broken| broken.into_inner());
            *free_at = (*free_at).max(asked + LATENCY) + sending;
            *free_at
        };
        std::thread::sleep(done.saturating_duration_since(std::time::Instant::now()));
        Ok(bytes)
    }
}

/// A source, made again for each run in its initial state.
struct Case<'a> {
    name: &'static str,
    open: &'a dyn Fn() -> Result<Box<dyn Source>>,
    choices: Vec<Choice>,
}

/// Sweeps, then compares; prints the tables.
pub(crate) fn run(folder: &Path, scale: &Scale) -> Result<Value> {
    let image = Image::prepare(folder, scale.image_bytes)?;
    let words = image.keywords.iter().take(PATTERNS);
    let patterns = words.map(|word| Ok(Pattern::literal(std::str::from_utf8(word)?)?));
    let searcher = Searcher::builder().build(patterns.collect::<Result<_>>()?)?;
    let cached = || -> Result<Box<dyn Source>> {
        crate::warm(&image.path)?;
        Ok(Box::new(FileSource::open(&image.path)?))
    };
    let cold = || -> Result<Box<dyn Source>> {
        forget(&image.path)?;
        Ok(Box::new(FileSource::open(&image.path)?))
    };
    let slow = || -> Result<Box<dyn Source>> {
        let file = FileSource::open(&image.path)?;
        Ok(Box::new(Slow { file, free_at: std::time::Instant::now().into() }))
    };
    let cases = [
        Case { name: "page cache", open: &cached, choices: windows() },
        Case { name: "disk", open: &cold, choices: queues(&[1, 2, 4, 8, 16]) },
        Case { name: "slow source", open: &slow, choices: queues(&[1, 2, 4, 8, 16, 32]) },
    ];
    let cases = cases.iter().map(|case| {
        // The expected findings, by one worker in one piece.
        let bytes = (case.open)()?.length();
        let source = cached()?;
        let one = Pipeline::new(&*source).range(0..bytes).workers(1).readers(1);
        let expected = search(&searcher, one)?.1;
        case.run(&searcher, expected)
    });
    Ok(cases.collect::<Result<Vec<_>>>()?.into())
}

impl Case<'_> {
    fn run(&self, searcher: &Searcher, expected: u64) -> Result<Value> {
        eprintln!("sweeping {} choices for the {}", self.choices.len(), self.name);
        let timed = |choice: Option<Choice>, rates: Option<&Rates>| -> Result<(f64, Run)> {
            let source = (self.open)()?;
            let (run, found) = match choice {
                Some(choice) => count(searcher, &*source, Some(choice))?,
                None => planned(searcher, &*source, rates)?,
            };
            if found != expected {
                bail!("{}: {found} findings, not {expected}", self.name);
            }
            Ok((run.elapsed.as_secs_f64(), run))
        };
        // Like a user's run: probes the source if it has to be read.
        let source = (self.open)()?;
        let rates = match source.is_resident() {
            true => None,
            false => Rates::probe(&*source, 0..source.length()),
        };
        let mut swept = Vec::new();
        for &choice in &self.choices {
            let (seconds, run) = timed(Some(choice), None)?;
            swept.push((seconds, choice, load(&run)));
        }
        self.print(&swept);
        swept.sort_by(|a, b| a.0.total_cmp(&b.0));
        let finalists: Vec<Choice> = swept.iter().take(FINALISTS).map(|swept| swept.1).collect();
        // The planner's choice is the last. Each choice comes first equally often, so that the
        // traces of a run on a disk or its host favour none.
        let mut times = vec![Vec::new(); finalists.len() + 1];
        let mut chosen = None;
        for round in 0..FINAL_ROUNDS {
            for turn in 0..times.len() {
                let who = (round + turn) % times.len();
                let choice = finalists.get(who).copied();
                let (seconds, run) = timed(choice, rates.as_ref())?;
                times[who].push(seconds);
                if choice.is_none() {
                    chosen = Some(Choice::of(&run));
                }
            }
        }
        let finals: Vec<f64> = times.iter_mut().map(|times| median(times)).collect();
        let (ours, finals) = (finals[finalists.len()], &finals[..finalists.len()]);
        let best = finals.iter().copied().fold(f64::INFINITY, f64::min);
        let at = finals.iter().position(|&seconds| seconds == best).unwrap_or(0);
        let Some(chosen) = chosen else { bail!("no rounds") };
        if let Some(same) = finalists.iter().position(|choice| *choice == chosen) {
            println!("the planned choice as one of the sweep: {:.1} ms", 1e3 * finals[same]);
        }
        println!("planned: {chosen}: {:.1} ms", 1e3 * ours);
        println!("best of the sweep: {}: {:.1} ms", finalists[at], 1e3 * best);
        println!("planned ÷ best: {:.3} (at most 1.05)\n", ours / best);
        let name = self.name;
        Ok(
            json!({ "case": name, "findings": expected, "planned": chosen.to_string(), "seconds": ours,
            "best": finalists[at].to_string(), "best_seconds": best, "ratio": ours / best }),
        )
    }

    /// Prints threads × buffers, at the best buffer size.
    fn print(&self, swept: &[(f64, Choice, [f64; 3])]) {
        println!("\n{}: ms, and the load of reading, work and sink in per cent\n", self.name);
        let mut rows: Vec<(String, Vec<String>)> = Vec::new();
        let sizes: Vec<usize> = unique(swept.iter().map(|(_, choice, _)| choice.buffer_bytes));
        for (seconds, choice, load) in swept {
            let name = match choice.readers {
                0 => format!("{} workers, {} windows", choice.workers, choice.buffers),
                readers => format!("{readers} readers, {} buffers", choice.buffers),
            };
            let [read, work, sink] = load.map(|load| format!("{:.0}", 100.0 * load));
            let cell = format!("{:.0} ({read} {work} {sink})", 1e3 * seconds);
            match rows.iter_mut().find(|row| row.0 == name) {
                Some(row) => row.1.push(cell),
                None => rows.push((name, vec![cell])),
            }
        }
        let sizes = sizes.iter().map(|size| format!("{} KiB", size >> 10));
        let headings: Vec<String> = std::iter::once(String::new()).chain(sizes).collect();
        let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
        for (name, cells) in rows {
            table.row(std::iter::once(name).chain(cells).collect());
        }
        println!("{table}");
    }
}

fn windows() -> Vec<Choice> {
    let mut choices = Vec::new();
    for workers in [1, 2, 4] {
        for buffers in [workers, workers + 2, 2 * workers + 4] {
            for mib in [1, 4, 16, 64] {
                let buffer_bytes = mib << 20;
                let access = Access::Window;
                choices.push(Choice { access, readers: 0, workers, buffers, buffer_bytes });
            }
        }
    }
    choices
}

fn queues(readers: &[usize]) -> Vec<Choice> {
    let mut choices = Vec::new();
    for &readers in readers {
        for buffers in [readers + 2, 2 * readers + 4, 4 * readers + 4] {
            for kib in [256, 1024, 4096] {
                let (access, workers, buffer_bytes) = (Access::Queue, 2, kib << 10);
                choices.push(Choice { access, readers, workers, buffers, buffer_bytes });
            }
        }
    }
    choices
}

fn count(searcher: &Searcher, source: &dyn Source, choice: Option<Choice>) -> Result<(Run, u64)> {
    let pipeline = Pipeline::new(source).range(whole(source));
    search(searcher, choice.map_or(pipeline.clone(), |choice| choice.set(pipeline)))
}

fn planned(searcher: &Searcher, source: &dyn Source, rates: Option<&Rates>) -> Result<(Run, u64)> {
    let pipeline = Pipeline::new(source).range(whole(source));
    search(searcher, rates.map_or(pipeline.clone(), |rates| pipeline.rates(rates.clone())))
}

fn search(searcher: &Searcher, pipeline: Pipeline<'_>) -> Result<(Run, u64)> {
    let mut found = 0;
    let mut sink = searcher.sink(|_: &Chunk<'_>, findings| {
        found += findings.len() as u64;
        std::ops::ControlFlow::Continue(())
    });
    // SAFETY: a searcher only compares bytes and makes no text of them, and this sink reads none.
    let promise = unsafe { AsData::promised() };
    let run = pipeline.show_changing(promise).run(searcher, &mut sink)?;
    drop(sink);
    Ok((run, found))
}

fn whole(source: &dyn Source) -> Range<u64> {
    0..source.length()
}

/// Returns the share of the time that the agents of a stage were busy.
fn load(run: &Run) -> [f64; 3] {
    [Stage::Read, Stage::Work, Stage::Sink].map(|stage| {
        let load = run.timeline.load(stage);
        let all = load.busy + load.waiting;
        if all.is_zero() { 0.0 } else { load.busy.as_secs_f64() / all.as_secs_f64() }
    })
}

/// Drops a file from the page cache.
fn forget(path: &Path) -> Result<()> {
    let file = std::fs::File::open(path)?;
    file.sync_all()?;
    // SAFETY: the descriptor is open while `file` lives, and the call takes no pointer.
    let status = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    if status != 0 {
        bail!("{}: cannot be taken out of the page cache", path.display());
    }
    Ok(())
}

fn unique(values: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut seen = Vec::new();
    values.for_each(|value| {
        if !seen.contains(&value) {
            seen.push(value);
        }
    });
    seen
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
