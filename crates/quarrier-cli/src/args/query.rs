//! `quarrier query` and `quarrier-sql`: both take their options from here.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use quarrier::OpenOptions;

use super::cache::{header_arg, headers_alone};
use super::load::data_arg;
use super::units::{cluster_of_environment, is_given, say_without_cluster};
use super::{auto_count, color_arg, flag, quiet_arg, stats_arg, version, workers_arg, wrong};
use crate::log::{self, log_arg};
use crate::quantity::size_in;

/// The arguments of `quarrier-sql`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Query {
    /// The statements; `None` to read them from a prompt, a file or standard input.
    pub sql: Option<String>,
    /// The cluster that reads files; `None` if this process reads them.
    pub cluster: Option<QueryCluster>,
    /// Names for files: the name, and the file or glob.
    pub tables: Vec<(String, String)>,
    /// The data folder, whose tables statements can name.
    pub data: Option<PathBuf>,
    /// A file of statements to run concurrently.
    pub concurrent: Option<PathBuf>,
    /// How rows are written.
    pub format: QueryFormat,
    /// The output file; standard output by default.
    pub output: Option<PathBuf>,
    /// Where to list rejected messages.
    pub rejects: Option<PathBuf>,
    /// Options for opening sources.
    pub open: OpenOptions,
    /// Threads; 0: one a CPU.
    pub workers: usize,
    /// Memory that queries may take before they spill to disk, in bytes.
    pub memory_bytes_max: Option<u64>,
    /// Maximum time of a statement.
    pub timeout: Option<Duration>,
    /// Where to write the account of the run; `-` is standard error.
    pub stats: Option<PathBuf>,
    /// Whether to print the time of each statement.
    pub timing: bool,
    /// Whether to print only the answers.
    pub quiet: bool,
}

/// The cluster of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryCluster {
    /// The address of the scheduler.
    pub at: String,
    /// Whether the command line names it: then a statement that it cannot read for is an error.
    pub is_required: bool,
}

/// Options that a query on a cluster does not have.
const NOT_ON_CLUSTERS: [&str; 3] = ["concurrent", "data", "header"];

/// How `quarrier-sql` writes rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryFormat {
    /// A table for people.
    Text,
    /// One object a line.
    Json,
    /// RFC 4180 with a header.
    Csv,
    /// Arrow IPC stream.
    Arrow,
    /// Parquet.
    Parquet,
}

impl std::str::FromStr for QueryFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(QueryFormat::Text),
            "json" => Ok(QueryFormat::Json),
            "csv" => Ok(QueryFormat::Csv),
            "arrow" => Ok(QueryFormat::Arrow),
            "parquet" => Ok(QueryFormat::Parquet),
            _ => Err(format!("no format '{text}'; there are: text, json, csv, arrow, parquet")),
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  quarrier query \"SELECT symbol, sum(qty) FROM 'orders.ndjson' GROUP BY symbol\"
  quarrier query \"SELECT count(*) FROM m WHERE qty > 9\" --table m=orders.fix
  quarrier query \"SELECT filename, count(*) FROM 'logs/*.gz' GROUP BY filename\"
  quarrier query \"COPY (SELECT * FROM 'orders.ndjson') TO 'orders.parquet'\"
  quarrier query --format csv \"SELECT id FROM 'a.csv' JOIN 'b.fix' USING (id)\"
  quarrier query --table m=orders.ndjson --concurrent dashboard.sql
  quarrier query --table m=orders.ndjson
  quarrier query --data d \"SELECT symbol, sum(qty) FROM orders GROUP BY symbol\"

SQL with the semantics of SQL-92, with joins, grouping, subqueries, windows and
set operations. After FROM, write a file name or glob in single quotes, a name
given by --table, or a table of the --data folder. A FILE holds messages (JSON
lines, FIX, NVFIX, CSV, XML), Arrow or Parquet, detected by content and
extension; gzip and Zstandard are decompressed; '-' is standard input. Several
files are one table with a column filename. The rows of a segment of the durable
log (.qlog) are the messages in it. Name nested fields by their path
(order.leg[0].qty). _line, _offset and _message are the line, the byte offset
and the bytes of a message; '*' leaves them out.

