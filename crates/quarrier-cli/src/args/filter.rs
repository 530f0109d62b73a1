//! `quarrier filter`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use quarrier_messages::Format;

use super::cache::{CacheArgs, cache_args};
use super::load::data_arg;
use super::{
    auto_count, color_arg, files_from_arg, flag, format_arg, format_of, json_arg, quiet_arg,
    stats_arg, workers_arg,
};
use crate::log::log_arg;
use crate::output;

/// `quarrier filter`.
#[derive(Debug)]
pub(crate) struct Filter {
    pub(crate) asked: ConditionArg,
    pub(crate) files: Vec<OsString>,
    /// Files that list further sources.
    pub(crate) files_from: Vec<PathBuf>,
    /// The data folder; the files then name its tables.
    pub(crate) data: Option<PathBuf>,
    pub(crate) count: bool,
    /// Whether to wait for more input at the end.
    pub(crate) follow: bool,
    pub(crate) limit: Option<u64>,
    pub(crate) columns: Option<Vec<String>>,
    pub(crate) rejects: Option<PathBuf>,
    /// The messages' format; `None` to detect it for each source.
    pub(crate) input_format: Option<Format>,
    pub(crate) format: output::Format,
    pub(crate) workers: usize,
    pub(crate) cache: CacheArgs,
    pub(crate) quiet: bool,
    pub(crate) stats: Option<PathBuf>,
}

/// The conditions of the command line.
#[derive(Debug, Clone)]
pub(crate) enum ConditionArg {
    /// One condition, as an argument.
    One(String),
    /// A file of conditions, one a line.
    Many(PathBuf),
}

const EXAMPLES: &str = "\
Examples:
  quarrier filter \"status = 'REJECTED' AND price > 100\" orders.ndjson
  quarrier filter \"qty BETWEEN 100 AND 500\" -c orders.ndjson.gz
  quarrier filter \"note LIKE '%late%'\" --columns id,note orders.ndjson
  quarrier filter \"order.leg[0].qty > 5\" --format json --limit 10 fills.ndjson
  ssh host cat app.ndjson | quarrier filter \"level = 'error'\" -
  quarrier filter --many conditions.sql orders.ndjson
  quarrier filter --many alerts.sql --follow app.ndjson
  quarrier filter \"status = 'REJECTED'\" --data d orders
  quarrier filter \"level = 'error'\" -c logs/

