//! `quarrier load` and `quarrier reindex`: tables in the durable log.

mod show;

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier::filter::Conditions;
use quarrier::kept::{DataFolder, KeptLoad, KeptLoaded};
use quarrier::{Error, OpenOptions, Opener, Sources};
use quarrier_report::number::{bytes, count as count_text, counted};

use super::search::summary::write_stats;
use super::{broken_output, failed};
use crate::args::{Load, Reindex};
use crate::output;
use crate::output::rows::{self, Column, Excerpt, Layout, Rows, Value};
use crate::{Outcome, complain, host, interrupt};
use show::Show;

const fn column(name: &'static str, kind: rows::Kind) -> Column {
    Column { name, kind }
}

const LOAD_COLUMNS: &[Column] = &[
    column("table", rows::Kind::Text),
    column("source", rows::Kind::Text),
    column("messages", rows::Kind::Unsigned),
    column("rejected", rows::Kind::Unsigned),
    column("start", rows::Kind::Unsigned),
    column("bytes", rows::Kind::Unsigned),
    column("seconds", rows::Kind::Number),
    column("messages_per_second", rows::Kind::Number),
];

const REINDEX_COLUMNS: &[Column] = &[
    column("table", rows::Kind::Text),
    column("messages", rows::Kind::Unsigned),
    column("bytes", rows::Kind::Unsigned),
    column("memory_bytes", rows::Kind::Unsigned),
    column("seconds", rows::Kind::Number),
    column("messages_per_second", rows::Kind::Number),
];

const CONDITION_COLUMNS: &[Column] =
    &[column("condition", rows::Kind::Text), column("count", rows::Kind::Unsigned)];

/// The level of `--compress zstd`: zstd's own default.
const ZSTD_LEVEL: i32 = 3;

/// Runs `quarrier load`.
pub(crate) fn run(load: &Load) -> Outcome {
    let stop = interrupt::watch();
    let mut show = Show::new(load, &stop);
    match loaded(load, &stop, &mut show) {
        Ok(()) => show.outcome(),
        Err(Error::Output(error)) => broken_output(&error),
        Err(error) => failed(&error.to_string(), &stop),
    }
}

fn loaded(load: &Load, stop: &Arc<AtomicBool>, show: &mut Show<'_>) -> quarrier::Result<()> {
    let conditions =
        load.many.as_deref().map(|path| Conditions::of_file(path, stop)).transpose()?;
    let sources = Sources::of(&load.files);
    sources.refuse_overwriting(load.stats.as_deref())?;
    let opener = Opener::new(load.open.clone(), host::environment(), stop);
    let kept = match load.segment_bytes {
        Some(bytes) => DataFolder::open_with(&load.data, bytes)?,
        None => DataFolder::open(&load.data)?,
    };
    show.found(&kept, load.quiet);
    let request = KeptLoad::new(&load.table)
        .format(load.input_format.clone())
        .workers(load.workers)
        .compression(load.is_compressed.then_some(ZSTD_LEVEL))
        .again(load.is_again)
        .retention(load.retention)
        .counting(conditions.clone())
        .rejects(load.rejects.clone());
    let ran = request.run(&kept, &sources, &opener, stop, show);
    let loaded = match ran {
        Ok(loaded) => loaded,
        // Report acknowledged messages first.
        Err(error) => {
            let _ = show.finish();
            return Err(error);
        }
    };
    show.finish().map_err(Error::Output)?;
    if let Some(conditions) = conditions {
        count(load, &kept, &loaded, conditions, (&opener, stop))?;
    }
    if let Some(path) = &load.stats
        && let Err(message) = write_stats(&loaded.stats(), path)
    {
        complain(&message);
        show.worsen(Outcome::Failed);
    }
    kept.close()
}

/// Prints how many of the loaded messages match each condition.
fn count(
    load: &Load,
    kept: &DataFolder,
    loaded: &KeptLoaded,
    conditions: Conditions,
    (opener, stop): (&Opener, &Arc<AtomicBool>),
) -> quarrier::Result<()> {
    let filtered = loaded.filter(kept, &load.table, conditions, opener, stop)?;
    let write = || -> io::Result<()> {
        let layout = Layout::Conditions;
        let mut rows = output::rows::to_stdout(load.format, layout, CONDITION_COLUMNS)?;
        for (text, &count) in filtered.conditions.strings().zip(&filtered.counts) {
            rows.row(&[Value::Text(text), Value::Unsigned(count)], Excerpt::default())?;
        }
        rows.finish()
    };
    write().map_err(Error::Output)
}

/// Runs `quarrier reindex`.
pub(crate) fn reindex(reindex: &Reindex) -> Outcome {
    let stop = interrupt::watch();
    match reindexed(reindex, &stop) {
        Ok(outcome) => outcome,
        Err(Error::Output(error)) => broken_output(&error),
        Err(error) => failed(&error.to_string(), &stop),
    }
}

fn reindexed(reindex: &Reindex, stop: &Arc<AtomicBool>) -> quarrier::Result<Outcome> {
    if let Some(from) = &reindex.restore {
        restore(reindex, from, stop)?;
    }
    let (kept, tables) = DataFolder::reindex(&reindex.data, reindex.workers, stop)?;
    let outcome = tell_found(&kept, false);
    let write = || -> io::Result<()> {
        let layout = Layout::Reindexed;
        let mut rows = output::rows::to_stdout(reindex.format, layout, REINDEX_COLUMNS)?;
        for made in &tables {
            let seconds = made.elapsed.as_secs_f64();
            let values = [
                Value::Text(&made.table.name),
                Value::Unsigned(made.messages),
                Value::Unsigned(made.table.bytes),
                Value::Unsigned(made.memory_bytes as u64),
                Value::Number(seconds),
                Value::Number(per_second(made.messages, seconds)),
            ];
            rows.row(&values, Excerpt::default())?;
        }
        rows.finish()
    };
    write().map_err(Error::Output)?;
    let stats = quarrier::kept::stats_of(&tables);
    if let Some(path) = &reindex.stats
        && let Err(message) = write_stats(&stats, path)
    {
        complain(&message);
        return Ok(Outcome::Failed);
    }
    Ok(outcome)
}

/// Makes the data folder of a copy.
fn restore(reindex: &Reindex, from: &OsStr, stop: &Arc<AtomicBool>) -> quarrier::Result<()> {
    let opener = Opener::new(OpenOptions::default(), host::environment(), stop);
    let place = opener.copy_place(from)?;
    let restored = DataFolder::restore(&place, &reindex.data, stop)?;
    complain(&format!(
        "{}: restored up to mark {} from {}: {}, {} of {}",
        reindex.data.display(),
        count_text(restored.last_mark),
        place.name(),
        counted(restored.tables, "table"),
        bytes(restored.bytes),
        counted(restored.segments, "segment"),
    ));
    Ok(())
}

/// Reports what opening a data folder found; returns whether the folder is intact.
pub(crate) fn tell_found(kept: &DataFolder, is_quiet: bool) -> Outcome {
    if !is_quiet {
        kept.notices().iter().for_each(|notice| complain(notice));
    }
    let damages = kept.damages();
    damages.iter().for_each(|damage| complain(damage));
    if damages.is_empty() { Outcome::Found } else { Outcome::Incomplete }
}

fn per_second(messages: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { messages as f64 / seconds } else { 0.0 }
}

/// Rows of `quarrier load`.
fn rows_of_load(load: &Load) -> io::Result<Box<dyn Rows>> {
    output::rows::to_stdout(load.format, Layout::Loaded, LOAD_COLUMNS)
}