Without SQL, statements are read from a prompt or from standard input.

With --concurrent, all statements of the file (each ends with ';') run at the
same time, those on one table in one shared scan; it prints time and rows of
each.

A second program, quarrier-sql, runs the statements. Archives, packages, 'make
install' and pip install 'quarrier[sql]' include it.

Exit status: 0 done, 2 wrong use or failure, 3 part of the input could not be
read (each place is listed), 130 interrupted.";

/// The options, under the name of the command.
pub(super) fn command() -> Command {
    Command::new("query")
        .about("Answers SQL over messages, files and findings")
        .after_help(EXAMPLES)
        .arg(
            Arg::new("sql")
                .value_name("SQL")
                .value_parser(value_parser!(String))
                .help("One statement, or several with ';' between them"),
        )
        .arg(
            Arg::new("table")
                .long("table")
                .value_name("NAME=FILE")
                .action(ArgAction::Append)
                .value_parser(table)
                .help("Give a file or glob a name; repeatable"),
        )
        .arg(data_arg("Query the tables of a data folder of 'quarrier load'"))
        .arg(header_arg())
        .arg(
            Arg::new("concurrent")
                .long("concurrent")
                .value_name("FILE.sql")
                .value_parser(value_parser!(PathBuf))
                .conflicts_with("sql")
                .help("Run all statements of a file at the same time; print time and rows of each"),
        )
        .arg(
            Arg::new("timeout")
                .long("timeout")
                .value_name("SECONDS")
                .value_parser(seconds)
                .help("Maximum time for a statement"),
        )
        .arg(
            Arg::new("cluster")
                .long("cluster")
                .value_name("HOST:PORT")
                .value_parser(value_parser!(String))
                .conflicts_with_all(NOT_ON_CLUSTERS)
                .help(
                    "Read, filter and group Parquet files on the workers of this cluster, see \
                     'quarrier cluster'; all of them must find the files by the same names",
                ),
        )
        .args([workers_arg("Threads that read and evaluate")])
        .arg(
            Arg::new("max-memory")
                .long("max-memory")
                .value_name("SIZE")
                .value_parser(size_in(1 << 20..=u64::MAX))
                .help("Memory for tables, joins, groups and sorts; beyond it they spill to disk")
                .help_heading("Machine"),
        )
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .default_value("text")
                .value_parser(|text: &str| text.parse::<QueryFormat>())
                .help("text, json (one object a line), csv, arrow (IPC stream), parquet")
                .help_heading("Output"),
        )
        .arg(path("output", "Write the rows to FILE, which appears when it is complete").short('o'))
        .arg(path("rejects", "List rejected messages: line, offset, reason and bytes"))
        .arg(stats_arg())
        .arg(flag("timing", "Print the time of each statement").help_heading("Output"))
        .args([color_arg(), quiet_arg(), log_arg()])
}

fn path(id: &'static str, help: &'static str) -> Arg {
    Arg::new(id)
        .long(id)
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .help(help)
        .help_heading("Output")
}

pub(super) fn table(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => {
            Ok((name.to_string(), file.to_string()))
        }
        _ => Err(format!("'{text}' is not NAME=FILE, as m=orders.ndjson")),
    }
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is not a number of seconds above 0");
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero()).ok_or_else(wrong)
}

/// Whether a cluster runs the query.
pub(super) fn is_on_cluster(matches: &ArgMatches) -> bool {
    is_given(matches, "cluster")
        || (cluster_of_environment().is_some() && not_on_clusters(matches).is_none())
}

/// An option that a query on a cluster does not have.
fn not_on_clusters(matches: &ArgMatches) -> Option<&'static str> {
    NOT_ON_CLUSTERS.into_iter().find(|id| is_given(matches, id))
}