A CONDITION is a search condition of SQL-92, as after WHERE. Name nested fields
by their path (order.leg[0].qty), and put names that are not SQL identifiers in
double quotes (\"a-b\"). _line, _offset and _message are the line, the byte offset
and the bytes of a message. Messages are JSON lines, FIX, NVFIX, CSV or XML.
Matching messages are printed verbatim, one a line; with
--columns or another --format, as rows. A FILE is a path, a URL, or '-' for
standard input; gzip and Zstandard are decompressed. Matches in an open stream
(tail -f log.ndjson | quarrier filter … -) are printed within a fraction of a
second; single-root XML is printed after 1 MiB or at the end of the stream.
--follow waits for more at the end of a file, and starts over if the file is
replaced, like 'tail -F'; with --many, it prints a row for each message and
condition that is true for it: source, offset, condition, message.
Arrow and Parquet have no messages to print: use 'quarrier query'. For a segment
of the durable log (.qlog) or a data folder, the messages in it are filtered;
with --data, those of the named tables.

The type of a column is inferred from all its values, as in 'quarrier query':
numbers and strings together are strings. The first 1 MiB of messages (of a
stream: those before its first pause) determine it. If a later value has another
type, the file is read again from its start; a stream, too, up to 32 MiB, beyond
which this is an error. Columns that appear later are NULL in earlier rows.

A message that does not parse is rejected, counted on standard error, and listed
by --rejects. A folder means all regular files below it; a quoted glob
('logs/*.gz') all files that match.

Exit status: 0 found, 1 nothing found, 2 wrong use or failure, 3 part of the
input could not be read (each range is listed, and each place of a log that is
damaged), 130 interrupted.";

pub(super) fn command() -> Command {
    Command::new("filter")
        .about("Prints the messages for which a condition is true: grep for messages")
        .after_help(EXAMPLES)
        .arg(flag("count", "Print the number of matching messages, over all files").short('c'))
        .arg(
            Arg::new("limit")
                .short('m')
                .long("limit")
                .value_name("N")
                .value_parser(value_parser!(u64).range(1..))
                .help("Stop after N messages"),
        )
        .arg(
            Arg::new("columns")
                .long("columns")
                .value_name("A,B,…")
                .help("Print only these columns; as text, separated by tabs"),
        )
        .arg(many_arg())
        .arg(flag(
            "follow",
            "Wait for more at the end of a file, until interrupted; with --many, print each match \
             of each condition",
        ))
        .arg(data_arg("Filter tables of this data folder: each FILE names a table"))
        .arg(input_format_arg())
        .arg(rejects_arg())
        .args([workers_arg("Threads that read and evaluate")])
        .args(cache_args())
        .args([format_arg(), json_arg(), color_arg(), quiet_arg(), stats_arg()])
        .args([log_arg(), files_from_arg()])
        .arg(files_arg())
}

pub(super) fn many_arg() -> Arg {
    Arg::new("many")
        .long("many")
        .value_name("FILE.sql")
        .value_parser(value_parser!(PathBuf))
        .help("Evaluate all conditions of a file, one a line, in one pass; print the count of each")
}

pub(super) fn input_format_arg() -> Arg {
    Arg::new("input-format")
        .long("input-format")
        .value_name("NAME|auto")
        .default_value("auto")
        .value_parser(|name: &str| Format::named(name).map_err(|error| error.to_string()))
        .help("Format of the messages: auto (detected), json, fix, nvfix, csv, xml")
}

pub(super) fn rejects_arg() -> Arg {
    Arg::new("rejects")
        .long("rejects")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .help("List rejected messages as JSON lines: line, offset, reason and bytes")
        .help_heading("Output")
}

pub(super) fn files_arg() -> Arg {
    Arg::new("file")
        .value_name("[CONDITION] FILE")
        .value_parser(value_parser!(OsString))
        .num_args(0..)
        .action(ArgAction::Append)
        .help("A condition (unless --many is given), then the files")
}

pub(super) fn parse(matches: &ArgMatches) -> Result<Filter, String> {
    let (asked, files) = conditions_and_files(matches, "filter")?;
    let filter = Filter {
        asked,
        files,
        files_from: matches.get_many("files-from").unwrap_or_default().cloned().collect(),
        data: matches.get_one("data").cloned(),
        count: matches.get_flag("count"),
        follow: matches.get_flag("follow"),
        limit: matches.get_one("limit").copied(),
        columns: matches.get_one::<String>("columns").map(|text| columns(text)).transpose()?,
        rejects: matches.get_one("rejects").cloned(),
        input_format: matches.get_one::<Option<Format>>("input-format").cloned().flatten(),
        format: format_of(matches)?,
        workers: auto_count(matches, "workers"),
        cache: CacheArgs::of(matches)?,
        quiet: matches.get_flag("quiet"),
        stats: matches.get_one("stats").cloned(),
    };
    let shows_no_columns = filter.count || matches!(filter.asked, ConditionArg::Many(_));
    if shows_no_columns && filter.columns.is_some() {
        return Err("--columns prints messages, but -c and --many print only numbers; leave one \
                    of them out"
            .to_string());
    }
    if matches!(filter.asked, ConditionArg::Many(_)) && filter.limit.is_some() {
        return Err(
            "--limit limits printed messages, but --many only counts; leave one of them out"
                .to_string(),
        );
    }
    let is_one_file = filter.files.len() == 1 && filter.files_from.is_empty();
    if filter.follow && (!is_one_file || filter.data.is_some()) {
        return Err(
            "--follow takes one file or '-'; follow tables of a data folder with SUBSCRIBE of \
                    'quarrier serve'"
                .to_string(),
        );
    }
    Ok(filter)
}

impl Filter {
    /// Whether to print only the number of messages.
    pub(crate) fn only_counts(&self) -> bool {
        self.count || matches!(self.asked, ConditionArg::Many(_)) && !self.follow
    }
}

/// The condition or the file of conditions, and the files of messages.
pub(super) fn conditions_and_files(
    matches: &ArgMatches,
    verb: &str,
) -> Result<(ConditionArg, Vec<OsString>), String> {
    let mut files: Vec<OsString> =
        matches.get_many::<OsString>("file").unwrap_or_default().cloned().collect();
    let asked = match matches.get_one::<PathBuf>("many") {
        Some(path) => ConditionArg::Many(path.clone()),
        None if files.is_empty() => {
            return Err(format!("no condition was given; try 'quarrier {verb} CONDITION FILE'"));
        }
        None => {
            let text = files.remove(0).into_string();
            ConditionArg::One(text.map_err(|_| "the condition is not UTF-8")?)
        }
    };
    let has_list = matches.try_contains_id("files-from").unwrap_or(false);
    if files.is_empty() && !has_list {
        return Err(match &asked {
            ConditionArg::One(text) if std::path::Path::new(text).is_file() => format!(
                "{text}: is a file, and no condition was given; try 'quarrier {verb} CONDITION {text}'"
            ),
            _ => "no file was given; name files, or '-' for standard input".to_string(),
        });
    }
    Ok((asked, files))
}

/// Splits names at commas. A name that contains a comma is in double quotes.
fn columns(text: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let mut rest = text;
    loop {
        let name;
        if let Some(quoted) = rest.strip_prefix('"').filter(|_| !is_path_of_quoted_keys(rest)) {
            let end = quoted.find('"').ok_or_else(|| format!("--columns: no '\"' ends {rest}"))?;
            name = &quoted[..end];
            rest = &quoted[end + 1..];
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            name = rest[..end].trim();
            rest = &rest[end..];
        }
        if name.is_empty() {
            return Err(format!("--columns: a name is missing in '{text}'"));
        }
        names.push(name.to_string());
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None if rest.is_empty() => return Ok(names),
            None => return Err(format!("--columns: no ',' before '{rest}'")),
        }
    }
}

/// Whether the string is a path with quoted keys (`"a.b".c`), which is a complete name.
fn is_path_of_quoted_keys(text: &str) -> bool {
    text[1..].find('"').is_some_and(|end| text[end + 2..].starts_with(['.', '[']))
}

#[cfg(test)]
mod tests {
    use super::columns;

    #[test]
    fn names_of_columns_are_cut_at_commas_outside_of_quotes() {
        assert_eq!(columns("a, b.c[0]").unwrap(), ["a", "b.c[0]"]);
        assert_eq!(columns("\"a,b\",c").unwrap(), ["a,b", "c"]);
        assert_eq!(columns("\"a.b\".c,d").unwrap(), ["\"a.b\".c", "d"]);
        for wrong in ["", "a,", ",a", "\"a", "\"a\"b"] {
            assert!(columns(wrong).is_err(), "{wrong}");
        }
    }
}
