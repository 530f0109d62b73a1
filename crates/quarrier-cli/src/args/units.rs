//! Options of searches and of carving that run unit by unit.

use std::ffi::OsString;

use clap::{Arg, ArgAction, ArgMatches, value_parser};
use quarrier_units::{Shard, UNIT_BYTES};

use super::flag;
use crate::quantity::size_in;

/// Options of `quarrier search` that show more of a finding than its row, or that need all findings at
/// once.
const NOT_WITH_UNITS: [&str; 12] = [
    "after-context",
    "before-context",
    "context",
    "explain",
    "files-with-matches",
    "histogram",
    "line-context",
    "line-number",
    "max-count",
    "only-matching",
    "report",
    "where",
];

/// How to cut a run into units, and which units to run.
#[derive(Debug, Clone)]
pub(crate) struct Units {
    /// Where to keep the rows.
    pub(crate) to: Option<OsString>,
    pub(crate) unit_bytes: u64,
    pub(crate) shard: Option<Shard>,
    /// Whether to only print the plan.
    pub(crate) plans: bool,
    /// The rate for the plan, in bytes per second.
    pub(crate) bytes_per_second: Option<u64>,
}

/// Options of `quarrier carve` that need all sources in one run.
const NOT_WITH_CARVED_UNITS: [&str; 3] = ["report", "stats", "verify"];

fn named(id: &'static str, name: &'static str, help: &'static str) -> Arg {
    Arg::new(id).long(id).value_name(name).help(help).help_heading("Units")
}

fn rate_arg() -> Arg {
    named("rate", "SIZE", "Bytes per second for --plan, instead of measuring a sample")
        .value_parser(size_in(1..=u64::MAX))
        .action(ArgAction::Set)
        .requires("plan")
}

/// The options of `quarrier carve`, whose units are whole sources.
pub(super) fn carve_args() -> Vec<Arg> {
    vec![
        named(
            "to",
            "FOLDER",
            "Store the rows of each source in this folder, or s3://BUCKET/FOLDER (gs://, az://), as \
             an Arrow file; a source that has a file is not carved again. Prints the rows of all \
             sources, unless --shard is given",
        )
        .value_parser(value_parser!(OsString))
        .conflicts_with_all(NOT_WITH_CARVED_UNITS),
        named(
            "shard",
            "I/N",
            "Carve only every N-th source, from source I on, counted from 0: the share of one of N \
             processes or machines. With --to, prints nothing",
        )
        .value_parser(|text: &str| text.parse::<Shard>()),
        flag(
            "plan",
            "Print the number of sources and bytes, and the estimated seconds; carve only a sample",
        )
        .conflicts_with_all(NOT_WITH_CARVED_UNITS)
        .help_heading("Units"),
        rate_arg(),
    ]
}

/// Parses the options of `quarrier carve`; `None` if there are none.
pub(super) fn parse_carve(matches: &ArgMatches) -> Option<Units> {
    let (to, shard) = (matches.get_one("to").cloned(), matches.get_one("shard").copied());
    let plans = matches.get_flag("plan");
    (to.is_some() || shard.is_some() || plans).then_some(Units {
        to,
        unit_bytes: u64::MAX,
        shard,
        plans,
        bytes_per_second: matches.get_one("rate").copied(),
    })
}

/// The options of `quarrier search`.
pub(super) fn args() -> Vec<Arg> {
    vec![
        named(
            "to",
            "FOLDER",
            "Search unit by unit, and store the rows of each in this folder, or s3://BUCKET/FOLDER \
             (gs://, az://), as an Arrow file; a unit that has a file is not searched again. Prints \
             the rows of all units, unless --shard is given",
        )
        .value_parser(value_parser!(OsString))
        .conflicts_with_all(NOT_WITH_UNITS),
        named(
            "shard",
            "I/N",
            "Search only every N-th unit, from unit I on, counted from 0: the share of one of N \
             processes or machines. With --to, prints nothing",
        )
        .value_parser(|text: &str| text.parse::<Shard>())
        .conflicts_with_all(NOT_WITH_UNITS),
        flag(
            "plan",
            "Print the number of units and bytes, and the estimated seconds; search \
                      only a sample",
        )
        .conflicts_with_all(NOT_WITH_UNITS)
        .help_heading("Units"),
        named("unit-size", "SIZE", "Bytes of a unit; the same for all shards")
            .default_value("1G")
            .value_parser(size_in(1..=u64::MAX)),
        rate_arg(),
    ]
}

/// Parses the options; `None` if the search does not run unit by unit.
///
/// # Errors
/// If a unit size is given without an option that uses it.
pub(super) fn parse(matches: &ArgMatches) -> Result<Option<Units>, String> {
    let (to, shard) = (matches.get_one("to").cloned(), matches.get_one("shard").copied());
    let plans = matches.get_flag("plan");
    if to.is_none() && shard.is_none() && !plans {
        let is_given =
            matches.value_source("unit-size") == Some(clap::parser::ValueSource::CommandLine);
        return match is_given {
            true => Err("--unit-size needs --to, --shard or --plan".to_string()),
            false => Ok(None),
        };
    }
    Ok(Some(Units {
        to,
        unit_bytes: matches.get_one("unit-size").copied().unwrap_or(UNIT_BYTES),
        shard,
        plans,
        bytes_per_second: matches.get_one("rate").copied(),
    }))
}
