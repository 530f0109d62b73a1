//! Options of searches and of carving that run unit by unit.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, value_parser};
use quarrier_units::{Shard, UNIT_BYTES};

use super::cache::CacheArgs;
use super::query::seconds;
use super::{Carve, Search, flag};
use crate::cluster::CLUSTER_VARIABLE;
use crate::complain;
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
    /// The nodes for which the plan is simulated.
    pub(crate) nodes: Option<PlannedNodes>,
    /// The scheduler of the cluster that runs the units.
    pub(crate) cluster: Option<String>,
    /// Whether the user chose the size of units.
    pub(crate) is_unit_size_given: bool,
}

/// Nodes for which a plan is simulated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlannedNodes {
    pub(crate) count: u32,
    /// The rate of the store for all nodes together, in bytes per second.
    pub(crate) store_bytes_per_second: Option<u64>,
    /// The time to hand out a unit.
    pub(crate) dispatch: Duration,
}

/// Options of `quarrier carve` that need all sources in one run.
const NOT_WITH_CARVED_UNITS: [&str; 3] = ["report", "stats", "verify"];

/// Options of `quarrier search` that a cluster does not have, besides [`NOT_WITH_UNITS`].
const NOT_SEARCHED_ON_CLUSTERS: [&str; 3] = ["shard", "plan", "rules"];

/// Options of `quarrier carve` that a cluster does not have, besides [`NOT_WITH_CARVED_UNITS`].
const NOT_CARVED_ON_CLUSTERS: [&str; 3] = ["shard", "plan", "resume"];

fn named(id: &'static str, name: &'static str, help: &'static str) -> Arg {
    Arg::new(id).long(id).value_name(name).help(help).help_heading("Units")
}

fn rate_arg() -> Arg {
    named("rate", "SIZE", "Bytes per second for --plan, instead of measuring a sample")
        .value_parser(size_in(1..=u64::MAX))
        .action(ArgAction::Set)
        .requires("plan")
}

/// The options of a plan for several nodes.
fn node_args() -> [Arg; 3] {
    [
        named(
            "nodes",
            "N",
            "Simulate --plan on N nodes, each with the rate of the plan: prints the simulated seconds, \
             and what limits them",
        )
        .value_parser(value_parser!(u32).range(1..=1_000_000))
        .requires("plan"),
        named("store-rate", "SIZE", "With --nodes: bytes per second of the store for all nodes together")
            .value_parser(size_in(1..=u64::MAX))
            .requires("nodes"),
        named("dispatch", "SECONDS", "With --nodes: time in which the scheduler hands out a unit")
            .value_parser(seconds)
            .requires("nodes"),
    ]
}

fn nodes(matches: &ArgMatches) -> Option<PlannedNodes> {
    Some(PlannedNodes {
        count: *matches.get_one("nodes")?,
        store_bytes_per_second: matches.get_one("store-rate").copied(),
        dispatch: matches.get_one("dispatch").copied().unwrap_or_default(),
    })
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
        named(
            "cluster",
            "HOST:PORT",
            "Carve on the workers of this cluster, see 'quarrier cluster'; all of them must find the \
             sources, and the folders of -o and --to, by the same names",
        )
        .value_parser(value_parser!(String))
        .conflicts_with_all(NOT_WITH_CARVED_UNITS)
        .conflicts_with_all(NOT_CARVED_ON_CLUSTERS),
        rate_arg(),
    ]
    .into_iter()
    .chain(node_args())
    .collect()
}

