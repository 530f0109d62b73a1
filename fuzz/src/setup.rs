//! Settings that must not affect findings: access, chunks, workers, source, sample.

use std::io::{self, Read};
use std::ops::{ControlFlow, Range};
use std::sync::LazyLock;

use arbitrary::{Result, Unstructured};
use quarrier_core::pipeline::{Access, Chunk, Pipeline};
use quarrier_core::source::{Memory, Source};
use quarrier_search::{Finding, Sample, Searcher};

/// The setup of a search.
#[derive(Debug)]
pub(crate) struct Setup {
    /// `None` for a stream.
    access: Option<Access>,
    workers: usize,
    readers: usize,
    buffers: usize,
    pub(crate) buffer_bytes: usize,
    /// Whether runs of zeros are holes.
    has_holes: bool,
    /// The range in units of 1/256 of the text; `None` for all of it.
    range: Option<(u8, u8)>,
    pub(crate) context_bytes: usize,
    pub(crate) aligned_bytes: u64,
    sample: Looks,
    /// The number of findings after which the sink stops.
    enough: Option<usize>,
}

/// The sample for the searcher.
#[derive(Debug)]
enum Looks {
    Unknown,
    Like,
    Empty,
    Unlike(u8),
}

impl Setup {
    pub(crate) fn draw(u: &mut Unstructured<'_>) -> Result<Self> {
        let access = [
            Some(Access::Window),
            Some(Access::Read),
            Some(Access::Queue),
            Some(Access::Uring),
            None,
        ];
        let buffer_bytes = match u.int_in_range(0..=7)? {
            0..=1 => u.int_in_range(1..=8)?,
            2..=3 => u.int_in_range(9..=130)?,
            4 => 64 * u.int_in_range(1..=8)?,
            5 => u.int_in_range(100..=3000)?,
            6 => 4096 + u.int_in_range(0..=2)? - 1,
            _ => 64 * 1024,
        };
        let mut setup = Setup {
            access: *u.choose(&access)?,
            workers: u.int_in_range(1..=3)?,
            readers: u.int_in_range(1..=2)?,
            buffers: u.int_in_range(1..=6)?,
            buffer_bytes,
            has_holes: u.ratio(1, 4)?,
            range: None,
            context_bytes: if u.ratio(1, 4)? { u.int_in_range(1..=70)? } else { 0 },
            aligned_bytes: if u.ratio(1, 6)? { u.int_in_range(2..=9)? } else { 1 },
            sample: match u.int_in_range(0..=5)? {
                0..=2 => Looks::Unknown,
                3 => Looks::Like,
                4 => Looks::Empty,
                _ => Looks::Unlike(u.arbitrary()?),
            },
            enough: None,
        };
        if u.ratio(1, 6)? {
            setup.range = Some((u.arbitrary()?, u.arbitrary()?));
        }
        if u.ratio(1, 8)? {
            setup.enough = Some(u.int_in_range(0..=5)?);
        }
        Ok(setup)
    }

    /// Returns the sample of `text` for the searcher.
    pub(crate) fn sample(&self, text: &[u8]) -> Sample {
        static UNKNOWN: LazyLock<Sample> = LazyLock::new(Sample::default);
        match self.sample {
            Looks::Unknown => UNKNOWN.clone(),
            Looks::Like => Sample::of(text.to_vec()),
            Looks::Empty => Sample::of(Vec::new()),
            Looks::Unlike(byte) => Sample::of(vec![byte; 5000]),
        }
    }

    /// Returns the part of `text` to search.
    pub(crate) fn range(&self, text: &[u8]) -> Range<usize> {
        let Some((start, length)) = self.range else { return 0..text.len() };
        if self.access.is_none() {
            return 0..text.len(); // a stream has no ranges
        }
        let start = text.len() * usize::from(start) / 256;
        start..start + (text.len() - start) * usize::from(length) / 255
    }

