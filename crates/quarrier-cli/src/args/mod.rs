//! The command line. Help, man page and `docs/cli.md` come from here.

mod cache;
mod carve;
mod cluster;
mod completions;
mod explain;
mod files;
mod filter;
mod gauge;
mod load;
mod matches;
mod mount;
mod pages;
mod query;
mod rules;
mod search;
mod serve;
mod units;
mod verify;
mod version;
mod wrong;

pub(crate) use cache::{Cache, CacheVerb};
pub(crate) use carve::Carve;
pub use cluster::{ClusterCommand, cluster_arguments};
pub(crate) use explain::Explain;
pub(crate) use files::Files;
pub(crate) use filter::{ConditionArg, Filter};
pub(crate) use gauge::{Gauge, Measure, Task};
pub(crate) use load::{Load, Reindex};
pub(crate) use mount::Mount;
pub(crate) use query::sql_command;
pub use query::{Query, QueryCluster, QueryFormat, query_arguments};
pub(crate) use search::{PatternArg, Search, Shown, of_words};
pub use serve::{Serve, serve_arguments};
pub(crate) use units::{PlannedNodes, Units};
pub(crate) use verify::Verify;
pub use version::build;
pub(crate) use version::day;

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use quarrier_files::HashKinds;

use crate::commands::print;
use crate::log;
use crate::output::Format;
use crate::output::colour::{self, Colours};
use crate::quantity::parse_auto_count;
use crate::{Outcome, complain};

/// The parsed command line.
pub(crate) enum Parsed {
    Search(Box<Search>),
    Carve(Box<Carve>),
    Files(Box<Files>),
    Mount(Box<Mount>),
    Cache(Box<Cache>),
    Verify(Box<Verify>),
    Filter(Box<Filter>),
    Explain(Box<Explain>),
    Gauge(Box<Gauge>),
    Load(Box<Load>),
    Reindex(Box<Reindex>),
    /// The arguments belong to `quarrier query`, which the other binary runs.
    Query {
        /// Whether the third binary runs it, on a cluster.
        is_on_cluster: bool,
    },
    /// The arguments belong to `quarrier serve`, which the other binary runs.
    Serve,
    /// The arguments belong to `quarrier cluster`, which the third binary runs.
    Cluster,
    /// Parsing finished the command: help, version, or a usage error.
    Done(Outcome),
}

/// Reads the command line of this process.
pub(crate) fn parse() -> Parsed {
    let matches = match command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            use clap::error::ErrorKind::{
                DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion,
            };
            if matches!(error.kind(), DisplayHelp | DisplayVersion) {
                return Parsed::Done(print(&help(&error)));
            }
            if error.kind() == DisplayHelpOnMissingArgumentOrSubcommand {
                // clap prints the whole help to standard error.
                let _ = error.print();
                return Parsed::Done(Outcome::Failed);
            }
            let typed = std::env::args_os().nth(1);
            complain(&wrong::one_line(&error, typed.as_deref()));
            return Parsed::Done(Outcome::Failed);
        }
    };
    if let Some((_, of_command)) = matches.subcommand() {
        if let Ok(Some(name)) = of_command.try_get_one::<String>("color") {
            colour::choose(Colours::named(name));
        }
        log::begin(of_command);
    }
    let parsed = match matches.subcommand() {
        Some(("search", matches)) if matches.get_flag("list-engines") => {
            Ok(Parsed::Done(crate::commands::engines::list()))
        }
        Some(("search", matches)) => search::parse(matches).map(|s| Parsed::Search(Box::new(s))),
        Some(("carve", matches)) => carve::parse(matches).map(|c| Parsed::Carve(Box::new(c))),
        Some(("files", matches)) => files::parse(matches).map(|f| Parsed::Files(Box::new(f))),
        Some(("mount", matches)) => mount::parse(matches).map(|m| Parsed::Mount(Box::new(m))),
        Some(("cache", matches)) => cache::parse(matches).map(|c| Parsed::Cache(Box::new(c))),
        Some(("verify", matches)) => verify::parse(matches).map(|v| Parsed::Verify(Box::new(v))),
        Some(("filter", matches)) => filter::parse(matches).map(|f| Parsed::Filter(Box::new(f))),
        Some(("explain", matches)) => {
            explain::parse(matches).map(|explain| Parsed::Explain(Box::new(explain)))
        }
        Some(("gauge", matches)) => {
            gauge::parse(matches).map(|gauge| Parsed::Gauge(Box::new(gauge)))
        }
        Some(("load", matches)) => load::parse(matches).map(|load| Parsed::Load(Box::new(load))),
        Some(("reindex", matches)) => {
            load::parse_reindex(matches).map(|reindex| Parsed::Reindex(Box::new(reindex)))
        }
        Some(("query", matches)) => {
            Ok(Parsed::Query { is_on_cluster: query::is_on_cluster(matches) })
        }
        Some(("serve", _)) => Ok(Parsed::Serve),
        Some(("cluster", _)) => Ok(Parsed::Cluster),
        Some(("completions", matches)) => completions::parse(matches),
        Some(("help-markdown", _)) => Ok(Parsed::Done(crate::commands::markdown::print(shown()))),
        Some(("help-man", matches)) => pages::parse(matches),
        _ => Err("no command was given; try 'quarrier --help'".to_string()),
    };
    parsed.unwrap_or_else(|message| {
        complain(&message);
        Parsed::Done(Outcome::Failed)
    })
}

