//! `quarrier cluster`: parses the options here; `quarrier-cluster` runs it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, value_parser};

use super::{version, wrong};

/// The commands of `quarrier cluster`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClusterCommand {
    /// Hands out units.
    Scheduler {
        /// The address to listen at.
        listen: String,
        /// The folder of certificates and key.
        tls: Option<PathBuf>,
    },
    /// Runs units.
    Worker {
        /// The address of the scheduler.
        scheduler: String,
        /// The address at which others reach this worker.
        listen: String,
        /// Units that run at the same time; 0: one a CPU.
        cores: usize,
        /// Where to keep rows until they are fetched.
        work: Option<PathBuf>,
        /// The folder of certificates and key.
        tls: Option<PathBuf>,
        /// The name of this worker, by default its address.
        name: Option<String>,
    },
    /// Prints the workers and the jobs.
    Status {
        /// The address of the scheduler.
        scheduler: String,
        /// The folder of certificates and key.
        tls: Option<PathBuf>,
        /// Whether to print JSON.
        is_json: bool,
    },
    /// Prints a manifest for Kubernetes.
    Kubernetes {
        /// The number of workers.
        workers: usize,
        /// The image of the containers, which has quarrier-cluster.
        image: String,
    },
    /// Runs a command on processes of this machine.
    Local {
        /// The number of workers.
        workers: usize,
        /// The command and its arguments.
        command: Vec<OsString>,
    },
}

const EXAMPLES: &str = "\
Examples:
  quarrier cluster local --workers 4 -- search -f patterns.txt 'images/*.dd'
  quarrier cluster local --workers 4 -- query \"SELECT count(*) FROM 'a/*.parquet'\"
  quarrier cluster scheduler
  quarrier cluster worker 127.0.0.1:50050
  quarrier search -f patterns.txt 'images/*.dd' --cluster 127.0.0.1:50050
  quarrier carve 'images/*.dd' -o recovered --cluster 127.0.0.1:50050
  quarrier cluster status 127.0.0.1:50050
  quarrier cluster kubernetes --workers 64 --image lab/quarrier > cluster.yaml

A scheduler hands out units to workers: ranges of sources to search or of
Parquet files to query, or whole sources to carve. A unit whose worker ends is
given to another one. 'quarrier search --cluster HOST:PORT', also carve and
query, or the variable QUARRIER_CLUSTER of the environment, sends the work to a
cluster. The rows are those of the command without a cluster. Every worker must
find the sources, and the folders of -o and --to, by the same names, and have
the credentials of its buckets in its own environment.

A scheduler can be reached by this machine only, unless --tls names a folder
with ca.crt, tls.crt and tls.key: then all parts of the cluster prove by their
certificates that they belong to it. QUARRIER_CLUSTER_TLS names that folder for
search, carve and query.

A third program, quarrier-cluster, does the work; 'make cluster' builds it.

Exit status: 0 done, 2 wrong use or failure; of local, that of its command.";

fn tls_arg() -> Arg {
    Arg::new("tls")
        .long("tls")
        .value_name("FOLDER")
        .value_parser(value_parser!(PathBuf))
        .help("The folder of ca.crt, tls.crt and tls.key; required to leave this machine")
}

fn scheduler_arg() -> Arg {
    Arg::new("scheduler")
        .value_name("HOST:PORT")
        .required(true)
        .help("The address of the scheduler")
}

/// The options.
pub(super) fn command() -> Command {
    Command::new("cluster")
        .about("Searches and carves on many machines, or on several processes of this one")
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .subcommand(
            Command::new("local")
                .about(
                    "Runs one command of quarrier on a cluster of processes, which end with it; \
                     without a command, prints the cluster's address, and runs until Ctrl-C or the \
                     end of the process that started it",
                )
                .arg(
                    Arg::new("workers")
                        .long("workers")
                        .value_name("N")
                        .default_value("2")
                        .value_parser(value_parser!(u16).range(1..=1024))
                        .help("The number of workers"),
                )
                .arg(
                    Arg::new("command")
                        .value_name("COMMAND")
                        .value_parser(value_parser!(OsString))
                        .num_args(1..)
                        .last(true)
                        .help("The command, as search, and its arguments"),
                ),
        )
        .subcommand(
            Command::new("scheduler").about("Hands out units to workers").args([
                Arg::new("listen")
                    .long("listen")
                    .value_name("HOST:PORT")
                    .default_value("127.0.0.1:50050")
                    .help("The address to listen at; port 0 is any free one, which is printed"),
                tls_arg(),
            ]),
        )
        .subcommand(
            Command::new("worker").about("Runs units, until it is ended").args([
                scheduler_arg(),
                Arg::new("listen")
                    .long("listen")
                    .value_name("HOST")
                    .default_value("127.0.0.1")
                    .help("The address of this machine at which others fetch rows"),
                Arg::new("cores")
                    .long("cores")
                    .value_name("N|auto")
                    .default_value("auto")
                    .value_parser(crate::quantity::parse_auto_count)
                    .help("Units that run at the same time"),
                Arg::new("work")
                    .long("work")
                    .value_name("FOLDER")
                    .value_parser(value_parser!(PathBuf))
                    .help("Where rows are kept until they are fetched, instead of TMPDIR"),
                tls_arg(),
                Arg::new("name")
                    .long("name")
                    .value_name("NAME")
                    .help("The name of this worker in status and errors, by default its address"),
            ]),
        )
        .subcommand(Command::new("status").about("Prints the workers and the running jobs").args([
            scheduler_arg(),
            super::flag("json", "Print a JSON object"),
            tls_arg(),
        ]))
        .subcommand(
            Command::new("kubernetes").about("Prints a cluster as a manifest for Kubernetes").args(
                [
                    Arg::new("workers")
                        .long("workers")
                        .value_name("N")
                        .default_value("2")
                        .value_parser(value_parser!(u16).range(1..))
                        .help("The number of workers"),
                    Arg::new("image")
                        .long("image")
                        .value_name("IMAGE")
                        .default_value("quarrier")
                        .help(
                            "The image of the containers, which has quarrier-cluster on its PATH",
                        ),
                ],
            ),
        )
}