    /// Searches `text` in a pipeline and compares the findings with those `expected`: all of them
    /// in order, or a prefix if the sink stopped. `too_long` is the offset of a match that is too
    /// long, if one is expected.
    pub(crate) fn check(
        &self,
        searcher: &Searcher,
        text: &[u8],
        expected: &[Finding],
        too_long: Option<u64>,
    ) -> std::result::Result<(), String> {
        let range = self.range(text);
        let range = range.start as u64..range.end as u64;
        let mut found: Vec<Finding> = Vec::new();
        let mut unseen = None;
        let mut sink = searcher.sink(|chunk, findings| {
            let hidden = |f: &&Finding| !is_seen(f, chunk, text, &range, self.context_bytes);
            unseen = unseen.or(findings.iter().find(hidden).copied());
            found.extend_from_slice(findings);
            match self.enough {
                Some(enough) if found.len() >= enough => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        let memory = Memory::new("text", text);
        let holey = Holey(text);
        let source: &dyn Source = if self.has_holes { &holey } else { &memory };
        let pipeline = Pipeline::new(source)
            .workers(self.workers)
            .buffers(self.buffers)
            .buffer_bytes(self.buffer_bytes)
            .range(range.clone());
        let ran = match self.access {
            None => pipeline.run_stream("text", &mut Trickle(text), searcher, &mut sink),
            Some(Access::Queue) => {
                pipeline.readers(self.readers).access(Access::Queue).run(searcher, &mut sink)
            }
            Some(access) => pipeline.access(access).run(searcher, &mut sink),
        };
        let said = sink.too_long().map(|error| error.to_string());
        drop(sink);
        let run = ran.map_err(|error| format!("the run failed: {error}"))?;
        if let Some(unseen) = unseen {
            return Err(format!("the sink cannot see {unseen:?} and its context"));
        }
        if run.stopped && said.is_none() {
            return match self.enough {
                Some(enough) if found.len() >= enough => {
                    same(&found, &expected[..found.len().min(expected.len())])
                }
                _ => Err("the run stopped without a reason".to_string()),
            };
        }
        same(&found, expected)?;
        let is_said = match (&said, too_long) {
            (None, None) => true,
            (Some(text), Some(offset)) => text.contains(&format!(" at offset {offset};")),
            _ => false,
        };
        if !is_said {
            return Err(format!("a match too long at {too_long:?} is expected, got {said:?}"));
        }
        if !run.stopped && run.bytes + run.hole_bytes != range.end - range.start {
            return Err(format!("{} + {} bytes of {range:?}", run.bytes, run.hole_bytes));
        }
        Ok(())
    }
}

/// Whether a finding and its context lie within the chunk, and equal the text.
fn is_seen(
    f: &Finding,
    chunk: &Chunk<'_>,
    text: &[u8],
    range: &Range<u64>,
    context: usize,
) -> bool {
    let from = f.offset.saturating_sub(context as u64).max(range.start);
    let to = (f.offset + u64::from(f.length) + context as u64).min(range.end);
    let Some(start) = from.checked_sub(chunk.offset) else { return false };
    let end = (to - chunk.offset) as usize;
    chunk.data.get(start as usize..end) == text.get(from as usize..to as usize)
}

/// Compares two lists; the error describes the first difference.
pub(crate) fn same(found: &[Finding], expected: &[Finding]) -> std::result::Result<(), String> {
    if found == expected {
        return Ok(());
    }
    let at = found.iter().zip(expected).take_while(|(f, e)| f == e).count();
    Err(format!(
        "{} found, {} expected; number {at} is {:?} and should be {:?}",
        found.len(),
        expected.len(),
        found.get(at),
        expected.get(at)
    ))
}

/// A source whose longer runs of zeros are holes.
struct Holey<'t>(&'t [u8]);

const HOLE_BYTES_MIN: usize = 16;

impl Source for Holey<'_> {
    fn name(&self) -> &str {
        "text with holes"
    }

    fn length(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let Some(start) = rest.iter().position(|&byte| byte != 0) else { return Ok(None) };
        let hole = |zeros: &[u8]| zeros.iter().all(|&byte| byte == 0);
        let end = rest[start..].windows(HOLE_BYTES_MIN).position(hole);
        let end = end.map_or(rest.len(), |end| start + end);
        Ok(Some(offset + start as u64..offset + end as u64))
    }
}

/// A stream that yields a few bytes at a time.
struct Trickle<'t>(&'t [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(1000);
        self.0.read(&mut buffer[..count])
    }
}