/// The help as clap renders it: coloured on a terminal.
fn help(error: &clap::Error) -> String {
    let text = error.render();
    let coloured = colour::is_wanted(std::io::stdout().is_terminal());
    if coloured { text.ansi().to_string() } else { text.to_string() }
}

/// The grammar of [`quarrier_core::size::parse_size`].
const SIZES: &str = "\
Write sizes and offsets as 4096, 0x1000, 4K or 4KiB (K, M, G and T are powers of
1024), or 4KB (powers of 1000), in either case. Signature files, search() in SQL
and Python accept the same. Where a number may be 'auto', 0 means the same.";

/// Maximum width of help, on a wide screen too.
const COLUMNS_MAX: usize = 80;

/// The whole command line.
fn command() -> Command {
    shown()
        .subcommand(Command::new("help-markdown").hide(true).about("Prints this help as Markdown"))
        .subcommand(pages::command())
}

/// The commands in the help.
pub(crate) fn shown() -> Command {
    Command::new("quarrier")
        .bin_name("quarrier")
        .version(clap::crate_version!())
        .long_version(version::long())
        .about("Searches raw data in place, at the speed of the machine, and reports how close it came")
        .after_help(SIZES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .max_term_width(COLUMNS_MAX)
        .subcommand(search::command())
        .subcommand(carve::command())
        .subcommand(files::command())
        .subcommand(verify::command())
        .subcommand(mount::command())
        .subcommand(cache::command())
        .subcommand(filter::command())
        .subcommand(explain::command())
        .subcommand(gauge::command())
        .subcommand(query::command())
        .subcommand(load::command())
        .subcommand(load::reindex_command())
        .subcommand(serve::command())
        .subcommand(cluster::command())
        .subcommand(completions::command())
}

fn flag(id: &'static str, help: &'static str) -> Arg {
    Arg::new(id).long(id).action(ArgAction::SetTrue).help(help)
}

/// A number for which 0, and no option, mean automatic.
fn auto(id: &'static str, name: &'static str, help: &'static str) -> Arg {
    Arg::new(id).long(id).value_name(name).default_value("auto").help(help).help_heading("Machine")
}

fn files_from_arg() -> Arg {
    Arg::new("files-from")
        .long("files-from")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .action(ArgAction::Append)
        .help(
            "Also take the sources named in this file, one a line, or each with a zero byte \
             after it (find -print0); '-' is standard input; repeatable",
        )
}

fn workers_arg(help: &'static str) -> Arg {
    auto("workers", "N|auto", help).short('j').value_parser(parse_auto_count)
}

/// The number of an [`auto`] option; 0 if absent.
fn auto_count(matches: &ArgMatches, id: &str) -> usize {
    matches.get_one(id).copied().unwrap_or(0)
}

fn format_arg() -> Arg {
    Arg::new("format")
        .long("format")
        .value_name("FORMAT")
        .default_value("text")
        .value_parser(|text: &str| text.parse::<Format>())
        .help("text, json (one object a line), csv, arrow (IPC stream)")
        .help_heading("Output")
}

/// `--json`, under the name that other programs use.
fn json_arg() -> Arg {
    flag("json", "The same as --format json").overrides_with("format").help_heading("Output")
}

/// The format that [`format_arg`] and, if present, [`json_arg`] select.
///
/// # Errors
/// If the format is binary and standard output is a terminal.
fn format_of(matches: &ArgMatches) -> Result<Format, String> {
    let format = match matches.try_get_one::<bool>("json") {
        Ok(Some(true)) => Format::Json,
        _ => matches.get_one("format").copied().unwrap_or(Format::Text),
    };
    match format {
        Format::Arrow if std::io::stdout().is_terminal() => {
            Err("refusing to write binary to a terminal; redirect to a file (> FILE) or use a pipe"
                .to_string())
        }
        _ => Ok(format),
    }
}

fn color_arg() -> Arg {
    Arg::new("color")
        .long("color")
        .alias("colour")
        .value_name("WHEN")
        .default_value("auto")
        .hide_default_value(true)
        .value_parser(Colours::NAMES)
        .hide_possible_values(true)
        .help("Colours: auto (on a terminal, unless NO_COLOR is set), always, never")
        .help_heading("Output")
}

fn quiet_arg() -> Arg {
    flag("quiet", "No progress, no account").short('q').help_heading("Output")
}

fn hash_arg(help: &'static str) -> Arg {
    Arg::new("hash")
        .long("hash")
        .value_name("HASH,…")
        .value_delimiter(',')
        .value_parser(["md5", "sha1", "sha256", "blake3"])
        .help(help)
}

/// The hashes that `--hash` names, beside SHA-256.
pub(crate) fn hash_kinds(names: &[String]) -> HashKinds {
    let mut kinds = HashKinds::default();
    names.iter().for_each(|name| {
        kinds.add(name);
    });
    kinds
}

fn stats_arg() -> Arg {
    Arg::new("stats")
        .long("stats")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .help("Write the run's account as a JSON object; '-' is standard error")
        .help_heading("Output")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }
}