/// Parses the options of `quarrier carve`; `None` if there are none.
fn parse_carve(matches: &ArgMatches) -> Option<Units> {
    let (to, shard) = (matches.get_one("to").cloned(), matches.get_one("shard").copied());
    let plans = matches.get_flag("plan");
    let others = NOT_WITH_CARVED_UNITS.into_iter().chain(NOT_CARVED_ON_CLUSTERS);
    let cluster = cluster_of(matches, "carves", others);
    (to.is_some() || shard.is_some() || plans || cluster.is_some()).then_some(Units {
        to,
        unit_bytes: u64::MAX,
        shard,
        plans,
        bytes_per_second: matches.get_one("rate").copied(),
        nodes: nodes(matches),
        cluster,
        is_unit_size_given: false,
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
        named(
            "cluster",
            "HOST:PORT",
            "Search on the workers of this cluster, see 'quarrier cluster'; all of them must find the \
             sources, and the folder of --to, by the same names",
        )
        .value_parser(value_parser!(String))
        .conflicts_with_all(NOT_WITH_UNITS)
        .conflicts_with_all(["shard", "plan"]),
        rate_arg(),
    ]
    .into_iter()
    .chain(node_args())
    .collect()
}

/// Refuses to send headers, which may hold secrets, to the workers of a cluster.
fn refuse_headers(cache: &CacheArgs) -> Result<(), String> {
    match cache.headers.is_empty() {
        true => Ok(()),
        false => Err("--header is not sent to the workers of a cluster; give each worker the \
                      credentials of its own environment"
            .to_string()),
    }
}

impl Carve {
    /// Whether a cluster carves.
    pub(crate) fn is_on_cluster(&self) -> bool {
        self.units.as_ref().is_some_and(|units| units.cluster.is_some())
    }

    /// Adds the options of units.
    ///
    /// # Errors
    /// For headers, which may hold secrets, if a cluster carves.
    pub(super) fn in_units(self, matches: &ArgMatches) -> Result<Self, String> {
        let carve = Carve { units: parse_carve(matches), ..self };
        if carve.is_on_cluster() {
            refuse_headers(&carve.cache)?;
        }
        Ok(carve)
    }
}

impl Search {
    /// Whether a cluster runs the search.
    pub(crate) fn is_on_cluster(&self) -> bool {
        self.units.as_ref().is_some_and(|units| units.cluster.is_some())
    }

    /// Adds the options of units.
    ///
    /// # Errors
    /// Those of [`parse`], and for headers, which may hold secrets, if a cluster runs the search.
    pub(super) fn in_units(self, matches: &ArgMatches) -> Result<Self, String> {
        let search = Search { units: parse(matches)?, ..self };
        if search.is_on_cluster() {
            refuse_headers(&search.cache)?;
        }
        Ok(search)
    }
}

/// The cluster that the options or the environment name. With any of `others`, the one of the environment is
/// not used, and a line says so: this process `does` the work.
fn cluster_of(
    matches: &ArgMatches,
    does: &str,
    others: impl IntoIterator<Item = &'static str>,
) -> Option<String> {
    if let Some(cluster) = matches.get_one::<String>("cluster") {
        return Some(cluster.clone());
    }
    let cluster = cluster_of_environment()?;
    let is_given = |id: &&str| is_given(matches, id);
    let mut sources = matches.get_many::<OsString>("source").unwrap_or_default();
    let reason = match others.into_iter().find(is_given) {
        Some(id) => format!("--{id}"),
        None if sources.any(|source| source == "-") => "standard input".to_string(),
        None => return Some(cluster),
    };
    say_without_cluster(does, &reason);
    None
}

/// The cluster that the environment names.
pub(super) fn cluster_of_environment() -> Option<String> {
    std::env::var(CLUSTER_VARIABLE).ok().filter(|cluster| !cluster.is_empty())
}

/// Whether the command line has an option.
pub(super) fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine)
}

/// Says that this process `does` the work, although the environment names a cluster.
pub(super) fn say_without_cluster(does: &str, reason: &str) {
    complain(&format!(
        "this process {does}, without the cluster of {CLUSTER_VARIABLE}, because of {reason}"
    ));
}

/// Parses the options; `None` if the search does not run unit by unit.
///
/// # Errors
/// If a unit size is given without an option that uses it.
fn parse(matches: &ArgMatches) -> Result<Option<Units>, String> {
    let (to, shard) = (matches.get_one("to").cloned(), matches.get_one("shard").copied());
    let plans = matches.get_flag("plan");
    let others = NOT_WITH_UNITS.into_iter().chain(NOT_SEARCHED_ON_CLUSTERS);
    let cluster = cluster_of(matches, "searches", others);
    let is_unit_size_given =
        matches.value_source("unit-size") == Some(clap::parser::ValueSource::CommandLine);
    if to.is_none() && shard.is_none() && !plans && cluster.is_none() {
        return match is_unit_size_given {
            true => Err("--unit-size needs --to, --shard, --plan or --cluster".to_string()),
            false => Ok(None),
        };
    }
    Ok(Some(Units {
        to,
        unit_bytes: matches.get_one("unit-size").copied().unwrap_or(UNIT_BYTES),
        shard,
        plans,
        bytes_per_second: matches.get_one("rate").copied(),
        nodes: nodes(matches),
        cluster,
        is_unit_size_given,
    }))
}
