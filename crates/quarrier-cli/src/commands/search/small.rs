//! Small files that were searched ahead, combined into one entry of the account.

use std::time::Duration;

use quarrier::search::AheadLoad;
use quarrier_core::pipeline::{Access, Plan, Run, Span, Stage, Timeline};
use quarrier_search::Finding;

use super::Searched;
use super::hits::Hits;

/// The totals of small files, as if they were concatenated.
pub(super) struct Small {
    files: u64,
    bytes: u64,
    hits: Hits,
}

impl Default for Small {
    fn default() -> Self {
        Small { files: 0, bytes: 0, hits: Hits::new(0..u64::MAX) }
    }
}

impl Small {
    /// Adds a file of this length.
    pub(super) fn add(&mut self, length_bytes: u64, findings: &[Finding]) {
        let placed =
            |finding: &Finding| Finding { offset: finding.offset + self.bytes, ..*finding };
        let placed: Vec<Finding> = findings.iter().map(placed).collect();
        self.hits.add(&placed);
        self.files += 1;
        self.bytes += length_bytes;
    }

    /// The number of files.
    pub(super) fn files(&self) -> u64 {
        self.files
    }

    /// The entry, with the time that the files took.
    pub(super) fn searched(self, elapsed: Duration, load: &AheadLoad) -> Searched {
        let span =
            |stage, busy, bytes| Span { stage, start: Duration::ZERO, end: elapsed, busy, bytes };
        let spans = vec![
            span(Stage::Read, load.read, self.bytes),
            span(Stage::Work, load.work, self.bytes),
        ];
        let plan = Plan {
            access: Access::Read,
            readers: 0,
            workers: load.workers,
            buffers: load.workers,
            buffer_bytes: 0,
            reason: "small files are read whole",
            by: None,
        };
        let timeline = Timeline::of(vec![("workers".to_string(), spans)]);
        let run = Run::of(plan, self.bytes, elapsed, timeline);
        Searched {
            name: format!("{} small files", self.files),
            length_bytes: self.bytes,
            run,
            hits: self.hits,
            range: 0..self.bytes,
            opened: None,
        }
    }
}
