//! `quarrier serve`: parses the options here; `quarrier-sql` runs it.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use super::load::segment_arg;
use super::query::{seconds, table};
use super::{auto_count, quiet_arg, workers_arg, wrong};
use crate::log::{self, log_arg};
use crate::quantity::size_in;

/// The options of `quarrier serve`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Serve {
    /// The data folder.
    pub data: Option<PathBuf>,
    /// Size of a log segment in bytes, if given.
    pub segment_bytes: Option<u64>,
    /// The folder or bucket to which the log is copied.
    pub copy_to: Option<OsString>,
    /// Names for files: the name, and the file or glob.
    pub tables: Vec<(String, String)>,
    /// Address of the PostgreSQL listener.
    pub listen: SocketAddr,
    /// Address of the HTTP listener; `None` for none.
    pub http: Option<SocketAddr>,
    /// The file of users.
    pub users: Option<PathBuf>,
    /// The folder of certificate and key.
    pub tls: Option<PathBuf>,
    /// The folder from which statements may read files.
    pub allowed: Option<PathBuf>,
    /// The folder of pages for browsers.
    pub pages: Option<PathBuf>,
    /// Memory that statements may take before they spill to disk, in bytes.
    pub memory_bytes_max: Option<u64>,
    /// Maximum time of a statement.
    pub timeout: Option<Duration>,
    /// Maximum number of concurrent clients.
    pub connections_max: usize,
    /// The user to print a line for.
    pub make_user: Option<String>,
    /// Threads; 0: one a CPU.
    pub workers: usize,
    /// Whether to print only the addresses.
    pub quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  quarrier serve --table orders=orders.ndjson
  psql -h 127.0.0.1 -p 5433 -c \"SELECT count(*) FROM orders\"
  curl 'http://127.0.0.1:5434/query?sql=SELECT+count(*)+FROM+orders'
  quarrier serve --make-user ann >> users
  quarrier serve --table t='logs/*.gz' --listen 0.0.0.0:5433 --users users
  quarrier serve --data d --copy-to s3://bucket/folder

Clients of PostgreSQL (tried: psql, psycopg, asyncpg, JDBC, ADBC) can run any
query. HTTP offers /query?sql=… (Arrow, JSON, CSV), /metrics for Prometheus,
/health, and a page at / that shows running statements. The server prints
'ready' and its addresses when it accepts clients.

Without --users, anybody on this machine may connect, and nobody from another
machine. Statements can use only the tables named here, no file, URL, search(),
carve() or gauge(); with --allow-files they can read, search and carve files
below a folder.

--copy-to copies the log of the data folder to a folder or a bucket while it
grows, every second; commits do not wait for it, and failures are retried.
/metrics and the table quarrier.copies show how far the copy is behind.
'quarrier reindex --data NEW --restore s3://bucket/folder' makes a data folder
of it.

SIGTERM or Ctrl-C ends it: it accepts no more clients, and running statements
have ten seconds to finish, and then the copy, too.

A second program, quarrier-sql, runs the statements. Archives, packages, 'make
install' and pip install 'quarrier[sql]' include it.

Exit status: 0 stopped by a signal, 2 wrong use or failure.";