/// The cluster that the options or the environment name. If it cannot run a query with these options, a line
/// says so.
fn cluster_of(matches: &ArgMatches) -> Option<QueryCluster> {
    if let Some(at) = matches.get_one::<String>("cluster") {
        return Some(QueryCluster { at: at.clone(), is_required: true });
    }
    let at = cluster_of_environment()?;
    match not_on_clusters(matches) {
        None => Some(QueryCluster { at, is_required: false }),
        Some(id) => {
            say_without_cluster("answers", &format!("--{id}"));
            None
        }
    }
}

fn parse(matches: &ArgMatches) -> Result<Query, String> {
    Ok(Query {
        sql: matches.get_one("sql").cloned(),
        cluster: cluster_of(matches),
        tables: matches.get_many("table").unwrap_or_default().cloned().collect(),
        data: matches.get_one("data").cloned(),
        concurrent: matches.get_one("concurrent").cloned(),
        format: *matches.get_one("format").unwrap_or(&QueryFormat::Text),
        output: matches.get_one("output").cloned(),
        rejects: matches.get_one("rejects").cloned(),
        open: headers_alone(matches)?,
        workers: auto_count(matches, "workers"),
        memory_bytes_max: matches.get_one("max-memory").copied(),
        timeout: matches.get_one("timeout").copied(),
        stats: matches.get_one("stats").cloned(),
        timing: matches.get_flag("timing"),
        quiet: matches.get_flag("quiet"),
    })
}

/// The command line of `quarrier-sql`.
pub(crate) fn sql_command() -> Command {
    command()
        .name("quarrier-sql")
        .max_term_width(super::COLUMNS_MAX)
        .version(clap::crate_version!())
        .long_version(version::long_of_sql())
}

/// Reads the arguments of `quarrier-sql`, without its name.
///
/// # Errors
/// The message to print, and whether it is help and not an error.
pub fn query_arguments(arguments: Vec<OsString>) -> Result<Query, (String, bool)> {
    let command = sql_command();
    let name = OsString::from("quarrier-sql");
    match command.try_get_matches_from(std::iter::once(name).chain(arguments)) {
        Ok(matches) => {
            log::begin(&matches);
            parse(&matches).map_err(|message| (message, false))
        }
        Err(error) => {
            use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};
            let is_help = matches!(error.kind(), DisplayHelp | DisplayVersion);
            Err(match is_help {
                true => (error.to_string(), true),
                false => (wrong::one_line(&error, Some("query".as_ref())), false),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::query_arguments;

    fn read(arguments: &[&str]) -> Result<super::Query, (String, bool)> {
        query_arguments(arguments.iter().map(Into::into).collect())
    }

    #[test]
    fn tables_are_names_with_files() {
        let query = read(&["SELECT 1", "--table", "m=a=b.csv"]).unwrap();
        assert_eq!(query.tables, [("m".to_string(), "a=b.csv".to_string())]);
        for wrong in ["m", "=a", "m="] {
            let (said, is_help) = read(&["--table", wrong]).unwrap_err();
            assert!(!is_help && said.contains("NAME=FILE") && !said.contains('\n'), "{said}");
        }
        assert!(read(&["--help"]).unwrap_err().1);
    }

    #[test]
    fn a_header_goes_to_urls_and_a_wrong_one_is_refused_without_its_value() {
        let query = read(&["SELECT 1", "--header", "X-Key: a", "--header=X-Other: b"]).unwrap();
        assert_ne!(query.open, quarrier::OpenOptions::default());
        for wrong in ["secret", "Host: secret", ": secret"] {
            let (said, is_help) = read(&["SELECT 1", "--header", wrong]).unwrap_err();
            assert!(!is_help && said.starts_with("--header: "), "{said}");
            assert!(!said.contains("secret") && !said.contains('\n'), "{said}");
        }
    }
}
