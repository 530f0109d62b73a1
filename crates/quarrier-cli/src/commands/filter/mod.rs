//! `quarrier filter`: rows and counts go to standard output, messages for people to standard error.

mod account;
mod out;
mod show;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier::filter::{Conditions, Filtered, Form};
use quarrier::{DataFolder, Error, Opener, Sources};

use super::load::tell_found;
use super::{all_names, broken_output, failed, warn_of_cache};
use crate::args::{ConditionArg, Filter};
use crate::output::rows::{self, Column, Layout, Value};
use crate::output::{self, Format};
use crate::{Outcome, complain, host, interrupt};
use show::Show;

/// Runs the command.
pub(crate) fn run(filter: &Filter) -> Outcome {
    let stop = interrupt::watch();
    let mut show = Show::new(filter, &stop);
    let ran = filtered(filter, &stop, &mut show).and_then(|filtered| {
        finish_output(filter, &filtered, &mut show).map_err(Error::Output)?;
        Ok(filtered)
    });
    match ran {
        Ok(filtered) => close(filter, &filtered, show),
        Err(Error::Output(error)) => broken_output(&error),
        Err(error) => failed(&error.to_string(), &stop),
    }
}

fn filtered(
    filter: &Filter,
    stop: &Arc<AtomicBool>,
    show: &mut Show<'_>,
) -> quarrier::Result<Filtered> {
    let request = request(filter, stop)?;
    let sources = match &filter.data {
        None => Sources::of_until(all_names(&filter.files, &filter.files_from, stop)?, stop),
        Some(folder) => {
            let kept = DataFolder::read(folder)?;
            if let outcome @ Outcome::Incomplete = tell_found(&kept, true) {
                show.worsen(outcome);
            }
            kept.sources(filter.files.iter().map(|name| name.to_string_lossy()))?
        }
    };
    sources.refuse_overwriting(filter.stats.as_deref())?;
    let opener = Opener::new(filter.cache.options(), host::environment(), stop);
    let filtered = request.run(&sources, &opener, stop, show);
    warn_of_cache(&opener);
    filtered
}

/// The request for these options.
fn request(filter: &Filter, stop: &AtomicBool) -> quarrier::Result<quarrier::Filter> {
    Ok(quarrier::Filter::new(conditions(&filter.asked, stop)?)
        .form(form(filter))
        .columns(filter.columns.clone())
        .format(filter.input_format.clone())
        .follow(filter.follow)
        .matches_max(filter.limit.unwrap_or(u64::MAX))
        .rejects(filter.rejects.clone())
        .workers(filter.workers))
}

/// The conditions of the command line, read from their file if necessary.
pub(super) fn conditions(asked: &ConditionArg, stop: &AtomicBool) -> quarrier::Result<Conditions> {
    match asked {
        ConditionArg::One(text) => Ok(Conditions::one(text)),
        ConditionArg::Many(path) => Conditions::of_file(path, stop),
    }
}

fn form(filter: &Filter) -> Form {
    match (filter.format, &filter.columns) {
        _ if filter.only_counts() => Form::Count,
        _ if matches!(filter.asked, ConditionArg::Many(_)) => Form::Matches,
        (Format::Text, None) => Form::Messages,
        (Format::Text, Some(_)) => Form::Text,
        (Format::Json, _) => Form::Json,
        (Format::Csv, _) => Form::Csv,
        (Format::Arrow, _) => Form::Arrow,
    }
}

const CONDITION_COLUMNS: &[Column] = &[
    Column { name: "condition", kind: rows::Kind::Text },
    Column { name: "count", kind: rows::Kind::Unsigned },
];

/// Ends the rows, and prints the counts if they were requested.
fn finish_output(filter: &Filter, filtered: &Filtered, show: &mut Show<'_>) -> io::Result<()> {
    let is_right = show.finish()?;
    if !is_right || filtered.runs.is_empty() || !filter.only_counts() {
        return Ok(());
    }
    let is_many = matches!(filter.asked, ConditionArg::Many(_));
    let (layout, columns) = match is_many {
        true => (Layout::Conditions, CONDITION_COLUMNS),
        false => (Layout::Number, &CONDITION_COLUMNS[1..]),
    };
    let mut rows = output::rows::to_stdout(filter.format, layout, columns)?;
    for (text, &count) in filtered.conditions.strings().zip(&filtered.counts) {
        let values = [Value::Text(text), Value::Unsigned(count)];
        rows.row(&values[usize::from(!is_many)..], rows::Excerpt::default())?;
    }
    rows.finish()
}

/// Statistics and account; then the outcome.
fn close(filter: &Filter, filtered: &Filtered, mut show: Show<'_>) -> Outcome {
    if let Err(message) = account::give(filter, filtered) {
        complain(&message);
        show.worsen(Outcome::Failed);
    }
    let is_found = filtered.counts.iter().any(|&count| count > 0);
    show.outcome().unwrap_or(if is_found { Outcome::Found } else { Outcome::Nothing })
}
