//! `quarrier load` and `quarrier reindex`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use quarrier::OpenOptions;
use quarrier::kept::{Retention, retention_from};
use quarrier_messages::Format;

use super::cache::{header_arg, headers_alone};
use super::filter::{input_format_arg, many_arg, rejects_arg};
use super::{auto_count, flag, format_arg, quiet_arg, stats_arg, workers_arg};
use crate::log::log_arg;
use crate::output;
use crate::quantity::size_in;

/// `quarrier load`.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) data: PathBuf,
    pub(crate) table: String,
    pub(crate) files: Vec<OsString>,
    pub(crate) many: Option<PathBuf>,
    pub(crate) rejects: Option<PathBuf>,
    pub(crate) is_compressed: bool,
    pub(crate) is_again: bool,
    /// The bounds of the table; `None` to leave them as they are.
    pub(crate) retention: Option<Retention>,
    /// Size of a log segment, allocated at once, in bytes; `None` for the default.
    pub(crate) segment_bytes: Option<u64>,
    /// Options for opening sources.
    pub(crate) open: OpenOptions,
    /// The format of the messages; `None` to detect it for each source.
    pub(crate) input_format: Option<Format>,
    pub(crate) format: output::Format,
    pub(crate) workers: usize,
    pub(crate) quiet: bool,
    pub(crate) stats: Option<PathBuf>,
}

/// `quarrier reindex`.
#[derive(Debug)]
pub(crate) struct Reindex {
    pub(crate) data: PathBuf,
    /// The copy of which the folder is made first.
    pub(crate) restore: Option<OsString>,
    pub(crate) format: output::Format,
    pub(crate) workers: usize,
    pub(crate) stats: Option<PathBuf>,
}

/// The allowed sizes of a segment.
const SEGMENT_BYTES: std::ops::RangeInclusive<u64> = 1 << 20..=64 << 30;

const LOAD_EXAMPLES: &str = "\
Examples:
  quarrier load --data d --table orders orders.ndjson
  quarrier load --data d --table fills 'fills-*.fix' --rejects rejects.jsonl
  quarrier load --data d --table orders orders.ndjson --compress zstd
  quarrier load --data d --table orders --many alarms.sql today.ndjson
  quarrier load --data d --table app --retention '7 days, 10 GB' app.ndjson
  ssh host cat app.ndjson | quarrier load --data d --table app -
  quarrier query --data d \"SELECT symbol, sum(qty) FROM orders GROUP BY symbol\"

Appends messages (JSON lines, FIX, NVFIX, CSV or XML, from files, URLs or
standard input; gzip and Zstandard are decompressed) to a table of the data
folder FOLDER; creates both if needed. A durable log keeps their bytes. Counted
messages are on disk: a crash, a kill or a power cut loses none of them.

Run again, it continues where it stopped: only new messages of a file are
loaded, and none twice. --again loads a file once more. A file with different
content under the same path is loaded from its start. Standard input cannot
continue; the messages loaded from it stay.

A message that does not parse is rejected, counted, and listed by --rejects; the
log does not keep it. --many prints how many of the loaded messages match each
condition; they are counted while the messages are parsed.

--retention bounds a table, for this and all later loads: by the age of its
messages since they were loaded, by the bytes that they take in the log, or by
both ('7 days, 10 GB'). The oldest ones go away, and with them their rows, in
steps of a sixteenth of the bound, while a load or a server runs and when a load
ends. Tables without bounds keep all messages. The log shrinks by whole
segments, once no table has messages in the oldest one.

One process at a time may write to a folder; others can read it meanwhile.

Exit status: 0 done, 2 wrong use or failure (counted messages stay; run it again
to continue), 3 the log is damaged (each place is listed with the marks of its
messages; all others are intact), 130 interrupted.";

const REINDEX_EXAMPLES: &str = "\
Examples:
  quarrier reindex --data d
  quarrier reindex --data d --format json
  quarrier reindex --data new --restore s3://bucket/folder

Reads the whole log of the data folder FOLDER, verifies all checksums, and
rebuilds the columns of every table in memory. Prints the number of messages of
each and the rate.

--restore first makes the folder of the copy that 'quarrier serve --copy-to'
wrote, and prints the mark of the last message of the copy. FOLDER must be
empty or new. After a failure, it is empty again.

