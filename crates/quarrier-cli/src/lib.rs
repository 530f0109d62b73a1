//! `quarrier`: searches raw data in place, at the speed of the machine, and reports how close it came.
//!
//! ```text
//!  args ──→ commands/<verb> ──→ engine crates
//!               │                    │ findings, account
//!               └── output/ ←────────┘  text, JSON, CSV, Arrow, report, statistics
//! ```
//!
//! This is a library so that `quarrier-sql` can share its arguments, interruption and error output.
//! Everything else here belongs to the binary.

mod args;
pub use args::{
    ClusterCommand, Query, QueryCluster, QueryFormat, Serve, build, cluster_arguments,
    query_arguments, serve_arguments,
};

mod cluster;
pub use cluster::{Answer, CLUSTER_VARIABLE, Cluster, ClusterJob, TakeAnswer, waves};

mod commands;
pub use commands::gathered::{Gather, SearchPart, TakeCarvedFiles, TakeFindings};
pub use commands::packed::{
    PACKED_BYTES_MAX, PackedCarve, PackedContent, PackedQuery, PackedRequest, PackedSearch,
};
pub use commands::query::account::{QueryAccount, memory_bytes_per_second};
pub use commands::search::request::search_of_words;
pub use commands::spread::{absolute_name, unit_bytes_for};

mod output;
pub use output::standard::{StandardOutput, end, has_failed};

mod host;
pub use host::{environment, machine};

mod quantity;

mod defects;
pub use defects::guarded;

mod interrupt;
mod log;
pub use interrupt::watch;

use std::process::ExitCode;

use quarrier_messages::ColumnReader;

/// The outcome of a command; its number is the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Something was found, or the work was done.
    Found = 0,
    /// Nothing was found.
    Nothing = 1,
    /// Wrong use or failure.
    Failed = 2,
    /// Done, but part of the input could not be read.
    Incomplete = 3,
    /// Ended by Ctrl-C: 128 + SIGINT, as shells report it.
    Interrupted = 130,
}

impl Outcome {
    /// The worse of two: failed, then interrupted, then incomplete.
    fn worse(self, other: Outcome) -> Outcome {
        let rank = |outcome: Outcome| match outcome {
            Outcome::Failed => 3,
            Outcome::Interrupted => 2,
            Outcome::Incomplete => 1,
            Outcome::Found | Outcome::Nothing => 0,
        };
        if rank(other) > rank(self) { other } else { self }
    }
}

/// The main function of the binary `quarrier`: runs the command line of this process. Commands over
/// Parquet are handed over to `quarrier-sql` if `parquet` is `None`.
pub fn run(parquet: Option<&dyn ColumnReader>) -> ExitCode {
    defects::guarded(|| obeyed(parquet, None) as u8)
}

/// The main function of a program that runs the command line of this process on a cluster.
pub fn run_on(cluster: &dyn Cluster) -> ExitCode {
    defects::guarded(|| obeyed(None, Some(cluster)) as u8)
}

fn obeyed(parquet: Option<&dyn ColumnReader>, cluster: Option<&dyn Cluster>) -> Outcome {
    match args::parse() {
        args::Parsed::Search(search) if search.is_on_cluster() && cluster.is_none() => {
            commands::cluster::hand_over(1)
        }
        args::Parsed::Search(search) => commands::search::run(&search, cluster),
        args::Parsed::Carve(carve) if carve.is_on_cluster() && cluster.is_none() => {
            commands::cluster::hand_over(1)
        }
        args::Parsed::Carve(carve) => commands::carve::run(&carve, cluster),
        args::Parsed::Files(files) => commands::files::run(&files),
        args::Parsed::Mount(mount) => commands::mount::run(&mount),
        args::Parsed::Cache(cache) => commands::cache::run(&cache),
        args::Parsed::Verify(verify) => commands::verify::run(&verify),
        args::Parsed::Filter(filter) => commands::filter::run(&filter),
        args::Parsed::Explain(explain) => commands::explain::run(&explain, parquet),
        args::Parsed::Gauge(gauge) => commands::gauge::run(&gauge),
        args::Parsed::Load(load) => commands::load::run(&load),
        args::Parsed::Reindex(reindex) => commands::load::reindex(&reindex),
        args::Parsed::Query { is_on_cluster: true } => commands::cluster::hand_over(1),
        args::Parsed::Query { is_on_cluster: false } => commands::query::run(),
        args::Parsed::Serve => commands::query::serve(),
        args::Parsed::Cluster => commands::cluster::hand_over(2),
        args::Parsed::Done(outcome) => outcome,
    }
}

/// Becomes `quarrier-cluster`, with the arguments of `quarrier-sql`. Returns the exit code if it cannot.
pub fn query_on_cluster() -> u8 {
    commands::cluster::hand_over_query() as u8
}

/// Prints an error in one line on standard error.
pub fn complain(message: &str) {
    use std::io::Write;
    let message = without_codes(message).replace(['\n', '\r'], " ");
    let one_line = quarrier_report::visible(&message);
    // If standard error is closed, nobody is left to read this.
    let _ = writeln!(std::io::stderr(), "quarrier: {one_line}");
}

/// The message without the ` (os error N)` that Rust appends to the system's message.
fn without_codes(message: &str) -> String {
    let mut text = message.to_string();
    while let Some(start) = text.find(" (os error ") {
        let Some(length) = text[start..].find(')') else { break };
        text.replace_range(start..=start + length, "");
    }
    text
}
