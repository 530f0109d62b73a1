//! Runs jobs on a cluster.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ballista_core::config::{
    BALLISTA_CLIENT_IO_RETRIES_TIMES, BALLISTA_SCHEDULER_MAX_PARTITIONS_PER_TASK,
};
use ballista_core::execution_plans::execute_physical_plan;
use ballista_core::extension::SessionConfigExt;
use datafusion::arrow::array::{Array, BinaryArray, RecordBatch, UInt8Array, UInt64Array};
use datafusion::prelude::SessionConfig;
use datafusion_proto::protobuf::PhysicalPlanNode;
use futures::StreamExt;
use quarrier_cli::{Answer, Cluster, ClusterJob, TakeAnswer};

use crate::door::{Overview, hash_of};
use crate::http::{self, Fault, Peer};
use crate::plan::{Codec, plan};
use crate::run::{FIRST, LAST, LEFT, REFUSED, STORED, failure_in};
use crate::scheduler::MESSAGE_BYTES_MAX;
use crate::sheet::{self, Slice, Written};
use crate::task::Payload;
use crate::tls::Tls;

/// The variable of the environment that names the folder of certificates.
const TLS_VARIABLE: &str = "QUARRIER_CLUSTER_TLS";

/// How often a job is submitted again after it failed.
const TRIES: usize = 3;

/// The time after which a silent scheduler counts as gone.
const SILENCE: Duration = Duration::from_secs(6);

/// The time for which a job waits for a worker.
const NO_WORKER: Duration = Duration::from_secs(15);

/// The client of a cluster.
pub(crate) struct Client;

impl Cluster for Client {
    fn run(
        &self,
        at: &str,
        job: &ClusterJob<'_>,
        stop: &AtomicBool,
        take: &mut TakeAnswer<'_>,
    ) -> Result<(), String> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| format!("no threads: {error}"))?;
        let ran = runtime.block_on(run(at, job, stop, take));
        runtime.shutdown_background();
        ran
    }
}

/// Why a job ended early.
enum Ended {
    /// It may be submitted again.
    Lost(String),
    /// It may not.
    Failed(String),
}

async fn run(
    at: &str,
    job: &ClusterJob<'_>,
    stop: &AtomicBool,
    take: &mut TakeAnswer<'_>,
) -> Result<(), String> {
    let folder = std::env::var_os(TLS_VARIABLE).filter(|folder| !folder.is_empty());
    let peer = Peer::new(at, folder.as_ref().map(Path::new))?;
    check_version(&peer).await?;
    let request = hash_of(&job.request);
    send_request(&peer, &request, job).await?;
    let mut left: BTreeSet<usize> = (0..job.units.len()).collect();
    let name = run_name();
    let mut tries = 0;
    while !left.is_empty() {
        let payload = Payload {
            version: quarrier_cli::build(),
            run: name.clone(),
            job: job.name.to_string(),
            request: request.clone(),
            to: job.to.map(|to: &OsStr| to.as_bytes().to_vec()),
        };
        match submit(&peer, payload, (job, &mut left), stop, take).await {
            Ok(()) if left.is_empty() => {}
            Ok(()) => {
                return Err(format!(
                    "{at}: the cluster did not answer for {} units; run the command again",
                    left.len()
                ));
            }
            Err(Ended::Failed(reason)) => {
                let _ = http::post(&peer, &format!("/quarrier/cancelled/{name}")).await;
                return Err(reason);
            }
            Err(Ended::Lost(reason)) => {
                tries += 1;
                if tries == TRIES {
                    return Err(format!("{at}: the cluster failed: {reason}"));
                }
                wait_for_scheduler(&peer).await?;
                // Another scheduler may have taken its place.
                send_request(&peer, &request, job).await?;
            }
        }
    }
    Ok(())
}

async fn send_request(peer: &Peer, hash: &str, job: &ClusterJob<'_>) -> Result<(), String> {
    let path = format!("/quarrier/bodies/{hash}");
    let put = http::put(peer, &path, job.request.clone()).await;
    put.map_err(|fault| format!("{}: the scheduler {fault}", peer.at))
}

