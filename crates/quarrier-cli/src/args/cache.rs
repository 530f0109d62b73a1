//! `quarrier cache`, and the cache options of other commands.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use quarrier::{Header, OpenOptions};

use super::{color_arg, flag, format_arg, format_of, json_arg, quiet_arg};
use crate::output::Format;
use crate::quantity::size_in;

/// The folder of the cache, and how to use it.
#[derive(Debug, Clone)]
pub(crate) struct CacheArgs {
    pub(crate) folder: Option<PathBuf>,
    pub(crate) bytes_max: u64,
    pub(crate) offline: bool,
    pub(crate) headers: Vec<Header>,
}

impl CacheArgs {
    pub(super) fn of(matches: &ArgMatches) -> Result<Self, String> {
        Ok(CacheArgs {
            folder: matches.get_one("cache").cloned(),
            bytes_max: matches.get_one("cache-size").copied().unwrap_or(10 << 30),
            offline: matches.get_flag("offline"),
            headers: headers_of(matches)?,
        })
    }

    /// The options for opening sources.
    pub(crate) fn options(&self) -> OpenOptions {
        OpenOptions::default()
            .cache(self.folder.clone())
            .cache_bytes_max(Some(self.bytes_max))
            .offline(self.offline)
            .headers(self.headers.clone())
    }
}

/// The options for opening sources of commands that have [`header_arg`], but not the others.
pub(super) fn headers_alone(matches: &ArgMatches) -> Result<OpenOptions, String> {
    Ok(OpenOptions::default().headers(headers_of(matches)?))
}

/// The headers, parsed here because an error of clap shows the value.
fn headers_of(matches: &ArgMatches) -> Result<Vec<Header>, String> {
    let texts = matches.get_many::<String>("header").unwrap_or_default();
    let headers = texts.map(|text| Header::parse(text));
    headers.collect::<Result<_, _>>().map_err(|error| format!("--header: {error}"))
}

pub(super) fn header_arg() -> Arg {
    Arg::new("header")
        .long("header")
        .value_name("HEADER")
        .action(ArgAction::Append)
        .help(
            "Send this header, 'Name: value', to http:// and https:// URLs, but not after a redirect to \
             another server; repeatable",
        )
        .help_heading("Remote")
}

fn folder_arg(help: &'static str) -> Arg {
    Arg::new("cache")
        .long("cache")
        .value_name("FOLDER")
        .value_parser(value_parser!(PathBuf))
        .help(help)
        .help_heading("Remote")
}

fn size_arg() -> Arg {
    Arg::new("cache-size")
        .long("cache-size")
        .value_name("SIZE")
        .default_value("10G")
        .value_parser(size_in(1..=u64::MAX))
        .help("Maximum size of that folder; the least recently used objects are removed")
        .help_heading("Remote")
}

/// The options of commands that read sources.
pub(super) fn cache_args() -> [Arg; 4] {
    [
        folder_arg(
            "Cache fetched data in this folder, for later runs and other processes; default: \
             that of QUARRIER_CACHE",
        ),
        size_arg(),
        flag(
            "offline",
            "Fetch nothing: read remote sources from the cache ('quarrier cache fill')",
        )
        .help_heading("Remote"),
        header_arg(),
    ]
}

/// `quarrier cache`.
#[derive(Debug)]
pub(crate) struct Cache {
    pub(crate) verb: CacheVerb,
    /// The sources to fill; for other verbs the objects to work on, or all if empty.
    pub(crate) names: Vec<OsString>,
    pub(crate) cache: CacheArgs,
    pub(crate) format: Format,
    pub(crate) quiet: bool,
}

/// The operations on a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheVerb {
    List,
    Verify,
    Fill,
    Clear,
}

const EXAMPLES: &str = "\
Examples:
  quarrier cache fill https://example.org/image.E01
  quarrier search needle --offline https://example.org/image.E01
  quarrier cache list
  quarrier cache verify
  quarrier cache clear https://example.org/image.E01

The cache stores bytes of remote sources with checksums, separately for each
version of an object. Its folder is that of --cache, else of the variable
QUARRIER_CACHE, else $XDG_CACHE_HOME/quarrier/remote or
~/.cache/quarrier/remote.
Names are URLs without query and password; no secret is stored.

'fill' fetches a source completely, with all files of an image. Then --offline,
or QUARRIER_OFFLINE=1 for any command, reads it without a network, in the
version used last; missing parts cannot be read, and are listed.

Exit status: 0 done, 1 nothing is cached under these names, 2 wrong use or
failure, 3 cached bytes are damaged, or a part could not be cached or removed,
130 interrupted.";

pub(super) fn command() -> Command {
    let verb = |name: &'static str, about: &'static str| {
        Command::new(name).about(about).arg(folder_arg("The folder of the cache")).args([
            format_arg(),
            json_arg(),
            color_arg(),
            quiet_arg(),
        ])
    };
    let names = |what: &'static str| {
        Arg::new("name")
            .value_name("URL")
            .value_parser(value_parser!(OsString))
            .num_args(0..)
            .action(ArgAction::Append)
            .help(what)
    };
    Command::new("cache")
        .about("Lists, verifies, fills and clears the cache of remote sources")
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(verb("list", "Lists the cached objects").arg(names("These only")))
        .subcommand(
            verb("verify", "Compares cached bytes with their checksums").arg(names("These only")),
        )
        .subcommand(
            verb("fill", "Fetches sources completely")
                .args([size_arg(), header_arg()])
                .arg(names("The sources").required(true).num_args(1..)),
        )
        .subcommand(
            verb("clear", "Removes cached objects that no process uses").arg(names("These only")),
        )
}

pub(super) fn parse(matches: &ArgMatches) -> Result<Cache, String> {
    let (verb, matches) = match matches.subcommand() {
        Some(("verify", matches)) => (CacheVerb::Verify, matches),
        Some(("fill", matches)) => (CacheVerb::Fill, matches),
        Some(("clear", matches)) => (CacheVerb::Clear, matches),
        Some((_, matches)) => (CacheVerb::List, matches),
        None => return Err("no command was given; try 'quarrier cache --help'".to_string()),
    };
    let bytes_max = match matches.try_get_one("cache-size") {
        Ok(Some(&bytes)) => bytes,
        // Never evict to make room.
        _ => u64::MAX,
    };
    let headers = match verb {
        CacheVerb::Fill => headers_of(matches)?,
        _ => Vec::new(),
    };
    let folder = matches.get_one("cache").cloned();
    Ok(Cache {
        verb,
        names: matches.get_many("name").unwrap_or_default().cloned().collect(),
        cache: CacheArgs { folder, bytes_max, offline: false, headers },
        format: format_of(matches)?,
        quiet: matches.get_flag("quiet"),
    })
}