Exit status: 0 done, 2 wrong use or failure, 3 the log is damaged (each place is
listed with the marks of its messages; all others are intact), 130 interrupted.";

pub(super) fn command() -> Command {
    Command::new("load")
        .about("Appends messages to a table in a durable log")
        .after_help(LOAD_EXAMPLES)
        .arg(data_arg("The data folder").required(true))
        .arg(
            Arg::new("table")
                .long("table")
                .value_name("NAME")
                .required(true)
                .help("The table; created if needed"),
        )
        .arg(many_arg().help("Count the messages that match each condition of a file, one a line"))
        .arg(
            Arg::new("compress")
                .long("compress")
                .value_name("zstd")
                .value_parser(["zstd"])
                .help("Compress the log"),
        )
        .arg(flag("again", "Load files again, even if they were loaded before"))
        .arg(
            Arg::new("retention")
                .long("retention")
                .value_name("BOUNDS")
                .value_parser(|text: &str| retention_from(text).map_err(|error| error.to_string()))
                .help("Remove older messages from now on: '7 days', '10 GB', both, or off"),
        )
        .arg(segment_arg())
        .arg(input_format_arg())
        .arg(rejects_arg())
        .arg(header_arg())
        .args([workers_arg("Threads that parse")])
        .args([format_arg(), quiet_arg(), stats_arg(), log_arg()])
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .value_parser(value_parser!(OsString))
                .num_args(1..)
                .required(true)
                .action(ArgAction::Append)
                .help("Files, URLs, or '-' for standard input"),
        )
}

pub(super) fn reindex_command() -> Command {
    Command::new("reindex")
        .about("Rebuilds the columns of all tables from the log")
        .after_help(REINDEX_EXAMPLES)
        .arg(data_arg("The data folder").required(true))
        .arg(
            Arg::new("restore")
                .long("restore")
                .value_name("PLACE")
                .value_parser(value_parser!(OsString))
                .help("Make the folder of a copy of its log first: a folder or s3://BUCKET/FOLDER"),
        )
        .args([workers_arg("Threads that parse")])
        .args([format_arg(), stats_arg(), log_arg()])
}

/// The size of the log's segments, allocated at once.
pub(super) fn segment_arg() -> Arg {
    Arg::new("segment")
        .long("segment")
        .value_name("SIZE")
        .value_parser(size_in(SEGMENT_BYTES))
        .help("Size of a segment of the log, allocated at once: 1M to 64G [default: 256M]")
        .help_heading("Machine")
}

/// The folder of a durable log and its tables.
pub(super) fn data_arg(help: &'static str) -> Arg {
    Arg::new("data")
        .long("data")
        .value_name("FOLDER")
        .value_parser(value_parser!(PathBuf))
        .help(help)
}

pub(super) fn parse(matches: &ArgMatches) -> Result<Load, String> {
    Ok(Load {
        data: data(matches)?,
        table: matches.get_one("table").cloned().unwrap_or_default(),
        files: matches.get_many("file").unwrap_or_default().cloned().collect(),
        many: matches.get_one("many").cloned(),
        rejects: matches.get_one("rejects").cloned(),
        is_compressed: matches.contains_id("compress"),
        is_again: matches.get_flag("again"),
        retention: matches.get_one("retention").copied(),
        segment_bytes: matches.get_one("segment").copied(),
        open: headers_alone(matches)?,
        input_format: matches.get_one::<Option<Format>>("input-format").cloned().flatten(),
        format: *matches.get_one("format").unwrap_or(&output::Format::Text),
        workers: auto_count(matches, "workers"),
        quiet: matches.get_flag("quiet"),
        stats: matches.get_one("stats").cloned(),
    })
}

pub(super) fn parse_reindex(matches: &ArgMatches) -> Result<Reindex, String> {
    Ok(Reindex {
        data: data(matches)?,
        restore: matches.get_one("restore").cloned(),
        format: *matches.get_one("format").unwrap_or(&output::Format::Text),
        workers: auto_count(matches, "workers"),
        stats: matches.get_one("stats").cloned(),
    })
}

fn data(matches: &ArgMatches) -> Result<PathBuf, String> {
    let folder: Option<&PathBuf> = matches.get_one("data");
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty()).cloned();
    folder.ok_or_else(|| "no data folder; name one with --data".to_string())
}