/// Waits for a scheduler that may start again.
async fn wait_for_scheduler(peer: &Peer) -> Result<(), String> {
    let since = Instant::now();
    loop {
        match http::get_soon(peer, "/quarrier/version").await {
            Err(Fault::Silent(reason)) if since.elapsed() > SILENCE => {
                return Err(format!("{}: the scheduler does not answer: {reason}", peer.at));
            }
            Err(Fault::Silent(_)) => tokio::time::sleep(Duration::from_millis(200)).await,
            Ok(_) | Err(Fault::Refused(_)) => return Ok(()),
        }
    }
}

/// A name that no other run has.
fn run_name() -> String {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos());
    format!("{:x}-{now:x}", std::process::id())
}

async fn check_version(peer: &Peer) -> Result<(), String> {
    let own = quarrier_cli::build();
    let theirs = http::get(peer, "/quarrier/version").await.map_err(|fault| {
        format!("{}: the scheduler {fault}; 'quarrier cluster scheduler' starts one", peer.at)
    })?;
    let theirs = String::from_utf8_lossy(&theirs);
    match theirs == own {
        true => Ok(()),
        false => Err(format!(
            "{}: the scheduler is version {theirs}, and this program is {own}; use one version",
            peer.at
        )),
    }
}

/// Submits a plan for the units that are left, and takes the answers.
async fn submit(
    peer: &Peer,
    payload: Payload,
    (job, left): (&ClusterJob<'_>, &mut BTreeSet<usize>),
    stop: &AtomicBool,
    take: &mut TakeAnswer<'_>,
) -> Result<(), Ended> {
    let fatal = |error: &dyn std::fmt::Display| Ended::Failed(error.to_string());
    let run = payload.run.clone();
    let slices = send_units(peer, (job, left), stop).await?;
    let plan = plan(payload, &slices).map_err(|error| fatal(&error))?;
    let config = session_config(&run, peer.tls.as_deref());
    let ballista = config.ballista_config();
    let (session, codec) = (run.clone(), Codec::default());
    let submitted = execute_physical_plan::<PhysicalPlanNode>(
        peer.url(),
        &ballista,
        plan,
        &codec,
        session,
        config,
    );
    let waited = format!("/quarrier/waited/{run}");
    // If this is lost, the scheduler hears of this client a second later.
    let _ = http::get_soon(peer, &waited).await;
    let mut watching = Watching { peer, waited, stop, silent: None, idle: None };
    let mut rows = tokio::select! {
        rows = submitted => rows.map_err(|error| ended_by(&error.to_string()))?,
        ended = watching.watch() => return Err(ended),
    };
    loop {
        let next = tokio::select! {
            next = rows.next() => next,
            ended = watching.watch() => return Err(ended),
        };
        match next {
            None => return Ok(()),
            Some(Err(error)) => return Err(ended_by(&error.to_string())),
            Some(Ok(batch)) => answers(&batch, left, take).map_err(|reason| fatal(&reason))?,
        }
    }
}

/// Sends the sheets of the units that are left to the scheduler; returns the slices of the tasks.
async fn send_units(
    peer: &Peer,
    (job, left): (&ClusterJob<'_>, &BTreeSet<usize>),
    stop: &AtomicBool,
) -> Result<Vec<Slice>, Ended> {
    let fatal = |error: &dyn std::fmt::Display| Ended::Failed(error.to_string());
    let units = left.iter().filter_map(|&index| {
        let (unit, at) = job.units.get(index)?;
        Some((index as u64, unit, at.as_os_str()))
    });
    let units: Vec<_> = units.collect();
    let (sheets, slices) = sheet::write(&units).map_err(|error| fatal(&error))?;
    for Written { hash, bytes } in sheets {
        if stop.load(Ordering::Relaxed) {
            return Err(fatal(&"interrupted"));
        }
        let put = http::put(peer, &format!("/quarrier/bodies/{hash}"), bytes).await;
        put.map_err(|fault| Ended::Lost(format!("{}: the scheduler {fault}", peer.at)))?;
    }
    Ok(slices)
}

fn session_config(run: &str, tls: Option<&Tls>) -> SessionConfig {
    let config = SessionConfig::new_with_ballista()
        .set_usize(BALLISTA_SCHEDULER_MAX_PARTITIONS_PER_TASK, 1)
        .set_usize(BALLISTA_CLIENT_IO_RETRIES_TIMES, 1)
        .with_ballista_grpc_client_max_message_size(MESSAGE_BYTES_MAX as usize)
        .with_ballista_adaptive_query_planner(false)
        .with_ballista_job_name(run);
    match tls {
        None => config,
        Some(tls) => config
            .with_ballista_use_tls(true)
            .with_ballista_override_create_grpc_client_endpoint(tls.endpoints()),
    }
}

/// What an error of Ballista means.
fn ended_by(error: &str) -> Ended {
    if let Some(reason) = failure_in(error) {
        return Ended::Failed(reason);
    }
    // Errors of our operator end the job.
    let is_ours =
        ["use one version", "has a defect", "damaged"].iter().any(|part| error.contains(part));
    match is_ours {
        true => Ended::Failed(error.to_string()),
        false => Ended::Lost(error.to_string()),
    }
}

/// Watches the scheduler, the workers and Ctrl-C.
struct Watching<'w> {
    peer: &'w Peer,
    /// The path that tells the scheduler that this client waits.
    waited: String,
    stop: &'w AtomicBool,
    /// Since when the scheduler does not answer, and since when there is no worker.
    silent: Option<Instant>,
    idle: Option<Instant>,
}

impl Watching<'_> {
    /// Returns when the job cannot end.
    async fn watch(&mut self) -> Ended {
        let mut asked = Instant::now();
        loop {
            tokio::time::sleep(Duration::from_millis(50)).await;
            if self.stop.load(Ordering::Relaxed) {
                return Ended::Failed("interrupted".to_string());
            }
            if asked.elapsed() < Duration::from_secs(1) {
                continue;
            }
            asked = Instant::now();
            if let Some(ended) = self.ask().await {
                return ended;
            }
        }
    }

    async fn ask(&mut self) -> Option<Ended> {
        let answer = http::get_soon(self.peer, &self.waited).await;
        let since = |since: &mut Option<Instant>| since.get_or_insert_with(Instant::now).elapsed();
        match answer {
            Err(Fault::Silent(reason)) if since(&mut self.silent) > SILENCE => Some(Ended::Failed(
                format!("{}: the scheduler does not answer: {reason}", self.peer.at),
            )),
            Err(Fault::Silent(_)) => None,
            Err(Fault::Refused(_)) => {
                self.silent = None;
                None
            }
            Ok(body) => {
                self.silent = None;
                let overview: Overview = serde_json::from_slice(&body).unwrap_or_default();
                if !overview.workers.is_empty() {
                    self.idle = None;
                    return None;
                }
                (since(&mut self.idle) > NO_WORKER).then(|| {
                    Ended::Failed(format!(
                        "{}: the cluster has no worker; 'quarrier cluster worker {0}' starts one",
                        self.peer.at
                    ))
                })
            }
        }
    }
}

