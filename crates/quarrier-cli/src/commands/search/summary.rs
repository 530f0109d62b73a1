//! The run's account: statistics, report, and a few lines for people.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use quarrier::Ceiling;
use quarrier::account::{CeilingShare, Stages, Stats, rate};
use quarrier_core::pipeline::Run;
use quarrier_report::{Manner, number, on_terminal};

use super::{Searched, Session};
use crate::output::file::write_whole;
use crate::output::report::{self, Report, SourceRun};

/// The totals of all sources.
pub(super) struct Summary {
    stats: Stats,
    ceiling: Option<Ceiling>,
}

impl Summary {
    pub(super) fn new(session: &Session<'_>, done: &[Searched], measured: Option<Ceiling>) -> Self {
        let runs: Vec<&Run> = done.iter().map(|searched| &searched.run).collect();
        let worked: u64 = runs.iter().map(|run| run.bytes).sum();
        let holes: u64 = runs.iter().map(|run| run.hole_bytes).sum();
        let seconds: f64 = runs.iter().map(|run| run.elapsed).sum::<Duration>().as_secs_f64();
        let ceiling = measured.map(|ceiling| ceiling.share_of(worked, seconds));
        let stats = Stats {
            findings: session.running.findings(),
            patterns: session.patterns.len(),
            compile_seconds: session.build_seconds,
            engine: session.running.engine_name(),
            device: session.running.device_label(),
            device_names: session.running.device_names().to_vec(),
            remote: session.opener.remote_cost(),
            ..stats_of(&runs, (worked + holes, seconds), ceiling)
        };
        Summary { stats, ceiling: measured }
    }

    pub(super) fn write_stats(&self, path: &Path) -> Result<(), String> {
        write_stats(&self.stats, path)
    }

    pub(super) fn write_report(
        &self,
        path: &Path,
        session: &Session<'_>,
        done: &[Searched],
    ) -> Result<(), String> {
        let sources: Vec<SourceRun<'_>> = done
            .iter()
            .map(|searched| SourceRun {
                name: &searched.name,
                length_bytes: searched.length_bytes,
                elapsed: searched.run.elapsed,
                timeline: &searched.run.timeline,
                ceiling_bytes_per_second: self.ceiling.map(|c| c.bytes_per_second),
                hits: searched.hits.of_length(searched.length_bytes),
                unreadable: &searched.run.unreadable,
            })
            .collect();
        let mut patterns: Vec<(String, u64)> = session
            .patterns
            .iter()
            .map(|pattern| pattern.label().to_string())
            .zip(session.counts.of_patterns.iter().copied())
            .collect();
        patterns.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let facts = self.facts();
        let page = report::html(&Report {
            title: &session.search.line,
            facts: &facts,
            sources: &sources,
            patterns: &patterns,
        });
        write_whole(path, page.as_bytes())
            .map_err(|error| format!("{}: cannot write the report: {error}", path.display()))
    }

    /// The account as label and value.
    fn facts(&self) -> Vec<(String, String)> {
        let stats = &self.stats;
        let mut facts = vec![
            ("bytes", format!("{} ({})", number::bytes(stats.bytes), number::count(stats.bytes))),
            ("time", format!("{:.3} s", stats.seconds)),
            ("rate", number::rate(stats.bytes_per_second)),
            ("findings", number::count(stats.findings)),
            ("patterns", format!("{}, compiled in {:.3} s", stats.patterns, stats.compile_seconds)),
            ("engine", stats.engine.clone()),
            ("device", [&[stats.device.clone()][..], &stats.device_names].concat().join(", ")),
            ("workers", stats.workers.to_string()),
            (
                "buffers",
                format!("{} × {}", stats.buffers, number::bytes(stats.buffer_bytes as u64)),
            ),
            ("access", stats.access.to_string()),
            ("limited by", stats.limited_by.to_string()),
        ];
        if stats.hole_bytes > 0 {
            facts.insert(1, ("of that holes", number::bytes(stats.hole_bytes)));
        }
        if let Some(remote) = &stats.remote {
            facts.push(("fetched", remote.describe()));
        }
        if let Some(share) = stats.describe_share() {
            facts.push(("share of the ceiling", share));
        }
        facts.into_iter().map(|(label, value)| (label.to_string(), value)).collect()
    }

    /// The account in two lines on standard error.
    pub(super) fn tell(&self) {
        use std::io::Write;
        let stats = &self.stats;
        let holes = match stats.hole_bytes {
            0 => String::new(),
            bytes => format!(" ({} of them holes)", number::bytes(bytes)),
        };
        let share = stats.describe_share().map_or(String::new(), |share| format!(", {share}"));
        let _ = writeln!(
            std::io::stderr(),
            "{}{holes} in {:.3} s: {}{share}\n{}; engine {}, {}; limited by {}",
            number::bytes(stats.bytes),
            stats.seconds,
            number::rate(stats.bytes_per_second),
            number::counted(stats.findings, "finding"),
            stats.engine,
            number::counted(stats.workers as u64, "worker"),
            stats.limited_by,
        );
    }
}

/// The figures of the pipeline runs, over all sources; the plan is that of the first run.
pub(super) fn stats_of(
    runs: &[&Run],
    (bytes, seconds): (u64, f64),
    ceiling: Option<CeilingShare>,
) -> Stats {
    let plan = runs.first().map(|run| &run.plan);
    let stages = Stages::new(runs.iter().map(|run| &run.timeline));
    let workers = plan.map_or(0, |plan| plan.workers);
    let limited_by = stages.limit(ceiling.as_ref(), workers, seconds).name();
    Stats {
        command: "search",
        bytes,
        hole_bytes: runs.iter().map(|run| run.hole_bytes).sum(),
        seconds,
        bytes_per_second: rate(bytes, seconds),
        workers,
        readers: plan.map_or(0, |plan| plan.readers),
        buffers: plan.map_or(0, |plan| plan.buffers),
        buffer_bytes: plan.map_or(0, |plan| plan.buffer_bytes),
        access: plan.map_or("", |plan| plan.access.name()),
        stages,
        ceiling,
        limited_by,
        ..Stats::default()
    }
}

/// Writes statistics to a file, or to standard error for `-`.
///
/// # Errors
/// A message for the user.
pub(in crate::commands) fn write_stats(stats: &Stats, path: &Path) -> Result<(), String> {
    let mut text = stats.to_json().to_string().into_bytes();
    text.push(b'\n');
    if path == Path::new("-") {
        let mut out = on_terminal(std::io::stderr(), Manner::Json);
        return out.write_all(&text).map_err(|error| error.to_string());
    }
    write_whole(path, &text)
        .map_err(|error| format!("{}: cannot write the statistics: {error}", path.display()))
}
