//! The run's account: statistics, and a line for people.

use std::io::{self, IsTerminal, Write};

use quarrier::account::Stats;
use quarrier::filter::Filtered;
use quarrier_report::number;

use crate::args::Filter;
use crate::commands::search::summary::write_stats;
use crate::host;

/// Writes the requested account.
///
/// # Errors
/// A message for the user.
pub(super) fn give(filter: &Filter, filtered: &Filtered) -> Result<(), String> {
    let is_told = !filter.quiet && io::stderr().is_terminal();
    if filter.stats.is_none() && !is_told {
        return Ok(());
    }
    let stats = filtered.stats(host::machine());
    if is_told {
        tell(&stats, filtered.messages);
    }
    match &filter.stats {
        Some(path) => write_stats(&stats, path),
        None => Ok(()),
    }
}

fn tell(stats: &Stats, messages: u64) {
    let per_second = if stats.seconds > 0.0 { messages as f64 / stats.seconds } else { 0.0 };
    let _ = writeln!(
        io::stderr(),
        "{messages} messages, {} in {:.3} s: {:.1} M messages/s, {}\n{} found; {} workers; limited \
         by {}",
        number::bytes(stats.bytes),
        stats.seconds,
        per_second / 1e6,
        number::rate(stats.bytes_per_second),
        stats.findings,
        stats.workers,
        stats.limited_by,
    );
}