/// Reads the arguments of `quarrier-cluster`, without its name.
///
/// # Errors
/// The message to print, and whether it is help and not an error.
pub fn cluster_arguments(arguments: Vec<OsString>) -> Result<ClusterCommand, (String, bool)> {
    let command = command()
        .name("quarrier-cluster")
        .bin_name("quarrier cluster")
        .max_term_width(super::COLUMNS_MAX)
        .version(clap::crate_version!())
        .long_version(version::long());
    let name = OsString::from("quarrier-cluster");
    match command.try_get_matches_from(std::iter::once(name).chain(arguments)) {
        Ok(matches) => parse(&matches).map_err(|message| (message, false)),
        Err(error) => {
            use clap::error::ErrorKind::{
                DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion,
            };
            Err(match error.kind() {
                DisplayHelp | DisplayVersion | DisplayHelpOnMissingArgumentOrSubcommand => {
                    (error.to_string(), true)
                }
                _ => (wrong::one_line(&error, Some("cluster".as_ref())), false),
            })
        }
    }
}

fn parse(matches: &ArgMatches) -> Result<ClusterCommand, String> {
    let Some((name, matches)) = matches.subcommand() else {
        return Err("no command was given; try 'quarrier cluster --help'".to_string());
    };
    let text = |id: &str| matches.get_one::<String>(id).cloned().unwrap_or_default();
    let tls = || matches.get_one::<PathBuf>("tls").cloned();
    Ok(match name {
        "local" => ClusterCommand::Local {
            workers: matches.get_one::<u16>("workers").copied().unwrap_or(1).into(),
            command: matches.get_many("command").unwrap_or_default().cloned().collect(),
        },
        "scheduler" => ClusterCommand::Scheduler { listen: text("listen"), tls: tls() },
        "worker" => ClusterCommand::Worker {
            scheduler: text("scheduler"),
            listen: text("listen"),
            cores: super::auto_count(matches, "cores"),
            work: matches.get_one("work").cloned(),
            tls: tls(),
            name: matches.get_one("name").cloned(),
        },
        "kubernetes" => ClusterCommand::Kubernetes {
            workers: matches.get_one::<u16>("workers").copied().unwrap_or(1).into(),
            image: text("image"),
        },
        _ => ClusterCommand::Status {
            scheduler: text("scheduler"),
            tls: tls(),
            is_json: matches.get_flag("json"),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::{ClusterCommand, cluster_arguments};

    fn read(arguments: &[&str]) -> Result<ClusterCommand, (String, bool)> {
        cluster_arguments(arguments.iter().map(Into::into).collect())
    }

    #[test]
    fn everything_after_the_dashes_is_the_command() {
        let local = read(&["local", "--workers", "3", "--", "search", "-c", "x", "f"]).unwrap();
        let command = ["search", "-c", "x", "f"].map(Into::into).to_vec();
        assert_eq!(local, ClusterCommand::Local { workers: 3, command });
        let idle = ClusterCommand::Local { workers: 2, command: Vec::new() };
        assert_eq!(read(&["local"]).unwrap(), idle);
        let missing = read(&["local", "search"]);
        assert!(missing.is_err_and(|(said, is_help)| !is_help && !said.contains('\n')));
        assert!(read(&["--help"]).unwrap_err().1);
    }

    #[test]
    fn addresses_have_a_default_on_this_machine_only() {
        let scheduler = read(&["scheduler"]).unwrap();
        let listen = "127.0.0.1:50050".to_string();
        assert_eq!(scheduler, ClusterCommand::Scheduler { listen, tls: None });
        assert!(read(&["worker"]).is_err());
    }
}
