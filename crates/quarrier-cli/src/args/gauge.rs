//! `quarrier gauge`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use quarrier_gauge::Area;

use super::{color_arg, flag, format_arg, format_of, quiet_arg, stats_arg};
use crate::log::log_arg;
use crate::output::Format;

/// `quarrier gauge`.
#[derive(Debug)]
pub(crate) struct Gauge {
    pub(crate) task: Task,
    pub(crate) json: Option<PathBuf>,
    pub(crate) html: Option<PathBuf>,
    /// Earlier reports, in the order of the command line.
    pub(crate) compare: Vec<PathBuf>,
    /// By how many percent a reading may be slower than in an earlier report.
    pub(crate) gate: Option<f64>,
    pub(crate) prometheus: Option<PathBuf>,
    pub(crate) format: Format,
    pub(crate) quiet: bool,
    pub(crate) stats: Option<PathBuf>,
}

/// The origin of the readings.
#[derive(Debug)]
pub(crate) enum Task {
    /// Measure here.
    Measure(Measure),
    /// Show the report in this file.
    Show(PathBuf),
    /// Serve as the other end of a measurement on another host.
    Listen(SocketAddr),
}

/// The measurements to make.
#[derive(Debug)]
pub(crate) struct Measure {
    pub(crate) areas: Vec<Area>,
    pub(crate) quick: bool,
    pub(crate) runs: Option<u32>,
    /// How long to write to the disk, and to read from it.
    pub(crate) sustained: Option<Duration>,
    pub(crate) path: PathBuf,
    /// The other end of the network; `None` for the loopback.
    pub(crate) connect: Option<String>,
    pub(crate) congestion: Option<String>,
}

/// The maximum of `--sustained`: a day.
const SUSTAINED_SECONDS_MAX: u64 = 86_400;

const EXAMPLES: &str = "\
Examples:
  quarrier gauge --quick
  quarrier gauge --json host.json --html host.html
  quarrier gauge memory --runs 10
  quarrier gauge disk --path /mnt/data --html disk.html
  quarrier gauge disk --path /mnt/data --sustained 600 --html sustained.html
  quarrier gauge --json after.json --compare before.json
  quarrier gauge --from after.json --compare before.json --html compared.html
  quarrier gauge memory --compare before.json --gate 10
  quarrier gauge --quick --prometheus /var/lib/node_exporter/quarrier.prom
  quarrier gauge network --listen 0.0.0.0:7413    on one host, and on the other:
  quarrier gauge network --connect first-host:7413

Each reading is the median of several runs (--runs), with each thread bound to a
CPU. Runs slowed by other processes are dropped and counted, and the results of
each run are checked. Everything is measured twice and the runs are pooled. '!'
marks a disturbed reading: other processes used the machine, or the runs
disagree.

--quick takes less than 30 s in all, and measures what planning needs. Every run
updates the machine profile in the cache folder ($XDG_CACHE_HOME/quarrier or
~/.cache/quarrier), which searches use for planning.

The disk is measured in a temporary file in FOLDER, which is always removed; a
full measurement takes 1 GiB, a quick one 256 MiB, --sustained at most a quarter
of the free space.

--sustained finds the rates at which a disk stays when its caches are full, or
its credits are spent. It shows the rate over time, the rate at the start, and
when it fell. It measures no other readings, and wears an SSD: it writes as much
as the disk takes in SECONDS.

CPU quotas, cpusets and memory limits of control groups are named as limits, and
threads and memory follow them. --gate fails if an undisturbed reading is slower
by more than PERCENT than in an earlier report, and not by chance.

Exit status: 0 done, 1 slower than the gate allows, 2 wrong use or failure, or
nothing in common with an earlier report, 130 interrupted.";

pub(super) fn command() -> Command {
    Command::new("gauge")
        .about("Measures the machine's ceilings: CPU, memory, disk, network, GPUs")
        .after_help(EXAMPLES)
        .arg(
            Arg::new("area")
                .value_name("AREA")
                .num_args(0..)
                .action(ArgAction::Append)
                .value_parser(value_parser!(String))
                .help("cpu, memory, disk, network, gpu; without an area, all of them"),
        )
        .arg(flag("quick", "Measure only what planning needs, in less than 30 s"))
        .arg(
            Arg::new("runs")
                .long("runs")
                .value_name("N")
                .value_parser(value_parser!(u32).range(1..=1000))
                .help(
                    "Minimum number of runs for each reading [default: 3]; more if they differ. One run \
                     has no spread",
                ),
        )
        .arg(
            Arg::new("path")
                .long("path")
                .value_name("FOLDER")
                .default_value(".")
                .value_parser(value_parser!(PathBuf))
                .help("A folder on the disk to measure"),
        )
        .arg(
            Arg::new("sustained")
                .long("sustained")
                .value_name("SECONDS")
                .conflicts_with_all(["from", "listen", "connect", "runs"])
                .value_parser(value_parser!(u64).range(1..=SUSTAINED_SECONDS_MAX))
                .help(
                    "Only measure the rates that the disk sustains: write for SECONDS, then read for as \
                     long; the area must be disk. Take at least as long as its caches may last, such as \
                     600",
                ),
        )
        .args(network_args())
        .args(report_args())
        .args([format_arg(), color_arg(), quiet_arg(), stats_arg(), log_arg()])
}

