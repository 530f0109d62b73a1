//! Searches as the command does, for who wants rows and not a command: `search(…)` in SQL.

use std::ffi::OsString;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_core::pipeline::{Kernel, Run};
use quarrier_core::source::Source;
use quarrier_search::{EngineName, Finding, Options, Pattern, Sample, Searcher};

use super::device::OnDevices;
use super::remote::Client;
use super::source::{self, Input, Named};
use super::{Either, ceiling, device, machine, patterns, pipeline};
use crate::args::{PatternArg, Search, of_words};

/// Takes findings of a source, by its name, in order; the numbers in them count the patterns that
/// were asked for. `Break` ends the search.
pub type Take<'t> = dyn FnMut(&str, &[Finding]) -> ControlFlow<()> + Send + 't;

/// What part of a search is wanted.
#[derive(Debug, Clone)]
pub struct Part {
    /// Which patterns, by their places in [`Finder::patterns`], in rising order.
    pub patterns: Vec<usize>,
    /// Where findings start. Findings are those of the whole source all the same.
    pub starts: Range<u64>,
}

/// The patterns of a search.
#[derive(Debug, Clone, Copy)]
pub enum Patterns<'p> {
    /// A pattern file, by its name.
    File(&'p str),
    /// What would stand in one.
    Lines(&'p str),
}

/// A search that can be run, as often as is wanted.
#[derive(Debug)]
pub struct Finder {
    search: Search,
    patterns: Vec<Pattern>,
    named: Vec<Named>,
}

/// What was searched.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Searched {
    /// How many bytes.
    pub bytes: u64,
    /// What could not be read, a line each: the source, and which bytes of it.
    pub unread: Vec<String>,
    /// How close it came to the machine's ceilings, a line for each source whose one is known.
    /// Empty where nobody [asked](Finder::find).
    pub reached: Vec<Reached>,
}

/// How close the search of one source came to the ceiling.
#[derive(Debug, Clone, PartialEq)]
pub struct Reached {
    /// Which one: `memory read` or `disk read`.
    pub of: &'static str,
    /// Bytes that were read.
    pub bytes: u64,
    /// Bytes that the ceiling lets through in the same time.
    pub ceiling_bytes: f64,
}

/// A compiled set, the devices that search for it, and the buffer size where findings are many.
struct Prepared {
    searcher: Arc<Searcher>,
    on_devices: Option<OnDevices>,
    dense_buffer_bytes: Option<usize>,
}

impl Finder {
    /// Of what the command line calls SOURCE (a file, a glob, an image in parts, a URL), of
    /// patterns as a pattern file has them, or the name of one, and of options as words of the
    /// command line (`-i`, `--aligned`, `512`).
    ///
    /// # Errors
    /// Of patterns or options that make no sense. Sources are opened when they are searched.
    pub fn new(source: &str, of: Patterns<'_>, options: &[String]) -> Result<Finder, String> {
        let asked = match of {
            Patterns::File(path) => PatternArg::File(path.into()),
            Patterns::Lines(text) => PatternArg::Lines(text.to_string()),
        };
        let search = of_words(options, vec![asked], vec![OsString::from(source)])?;
        let patterns = patterns::collect(&search.patterns)?;
        let named = source::expand(&search.sources);
        Ok(Finder { search, patterns, named })
    }

    /// The patterns, in their order.
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// How many sources are searched.
    pub fn sources(&self) -> usize {
        self.named.len()
    }

    /// The bytes that a search of `part` looks at; of regexes those before it too, since where one
    /// matches depends on the matches before.
    pub fn range(&self, part: &Part) -> Range<u64> {
        let is_any_regex = part.patterns.iter().any(|&place| self.patterns[place].is_regex());
        let wish = &self.search.range;
        let start = if is_any_regex { wish.start } else { wish.start.max(part.starts.start) };
        start..wish.end.min(part.starts.end).max(start)
    }

    /// Searches one source after another, and tells what could not be read; with `is_held_against`
    /// also how close it came to the ceiling of each source, which takes a fraction of a second
    /// more where the machine profile does not have it.
    ///
    /// # Errors
    /// When a source cannot be opened or fails as a whole, or a regex matches more than it may.
    pub fn find(
        &self,
        part: &Part,
        stop: &Arc<AtomicBool>,
        is_held_against: bool,
        take: &mut Take<'_>,
    ) -> Result<Searched, String> {
        let client = Client::new(&self.search, stop);
        let mut searched = Searched::default();
        if part.patterns.is_empty() || part.starts.is_empty() {
            return Ok(searched);
        }
        let mut prepared = None;
        let mut is_done = false;
        for named in &self.named {
            if is_done || stop.load(Ordering::Relaxed) {
                break;
            }
            let mut input = named.open(self.search.direct, &client)?;
            let prepared = match &mut prepared {
                Some(prepared) => prepared,
                None => prepared.insert(self.prepare(part, &input)?),
            };
            let name = input.name().to_string();
            // The end of what is wanted of a source ends its run, and no other's.
            let mut take = |findings: &[Finding]| {
                let flow = take(&name, findings);
                is_done = flow.is_break();
                flow
            };
            let run = self.find_in(part, prepared, &mut input, stop, &mut take)?;
            if let (true, Input::Source(source)) = (is_held_against, &input) {
                searched.reached.extend(reached(&**source, &run));
            }
            searched.bytes += run.bytes;
            searched.unread.extend(unread(&name, &run.unreadable));
        }
        if let Some(on) = prepared.as_ref().and_then(|prepared| prepared.on_devices.as_ref()) {
            on.tell_lost(0);
        }
        Ok(searched)
    }

