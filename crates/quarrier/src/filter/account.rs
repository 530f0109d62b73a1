//! The account of a run.

use std::time::Duration;

use super::Filtered;
use crate::account::{Stages, Stats, rate};
use crate::{Ceiling, Machine};

impl Filtered {
    /// Computes the account. To find the ceiling, it reads the largest source once more if that is
    /// cheap, as for a local, uncompressed file.
    pub fn stats(&self, machine: &Machine) -> Stats {
        let runs = || self.runs.iter();
        let worked: u64 = runs().map(|run| run.bytes).sum();
        let holes: u64 = runs().map(|run| run.hole_bytes).sum();
        let seconds: f64 = runs().map(|run| run.elapsed).sum::<Duration>().as_secs_f64();
        let plan = runs().next().map(|run| &run.plan);
        let stages = Stages::new(runs().map(|run| &run.timeline));
        let ceiling = self.ceiling(machine).map(|ceiling| ceiling.share_of(worked, seconds));
        let workers = plan.map_or(0, |plan| plan.workers);
        let limited_by = stages.limit(ceiling.as_ref(), workers, seconds).name();
        Stats {
            command: "filter",
            bytes: worked + holes,
            hole_bytes: holes,
            seconds,
            bytes_per_second: rate(worked + holes, seconds),
            findings: self.counts.iter().sum(),
            patterns: self.counts.len(),
            compile_seconds: self.bind.as_secs_f64(),
            workers,
            readers: plan.map_or(0, |plan| plan.readers),
            buffers: plan.map_or(0, |plan| plan.buffers),
            buffer_bytes: plan.map_or(0, |plan| plan.buffer_bytes),
            access: plan.map_or("", |plan| plan.access.name()),
            engine: "sieve".to_string(),
            device: "cpu".to_string(),
            stages,
            ceiling,
            limited_by,
            remote: self.remote,
            messages: Some((self.messages, self.rejected)),
            ..Stats::default()
        }
    }

    fn ceiling(&self, machine: &Machine) -> Option<Ceiling> {
        let largest = self.largest.as_ref().filter(|_| !self.is_stopped)?;
        let source = largest.source.as_deref()?;
        machine.ceiling(source, &self.runs[largest.run].plan, 0..source.length())
    }
}
