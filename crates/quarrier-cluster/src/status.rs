//! `quarrier cluster status`.

use std::path::Path;

use quarrier_report::number;

use crate::door::Overview;
use crate::http::{self, Peer};

/// Prints the workers and the runs.
///
/// # Errors
/// A message for the user.
pub(crate) fn run(scheduler: &str, tls: Option<&Path>, is_json: bool) -> Result<(), String> {
    let peer = Peer::new(scheduler, tls)?;
    let at = &peer.at;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no threads: {error}"))?;
    let body = runtime.block_on(http::get(&peer, "/quarrier/status"));
    let body = body.map_err(|fault| format!("{at}: the scheduler {fault}"))?;
    let overview: Overview = serde_json::from_slice(&body)
        .map_err(|error| format!("{at}: is no scheduler of this version: {error}"))?;
    match is_json {
        true => crate::print(&format!("{}\n", String::from_utf8_lossy(&body))),
        false => crate::print(&shown(&overview)),
    }
}

/// The overview as text.
fn shown(overview: &Overview) -> String {
    let Overview { version, workers, runs } = overview;
    let cores: u32 = workers.iter().map(|worker| worker.cores).sum();
    let mut text = format!(
        "version {version}: {} with {}\n",
        number::counted(workers.len() as u64, "worker"),
        number::counted(cores.into(), "core")
    );
    for worker in workers {
        text.push_str(&format!(
            "worker {} at {}:{}, {}\n",
            worker.name,
            worker.host,
            worker.port,
            number::counted(worker.cores.into(), "core")
        ));
    }
    for run in runs {
        text.push_str(&format!(
            "run {}: {}, {} done, {} running, {} s\n",
            run.name,
            run.state,
            number::counted(run.units_ended as u64, "unit"),
            run.units_running,
            run.seconds
        ));
    }
    text
}