    /// Compiles the patterns, for what the first source looks like.
    fn prepare(&self, part: &Part, first: &Input) -> Result<Prepared, String> {
        let search = &self.search;
        let options = Options {
            ignore_case: search.ignore_case,
            utf16: search.utf16,
            regex_length_bytes_max: search.regex_length_bytes_max,
        };
        let mut builder = Searcher::builder()
            .options(options)
            .engine(search.engine)
            .aligned(search.aligned_bytes);
        let sample = match first {
            Input::Source(source) if search.engine == EngineName::Auto => {
                Some(Sample::take(&**source))
            }
            _ => None,
        };
        if let Some(sample) = &sample {
            builder = builder.sample(sample.clone());
        }
        let patterns = part.patterns.iter().map(|&place| self.patterns[place].clone()).collect();
        let searcher = builder.build(patterns).map_err(|error| error.to_string())?;
        let searcher = Arc::new(searcher);
        let wanted = self.range(part);
        let length = match first {
            Input::Source(source) => wanted.end.min(source.length()).saturating_sub(wanted.start),
            Input::Remote(_) | Input::Stream(..) => 0,
        };
        let on_devices = device::choose(search, &searcher, sample.as_ref(), length)?;
        let dense_buffer_bytes = sample.and_then(|sample| searcher.buffer_bytes_max(&sample));
        Ok(Prepared { searcher, on_devices, dense_buffer_bytes })
    }

    /// Searches one source.
    fn find_in(
        &self,
        part: &Part,
        prepared: &Prepared,
        input: &mut Input,
        stop: &AtomicBool,
        take: &mut (dyn FnMut(&[Finding]) -> ControlFlow<()> + Send),
    ) -> Result<Run, String> {
        let name = input.name().to_string();
        let searcher = &*prepared.searcher;
        let on = prepared.on_devices.as_ref();
        let kernel = on.map_or(Either::Cpu(searcher), Either::Devices);
        let memory = |bytes: usize| on.map(|on| on.searcher.buffer(bytes));
        let mut wanted = Vec::new();
        let mut sink = searcher.sink(|_, findings| {
            let from = findings.partition_point(|f| f.offset < part.starts.start);
            let to = findings.partition_point(|f| f.offset < part.starts.end).max(from);
            wanted.clear();
            wanted.extend(findings[from..to].iter().map(|finding| Finding {
                pattern: part.patterns[finding.pattern as usize] as u32,
                ..*finding
            }));
            let flow = if wanted.is_empty() { ControlFlow::Continue(()) } else { take(&wanted) };
            // Findings come in order: behind the end there is nothing to wait for.
            if to < findings.len() { ControlFlow::Break(()) } else { flow }
        });
        let reach = searcher.need().after_bytes as u64;
        let run = match input {
            Input::Source(source) => {
                let source = &**source;
                let range = self.bytes(part, source, reach)?;
                let length = range.end - range.start;
                let mut pipeline = pipeline(&self.search, stop, source).range(range.clone());
                if let (None, Some(bytes)) = (self.search.buffer_bytes, prepared.dense_buffer_bytes)
                {
                    pipeline = pipeline.buffer_bytes(bytes);
                }
                pipeline = kernel.prepare(&self.search, pipeline, Some(source), length);
                if let Some(rates) = machine::rates(source, &range) {
                    pipeline = pipeline.rates(rates);
                }
                kernel.run(&pipeline.memory(&memory), &mut sink)
            }
            Input::Remote(source) => {
                let source = &*source;
                let range = self.bytes(part, source, reach)?;
                source.announce(range.clone());
                let length = range.end - range.start;
                let pipeline = pipeline(&self.search, stop, source).range(range);
                let pipeline = kernel.prepare(&self.search, pipeline, Some(source), length);
                kernel.run(&pipeline.memory(&memory), &mut sink)
            }
            Input::Stream(name, reader) => {
                if self.search.range != (0..u64::MAX) {
                    return Err(format!("{name}: --range needs a source with offsets"));
                }
                let nothing = quarrier_core::source::Memory::new("-", Vec::new());
                let pipeline = pipeline(&self.search, stop, &nothing);
                let pipeline = kernel.prepare(&self.search, pipeline, None, 0);
                kernel.run_stream(&pipeline.memory(&memory), name, reader, &mut sink)
            }
        };
        let too_long = sink.too_long();
        drop(sink);
        let run = run.map_err(|error| error.to_string())?;
        match too_long {
            Some(error) => Err(format!("{name}: {error}")),
            None => Ok(run),
        }
    }

    /// The bytes of a source to be searched for `part`; a finding reaches that far behind its start.
    fn bytes(&self, part: &Part, source: &dyn Source, reach: u64) -> Result<Range<u64>, String> {
        let (wish, length) = (&self.search.range, source.length());
        if wish.start > length {
            return Err(format!(
                "{}: the range begins at byte {} but the source has {length} bytes",
                source.name(),
                wish.start
            ));
        }
        let Range { start, end } = self.range(part);
        let end = end.saturating_add(reach).min(wish.end).min(length);
        Ok(start.min(end)..end)
    }
}

/// How close a run over a source came to the ceiling.
fn reached(source: &dyn Source, run: &Run) -> Option<Reached> {
    let ceiling = ceiling::find(source, &run.plan, 0..source.length())?;
    let ceiling_bytes = ceiling.bytes_per_second * run.elapsed.as_secs_f64();
    Some(Reached { of: ceiling.of, bytes: run.bytes, ceiling_bytes })
}

/// What is said of bytes that could not be read, a line for each range.
pub fn unread(name: &str, ranges: &[Range<u64>]) -> impl Iterator<Item = String> {
    ranges
        .iter()
        .map(move |range| format!("{name}: bytes {}..{} could not be read", range.start, range.end))
}
