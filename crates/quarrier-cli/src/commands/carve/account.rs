//! The run's account: counts by type, statistics, and lines for people.

use std::io::{self, IsTerminal, Write};

use quarrier::account::{Files, Stages, Stats, rate};
use quarrier_carve::Summary;
use quarrier_core::source::Source;
use quarrier_report::{number, padded, visible};

use super::watch::Seen;
use super::{Run, page};
use crate::Outcome;
use crate::commands::print;
use crate::commands::search::summary::write_stats;
use crate::host;
use crate::output::Format;

/// Prints the number of files of each type, for people.
pub(super) fn table(format: Format, seen: &Seen) -> Outcome {
    if format != Format::Text {
        return Outcome::Found;
    }
    let line = |(kind, counts): (&String, &[u64; 3])| {
        format!("{} {}\n", padded(&visible(kind), 8), counts_in_words(counts))
    };
    print(&seen.by_type.iter().map(line).collect::<String>())
}

/// `12 valid, 3 partial`.
fn counts_in_words(counts: &[u64; 3]) -> String {
    let names = ["valid", "partial", "header"];
    let some = counts.iter().zip(names).filter(|(count, _)| **count > 0);
    some.map(|(count, name)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

/// Writes the requested statistics and report, and prints the account on a terminal.
///
/// # Errors
/// A message for the user.
pub(super) fn give(
    run: &Run<'_>,
    summary: &Summary,
    seen: &Seen,
    source: Option<&dyn Source>,
) -> Result<(), String> {
    let is_told = !run.carve.quiet && io::stderr().is_terminal();
    if run.carve.stats.is_none() && run.carve.report.is_none() && !is_told {
        return Ok(());
    }
    let stats = stats(run, summary, seen, source);
    if is_told {
        tell(run, &stats, seen);
    }
    if let Some(path) = &run.carve.report {
        page::write(path, run, summary, &stats, seen)?;
    }
    match &run.carve.stats {
        Some(path) => write_stats(&stats, path),
        None => Ok(()),
    }
}

fn stats(run: &Run<'_>, summary: &Summary, seen: &Seen, source: Option<&dyn Source>) -> Stats {
    let seconds = run.elapsed.as_secs_f64();
    let worked = summary.bytes - summary.hole_bytes.min(summary.bytes);
    let plan = summary.plan.as_ref();
    let stages = Stages::of(&summary.stages);
    // A remote source was measured while it was read; reading it again would cost as much.
    let measured = plan
        .filter(|_| !summary.stopped)
        .and_then(|plan| host::machine().ceiling(source?, plan, run.range.clone()));
    let ceiling = measured.map(|ceiling| ceiling.share_of(worked, seconds));
    let limited_by = stages.limit(ceiling.as_ref(), summary.workers, seconds).name();
    let [valid, partial, header] = seen.by_status();
    Stats {
        command: "carve",
        bytes: summary.bytes,
        column_bytes: None,
        hole_bytes: summary.hole_bytes,
        seconds,
        bytes_per_second: rate(summary.bytes, seconds),
        findings: seen.total(),
        patterns: summary.signatures,
        compile_seconds: summary.compile.as_secs_f64(),
        workers: summary.workers,
        readers: plan.map_or(0, |plan| plan.readers),
        buffers: plan.map_or(0, |plan| plan.buffers),
        buffer_bytes: plan.map_or(0, |plan| plan.buffer_bytes),
        access: plan.map_or("", |plan| plan.access.name()),
        engine: summary.engine.clone(),
        device: "cpu".to_string(),
        device_names: Vec::new(),
        stages,
        ceiling,
        limited_by,
        remote: run.remote,
        messages: None,
        files: Some(Files {
            valid,
            partial,
            header,
            mended: summary.mended,
            bytes: seen.bytes,
            skimmed: summary.skimmed.clone(),
        }),
    }
}

/// Prints the account on standard error: two lines, and one about free ranges.
fn tell(run: &Run<'_>, stats: &Stats, seen: &Seen) {
    let share = stats.describe_share().map_or(String::new(), |share| format!(", {share}"));
    if let Some(free) = &run.free {
        let _ = writeln!(io::stderr(), "unallocated: {free}");
    }
    let types = seen
        .by_type
        .iter()
        .map(|(kind, counts)| format!("{} {}", counts.iter().sum::<u64>(), visible(kind)));
    let types: Vec<_> = types.collect();
    let types = if types.is_empty() { String::new() } else { format!(": {}", types.join(", ")) };
    let _ = writeln!(
        io::stderr(),
        "{} in {:.3} s: {}{share}\n{} of {}{types}; engine {}, {}; limited by {}",
        number::bytes(stats.bytes),
        stats.seconds,
        number::rate(stats.bytes_per_second),
        number::counted(stats.findings, "file"),
        number::bytes(seen.bytes),
        stats.engine,
        number::counted(stats.workers as u64, "worker"),
        stats.limited_by,
    );
}