fn network_args() -> [Arg; 3] {
    [
        Arg::new("listen")
            .long("listen")
            .value_name("ADDRESS")
            .conflicts_with_all([
                "connect", "from", "quick", "runs", "json", "html", "compare", "prometheus",
            ])
            .value_parser(parse_address)
            .help("Act as the other end of 'gauge network --connect', until Ctrl-C")
            .help_heading("Network"),
        Arg::new("connect")
            .long("connect")
            .value_name("ADDRESS")
            .conflicts_with("from")
            .help("Measure the network to a host that runs 'gauge network --listen'; default: loopback")
            .help_heading("Network"),
        Arg::new("congestion")
            .long("congestion")
            .value_name("NAME")
            .help("TCP's congestion control by its name in the kernel, such as cubic")
            .help_heading("Network"),
    ]
}

fn report_args() -> [Arg; 6] {
    let file = |id: &'static str, name: &'static str, help: &'static str| {
        Arg::new(id)
            .long(id)
            .value_name(name)
            .value_parser(value_parser!(PathBuf))
            .help(help)
            .help_heading("Output")
    };
    [
        file("json", "FILE", "Write the report as JSON (schema: docs/gauge.schema.json)"),
        file("html", "FILE.html", "Write the report as one page with plots"),
        file("compare", "FILE", "Compare with an earlier report of --json; repeatable")
            .action(ArgAction::Append),
        Arg::new("gate")
            .long("gate")
            .value_name("PERCENT")
            .requires("compare")
            .value_parser(parse_percent)
            .help("Exit with status 1 if a reading is slower by more than PERCENT, such as 5 or 5%")
            .help_heading("Output"),
        file(
            "prometheus",
            "FILE",
            "Write the readings in Prometheus text format (names: quarrier_…)",
        ),
        file("from", "FILE", "Show an earlier report of --json instead of measuring")
            .conflicts_with_all(["area", "quick", "runs"]),
    ]
}

/// Parses a percentage above 0, with or without its sign.
fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse().ok();
    number
        .filter(|percent: &f64| *percent > 0.0 && *percent < 100.0)
        .ok_or_else(|| format!("'{text}' is not a percentage above 0 and below 100; write 5 or 5%"))
}

/// Parses `HOST:PORT`, `HOST` or `PORT`, where the host is an IP address.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let port = quarrier_gauge::network::PORT;
    let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let with_host = || text.parse().ok().map(|host| SocketAddr::new(host, port));
    let with_port = || text.parse().ok().map(|port| SocketAddr::new(any, port));
    text.parse().ok().or_else(with_host).or_else(with_port).ok_or_else(|| {
        format!(
            "'{text}' is not an address of this host; write 0.0.0.0:{port}, [::]:{port} or {port}"
        )
    })
}

pub(super) fn parse(matches: &ArgMatches) -> Result<Gauge, String> {
    let file = |id: &str| matches.get_one::<PathBuf>(id).cloned();
    let many = |id: &str| matches.get_many::<PathBuf>(id).unwrap_or_default().cloned().collect();
    let listen = matches.get_one::<SocketAddr>("listen").copied();
    let text = |id: &str| matches.get_one::<String>(id).cloned();
    let names: Vec<&String> = matches.get_many::<String>("area").unwrap_or_default().collect();
    let areas = quarrier::Gauge::areas_named(&names);
    let areas = areas.map_err(|error| format!("{error}; try 'quarrier gauge --help'"))?;
    if matches.contains_id("sustained") && areas != [Area::Disk] {
        let write = "write 'quarrier gauge disk --sustained …'";
        return Err(format!("--sustained is for the disk only; {write}"));
    }
    for option in ["listen", "connect"] {
        if matches.contains_id(option) && areas != [Area::Network] {
            return Err(format!(
                "--{option} is for the network only; write 'quarrier gauge network --{option} …'"
            ));
        }
    }
    let task = if let Some(path) = file("from") {
        Task::Show(path)
    } else if let Some(address) = listen {
        Task::Listen(address)
    } else {
        Task::Measure(Measure {
            areas,
            quick: matches.get_flag("quick"),
            runs: matches.get_one("runs").copied(),
            sustained: matches.get_one("sustained").copied().map(Duration::from_secs),
            path: file("path").unwrap_or_default(),
            connect: text("connect"),
            congestion: text("congestion"),
        })
    };
    Ok(Gauge {
        task,
        json: file("json"),
        html: file("html"),
        compare: many("compare"),
        gate: matches.get_one("gate").copied(),
        prometheus: file("prometheus"),
        format: format_of(matches)?,
        quiet: matches.get_flag("quiet"),
        stats: file("stats"),
    })
}
