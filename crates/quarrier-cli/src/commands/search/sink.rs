//! The end of the pipeline: counts, locates and writes findings.

use std::io;
use std::ops::ControlFlow;

use quarrier_core::pipeline::Chunk;
use quarrier_search::{Finding, Pattern};

use super::lines::{self, Lines};
use super::matches::Matches;
use crate::args::Shown;
use crate::output::rows::{Excerpt, Rows, Value};

/// The number of findings of each pattern, over all sources.
pub(super) struct Counts {
    pub(super) of_patterns: Vec<u64>,
}

impl Counts {
    pub(super) fn new(patterns: usize) -> Self {
        Counts { of_patterns: vec![0; patterns] }
    }

    pub(super) fn add(&mut self, findings: &[Finding]) {
        for of_one in findings.chunk_by(|a, b| a.pattern == b.pattern) {
            self.of_patterns[of_one[0].pattern as usize] += of_one.len() as u64;
        }
    }
}

/// The destination of one source's findings.
pub(super) struct Output<'o> {
    pub(super) name: &'o str,
    pub(super) patterns: &'o [Pattern],
    pub(super) context_bytes: usize,
    pub(super) shown: Shown,
    pub(super) matches: Matches,
    pub(super) lines: Lines,
    /// `None` if only counts are wanted.
    pub(super) rows: Option<&'o mut (dyn Rows + 'o)>,
    /// Why rows could not be written.
    pub(super) error: Option<io::Error>,
}

impl Output<'_> {
    /// Takes the findings of a chunk; `Break` if they cannot be written.
    pub(super) fn take(&mut self, chunk: &Chunk<'_>, findings: &[Finding]) -> ControlFlow<()> {
        match self.write(chunk, findings) {
            // If only names of sources are wanted, the first finding is enough.
            Ok(()) if self.shown.only_sources && !findings.is_empty() => ControlFlow::Break(()),
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    fn write(&mut self, chunk: &Chunk<'_>, findings: &[Finding]) -> io::Result<()> {
        let Some(rows) = &mut self.rows else { return Ok(()) };
        if self.shown.only_sources && findings.is_empty() {
            return Ok(());
        }
        if self.shown.only_sources {
            return rows.row(&[Value::Text(self.name)], Excerpt::default());
        }
        for finding in findings {
            let pattern = &self.patterns[finding.pattern as usize];
            let line =
                if self.shown.numbered { self.lines.number(chunk, finding.offset) } else { 0 };
            let values = [
                Value::Text(self.name),
                Value::Unsigned(finding.offset),
                Value::Unsigned(u64::from(finding.length)),
                Value::Text(&pattern.text),
                pattern.name.as_deref().map_or(Value::Missing, Value::Text),
                self.matches.of_finding(chunk, finding, pattern),
                Value::Unsigned(line),
            ];
            let values = if self.shown.numbered { &values[..] } else { &values[..6] };
            rows.row(values, excerpt(chunk, finding, self.context_bytes, &self.shown))?;
        }
        if self.shown.numbered {
            self.lines.pass(chunk);
        }
        Ok(())
    }
}

/// The finding's bytes and those around it, as far as the source extends.
fn excerpt<'c>(
    chunk: &Chunk<'c>,
    finding: &Finding,
    context_bytes: usize,
    shown: &Shown,
) -> Excerpt<'c> {
    if shown.lines {
        return lines::around(chunk, finding, shown);
    }
    let start = (finding.offset - chunk.offset) as usize;
    let end = start + finding.length as usize;
    let from = start.saturating_sub(context_bytes);
    let to = (end + context_bytes).min(chunk.data.len());
    Excerpt {
        before: &chunk.data[from..start],
        found: &chunk.data[start..end],
        after: &chunk.data[end..to],
        is_lines: false,
    }
}