/// Passes the answers of a batch on.
fn answers(
    batch: &RecordBatch,
    left: &mut BTreeSet<usize>,
    take: &mut TakeAnswer<'_>,
) -> Result<(), String> {
    let damaged = || "a worker sent damaged rows".to_string();
    let [indexes, states, bytes] = batch.columns() else { return Err(damaged()) };
    let indexes = indexes.as_any().downcast_ref::<UInt64Array>().ok_or_else(damaged)?;
    let states = states.as_any().downcast_ref::<UInt8Array>().ok_or_else(damaged)?;
    let bytes = bytes.as_any().downcast_ref::<BinaryArray>().ok_or_else(damaged)?;
    for at in 0..batch.num_rows() {
        let index = usize::try_from(indexes.value(at)).map_err(|_| damaged())?;
        if !left.contains(&index) {
            return Err(format!("the cluster answered twice for unit {index}"));
        }
        let answer = match states.value(at) {
            STORED => Answer::Stored,
            LEFT => Answer::Left,
            REFUSED => Answer::Refused,
            state if state <= FIRST | LAST => Answer::Part {
                is_first: state & FIRST != 0,
                bytes: bytes.value(at),
                is_last: state & LAST != 0,
            },
            _ => return Err(damaged()),
        };
        take(index, answer)?;
        if !matches!(answer, Answer::Part { is_last: false, .. }) {
            left.remove(&index);
        }
    }
    Ok(())
}