/// The options, under the name of the command.
pub(super) fn command() -> Command {
    let file = |id: &'static str, name: &'static str, help: &'static str| {
        Arg::new(id).long(id).value_name(name).value_parser(value_parser!(PathBuf)).help(help)
    };
    Command::new("serve")
        .about("Answers SQL for clients of PostgreSQL and HTTP")
        .after_help(EXAMPLES)
        .arg(file("data", "FOLDER", "Serve the tables of a data folder"))
        .arg(
            Arg::new("copy-to")
                .long("copy-to")
                .value_name("PLACE")
                .value_parser(value_parser!(OsString))
                .requires("data")
                .help("Copy the log to a folder or bucket (s3://BUCKET/FOLDER) while it grows"),
        )
        .arg(
            Arg::new("table")
                .long("table")
                .value_name("NAME=FILE")
                .action(ArgAction::Append)
                .value_parser(table)
                .help("Serve a file or glob under a name; repeatable"),
        )
        .arg(
            Arg::new("listen")
                .long("listen")
                .value_name("ADDRESS")
                .default_value("127.0.0.1:5433")
                .value_parser(address)
                .help("Address for clients of PostgreSQL"),
        )
        .arg(
            Arg::new("http")
                .long("http")
                .value_name("ADDRESS|off")
                .default_value("127.0.0.1:5434")
                .value_parser(address_or_off)
                .help("Address for HTTP"),
        )
        .arg(file("users", "FILE", "Accept only the users of FILE, with their passwords"))
        .arg(file(
            "tls",
            "FOLDER",
            "Encrypt with tls.crt and tls.key; with ca.crt, clients need a certificate",
        ))
        .arg(file("allow-files", "FOLDER", "Allow statements to read files below FOLDER"))
        .arg(file(
            "pages",
            "FOLDER",
            "Show FOLDER's pages, such as dashboards, at /pages/NAME.html",
        ))
        .arg(
            Arg::new("max-connections")
                .long("max-connections")
                .value_name("N")
                .default_value("1000")
                .value_parser(value_parser!(u32).range(1..=1_000_000))
                .help("Maximum number of clients"),
        )
        .arg(
            Arg::new("timeout")
                .long("timeout")
                .value_name("SECONDS")
                .value_parser(seconds)
                .help("Maximum time for a statement"),
        )
        .arg(
            Arg::new("make-user")
                .long("make-user")
                .value_name("NAME")
                .help("Print a line for the users file; reads the password from standard input"),
        )
        .arg(segment_arg())
        .arg(workers_arg("Threads that evaluate"))
        .arg(
            Arg::new("max-memory")
                .long("max-memory")
                .value_name("SIZE")
                .value_parser(size_in(1 << 20..=u64::MAX))
                .help("Memory for tables, joins, groups and sorts; beyond it they spill to disk")
                .help_heading("Machine"),
        )
        .args([quiet_arg(), log_arg()])
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let wrong = || format!("'{text}' is not an address such as 127.0.0.1:5433");
    let text = text.replacen("localhost:", "127.0.0.1:", 1);
    text.parse().map_err(|_| wrong())
}

fn address_or_off(text: &str) -> Result<Option<SocketAddr>, String> {
    if text == "off" { Ok(None) } else { address(text).map(Some) }
}

fn parse(matches: &ArgMatches) -> Serve {
    let path = |id: &str| matches.get_one::<PathBuf>(id).cloned();
    let usual = SocketAddr::from(([127, 0, 0, 1], 5433));
    Serve {
        data: path("data"),
        segment_bytes: matches.get_one("segment").copied(),
        copy_to: matches.get_one("copy-to").cloned(),
        tables: matches.get_many("table").unwrap_or_default().cloned().collect(),
        listen: matches.get_one("listen").copied().unwrap_or(usual),
        http: matches.get_one::<Option<SocketAddr>>("http").copied().flatten(),
        users: path("users"),
        tls: path("tls"),
        allowed: path("allow-files"),
        pages: path("pages"),
        memory_bytes_max: matches.get_one("max-memory").copied(),
        timeout: matches.get_one("timeout").copied(),
        connections_max: matches.get_one::<u32>("max-connections").map_or(1_000, |n| *n as usize),
        make_user: matches.get_one("make-user").cloned(),
        workers: auto_count(matches, "workers"),
        quiet: matches.get_flag("quiet"),
    }
}

/// Reads the arguments of `quarrier serve`, without its name.
///
/// # Errors
/// The message to print, and whether it is help and not an error.
pub fn serve_arguments(arguments: Vec<OsString>) -> Result<Serve, (String, bool)> {
    let command = command().name("quarrier serve");
    let name = OsString::from("quarrier serve");
    match command.try_get_matches_from(std::iter::once(name).chain(arguments)) {
        Ok(matches) => {
            log::begin(&matches);
            Ok(parse(&matches))
        }
        Err(error) => {
            let is_help = error.kind() == clap::error::ErrorKind::DisplayHelp;
            Err(match is_help {
                true => (error.to_string(), true),
                false => (wrong::one_line(&error, Some("serve".as_ref())), false),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::serve_arguments;

    fn read(arguments: &[&str]) -> Result<super::Serve, (String, bool)> {
        serve_arguments(arguments.iter().map(Into::into).collect())
    }

    #[test]
    fn addresses_have_their_usual_ports() {
        let serve = read(&[]).unwrap();
        assert_eq!(serve.listen.to_string(), "127.0.0.1:5433");
        assert_eq!(serve.http.map(|it| it.to_string()).as_deref(), Some("127.0.0.1:5434"));
        assert!(read(&["--http", "off"]).unwrap().http.is_none());
        let local = read(&["--listen", "localhost:1"]).unwrap();
        assert_eq!(local.listen.to_string(), "127.0.0.1:1");
        for wrong in ["5433", "localhost", "a:b"] {
            let (said, is_help) = read(&["--listen", wrong]).unwrap_err();
            assert!(
                !is_help && said.contains("is not an address") && !said.contains('\n'),
                "{said}"
            );
        }
    }
}
