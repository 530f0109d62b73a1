//! `quarrier explain`.

use std::ffi::OsString;

use clap::{ArgMatches, Command};

use super::filter::{condition_args, conditions_and_files, files_arg};
use super::{Asked, InputFormat, auto_count, format_arg, workers_arg};
use crate::output::Format;

/// `quarrier explain`.
#[derive(Debug)]
pub(crate) struct Explain {
    pub(crate) asked: Asked,
    pub(crate) files: Vec<OsString>,
    pub(crate) input_format: Option<InputFormat>,
    pub(crate) format: Format,
    pub(crate) workers: Option<usize>,
}

const EXAMPLES: &str = "\
Examples:
  quarrier explain \"status = 'REJECTED' AND price > 100\" orders.ndjson
  quarrier explain --many conditions.sql --format json orders.ndjson

The files are loaded into memory, the conditions evaluated once, all in one pass. Printed is
what that took: in which order the parts of a condition were evaluated and how many rows each
left, which blocks of rows were skipped by their least and greatest values, how many bytes of
packed columns were touched, and what conditions share.

Exit status: 0 done, 2 wrong use or failure.";

pub(super) fn command() -> Command {
    Command::new("explain")
        .about("Shows how a condition is evaluated over messages in memory")
        .after_help(EXAMPLES)
        .args(condition_args())
        .arg(workers_arg("Threads that load and evaluate"))
        .arg(format_arg().help("text, json"))
        .arg(files_arg())
}

pub(super) fn parse(matches: &ArgMatches) -> Result<Explain, String> {
    let (asked, files) = conditions_and_files(matches, "explain")?;
    let format = *matches.get_one("format").unwrap_or(&Format::Text);
    if !matches!(format, Format::Text | Format::Json) {
        return Err("an explanation is no table; --format is text or json".to_string());
    }
    Ok(Explain {
        asked,
        files,
        input_format: matches.get_one::<Option<InputFormat>>("input-format").copied().flatten(),
        format,
        workers: auto_count(matches, "workers"),
    })
}
