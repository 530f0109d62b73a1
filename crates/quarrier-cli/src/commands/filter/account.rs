//! The run's account: statistics, and a line for people.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use quarrier::Ceiling;
use quarrier::account::{Stages, Stats, rate};

use super::{Done, Session};
use crate::commands::search::summary::write_stats;
use crate::host;
use crate::quantity::{show_bytes, show_rate};

/// Writes what is asked for.
///
/// # Errors
/// In words.
pub(super) fn give(session: &Session<'_>, done: &[Done]) -> Result<(), String> {
    let is_told = !session.filter.quiet && io::stderr().is_terminal();
    if session.filter.stats.is_none() && !is_told {
        return Ok(());
    }
    // The largest source stands for all.
    let largest = done.iter().max_by_key(|done| done.run.bytes);
    let measured = largest.filter(|_| !session.is_stopped()).and_then(|done| {
        let source = done.source.as_deref()?;
        host::machine().ceiling(source, &done.run.plan, 0..source.length())
    });
    let stats = stats(session, done, measured);
    if is_told {
        tell(&stats, session.tally.messages);
    }
    match &session.filter.stats {
        Some(path) => write_stats(&stats, path),
        None => Ok(()),
    }
}

fn stats(session: &Session<'_>, done: &[Done], measured: Option<Ceiling>) -> Stats {
    let runs = || done.iter().map(|done| &done.run);
    let worked: u64 = runs().map(|run| run.bytes).sum();
    let holes: u64 = runs().map(|run| run.hole_bytes).sum();
    let seconds: f64 = runs().map(|run| run.elapsed).sum::<Duration>().as_secs_f64();
    let plan = runs().next().map(|run| &run.plan);
    let stages = Stages::new(runs().map(|run| &run.timeline));
    let ceiling = measured.map(|ceiling| ceiling.share_of(worked, seconds));
    let workers = plan.map_or(0, |plan| plan.workers);
    let limited_by = stages.limit(ceiling.as_ref(), workers, seconds).name();
    Stats {
        command: "filter",
        bytes: worked + holes,
        column_bytes: None,
        hole_bytes: holes,
        seconds,
        bytes_per_second: rate(worked + holes, seconds),
        findings: session.tally.counts.iter().sum(),
        patterns: session.conditions.texts.len(),
        compile_seconds: session.bind_seconds,
        workers,
        readers: plan.map_or(0, |plan| plan.readers),
        buffers: plan.map_or(0, |plan| plan.buffers),
        buffer_bytes: plan.map_or(0, |plan| plan.buffer_bytes),
        access: plan.map_or("", |plan| plan.access.name()),
        engine: "sieve".to_string(),
        device: "cpu".to_string(),
        device_names: Vec::new(),
        stages,
        ceiling,
        limited_by,
        remote: None,
        messages: Some((session.tally.messages, session.tally.rejected)),
        files: None,
    }
}

fn tell(stats: &Stats, messages: u64) {
    let per_second = if stats.seconds > 0.0 { messages as f64 / stats.seconds } else { 0.0 };
    let _ = writeln!(
        io::stderr(),
        "{messages} messages, {} in {:.3} s: {:.1} M messages/s, {}\n{} found; {} workers; limited \
         by {}",
        show_bytes(stats.bytes),
        stats.seconds,
        per_second / 1e6,
        show_rate(stats.bytes_per_second),
        stats.findings,
        stats.workers,
        stats.limited_by,
    );
}
