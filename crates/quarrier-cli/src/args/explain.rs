//! `quarrier explain`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgMatches, Command};
use quarrier::OpenOptions;

use super::cache::{header_arg, headers_alone};
use super::filter::{conditions_and_files, files_arg, many_arg};
use super::{
    ConditionArg, auto_count, color_arg, format_arg, format_of, json_arg, quiet_arg, stats_arg,
    workers_arg,
};
use crate::log::log_arg;
use crate::output::Format;

/// `quarrier explain`.
#[derive(Debug)]
pub(crate) struct Explain {
    pub(crate) asked: ConditionArg,
    pub(crate) files: Vec<OsString>,
    /// Options for opening sources.
    pub(crate) open: OpenOptions,
    pub(crate) format: Format,
    pub(crate) workers: usize,
    pub(crate) quiet: bool,
    pub(crate) stats: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  quarrier explain \"status = 'REJECTED' AND price > 100\" orders.ndjson
  quarrier explain --many conditions.sql --format json orders.parquet

Loads the files into memory and evaluates all conditions in one pass. It then
prints the cost: the order in which the parts of each condition are evaluated,
the share of rows that each part passes, the tests that conditions share, the
blocks of rows that their zone maps (least and greatest values) decided, and the
bytes of packed columns touched. quarrier-sql, the second program, reads
Parquet.

Exit status: 0 done, 2 wrong use or failure, 130 interrupted.";

pub(super) fn command() -> Command {
    Command::new("explain")
        .about("Shows how conditions are evaluated over messages in memory")
        .after_help(EXAMPLES)
        .arg(many_arg().help("Conditions from a file, one a line, all in one pass"))
        .arg(header_arg())
        .arg(workers_arg("Threads that load and evaluate"))
        .arg(format_arg().help("text, json (one object a condition, then one of all)"))
        .args([json_arg(), color_arg()])
        .args([quiet_arg().help("Do not report rejected messages"), stats_arg(), log_arg()])
        .arg(files_arg())
}

pub(super) fn parse(matches: &ArgMatches) -> Result<Explain, String> {
    let (asked, files) = conditions_and_files(matches, "explain")?;
    let format = format_of(matches)?;
    if !matches!(format, Format::Text | Format::Json) {
        return Err("an explanation is not a table; use --format text or json".to_string());
    }
    Ok(Explain {
        asked,
        files,
        open: headers_alone(matches)?,
        format,
        workers: auto_count(matches, "workers"),
        quiet: matches.get_flag("quiet"),
        stats: matches.get_one("stats").cloned(),
    })
}
