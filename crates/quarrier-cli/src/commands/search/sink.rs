//! The end of the pipeline: findings are counted, placed and written.

use std::io;
use std::ops::ControlFlow;

use quarrier_core::pipeline::Chunk;
use quarrier_search::{Finding, Pattern};

use super::hits::Hits;
use crate::output::rows::{Excerpt, Rows, Value};

/// Counts over all sources.
pub(super) struct Tally {
    pub(super) counts: Vec<u64>,
    pub(super) total: u64,
    max: u64,
}

impl Tally {
    pub(super) fn new(patterns: usize, max: Option<u64>) -> Self {
        Tally { counts: vec![0; patterns], total: 0, max: max.unwrap_or(u64::MAX) }
    }

    pub(super) fn is_full(&self) -> bool {
        self.total >= self.max
    }
}

/// Where findings of one source go.
pub(super) struct Output<'o> {
    pub(super) name: &'o str,
    pub(super) patterns: &'o [Pattern],
    pub(super) context_bytes: usize,
    /// None where only counts are wanted.
    pub(super) rows: Option<&'o mut (dyn Rows + 'static)>,
    pub(super) error: Option<io::Error>,
}

/// Takes the findings of a chunk.
pub(super) fn take(
    tally: &mut Tally,
    hits: &mut Hits,
    output: &mut Output<'_>,
    chunk: &Chunk<'_>,
    findings: &[Finding],
) -> ControlFlow<()> {
    let room = usize::try_from(tally.max - tally.total).unwrap_or(usize::MAX);
    let findings = &findings[..findings.len().min(room)];
    tally.total += findings.len() as u64;
    for of_one in findings.chunk_by(|a, b| a.pattern == b.pattern) {
        tally.counts[of_one[0].pattern as usize] += of_one.len() as u64;
    }
    hits.add(findings);
    if let Err(error) = output.write(chunk, findings) {
        output.error = Some(error);
        return ControlFlow::Break(());
    }
    if tally.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

impl Output<'_> {
    fn write(&mut self, chunk: &Chunk<'_>, findings: &[Finding]) -> io::Result<()> {
        let Some(rows) = &mut self.rows else { return Ok(()) };
        for finding in findings {
            let pattern = &self.patterns[finding.pattern as usize];
            let values = [
                Value::Text(self.name),
                Value::Unsigned(finding.offset),
                Value::Unsigned(u64::from(finding.length)),
                Value::Text(&pattern.text),
                pattern.name.as_deref().map_or(Value::Missing, Value::Text),
            ];
            rows.row(&values, excerpt(chunk, finding, self.context_bytes))?;
        }
        Ok(())
    }
}

/// The finding's bytes and those around it, as far as the source has them.
fn excerpt<'c>(chunk: &Chunk<'c>, finding: &Finding, context_bytes: usize) -> Excerpt<'c> {
    let start = (finding.offset - chunk.offset) as usize;
    let end = start + finding.length as usize;
    let from = start.saturating_sub(context_bytes);
    let to = (end + context_bytes).min(chunk.data.len());
    Excerpt {
        before: &chunk.data[from..start],
        found: &chunk.data[start..end],
        after: &chunk.data[end..to],
    }
}
