//! What the scheduler offers beside Ballista's service, on the same port: its version, requests and sheets of
//! units, which units were begun, and its status.
//!
//! ```text
//!  GET  /quarrier/version            the version of the program
//!  PUT  /quarrier/bodies/SHA256      keeps a request or a sheet
//!  GET  /quarrier/bodies/SHA256      returns it
//!  POST /quarrier/begun/RUN/INDEX    a worker begins a unit; returns how often it was begun without an end
//!  POST /quarrier/ended/RUN/INDEX    a worker ended a unit
//!  POST /quarrier/cancelled/RUN      the client gave up
//!  GET  /quarrier/waited/RUN         the client of a run waits for it; returns the status
//!  GET  /quarrier/status             workers and runs, as JSON
//! ```

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post, put};
use ballista_core::serde::protobuf::job_status::Status;
use ballista_scheduler::scheduler_server::SchedulerServer;
use bytes::Bytes;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use quarrier_core::hex;
use quarrier_core::sync::lock;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The scheduler of Ballista with its plans.
pub(crate) type Server = SchedulerServer<LogicalPlanNode, PhysicalPlanNode>;

/// Maximum size of all bodies that are kept, in bytes.
const BODIES_BYTES_MAX: usize = 1 << 30;

/// Maximum number of runs that are remembered.
const RUNS_MAX: usize = 1_000;

/// The workers and the runs, for people.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct Overview {
    pub(crate) version: String,
    pub(crate) workers: Vec<Worker>,
    pub(crate) runs: Vec<RunOverview>,
}

/// A worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Worker {
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) cores: u32,
}

/// A run of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunOverview {
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) units_running: usize,
    pub(crate) units_ended: usize,
    pub(crate) seconds: u64,
}

/// The door's state.
#[derive(Default)]
pub(crate) struct Door {
    bodies: Mutex<Bodies>,
    runs: Mutex<Runs>,
}

/// Requests and sheets by their SHA-256, the latest ones.
#[derive(Default)]
struct Bodies {
    by_hash: HashMap<String, Bytes>,
    order: VecDeque<String>,
    bytes: usize,
}

/// The runs, the latest ones.
#[derive(Default)]
struct Runs {
    by_name: HashMap<String, Run>,
    order: VecDeque<String>,
}

struct Run {
    since: Instant,
    /// When the client was last heard, if it ever was.
    heard: Option<Instant>,
    /// How often each unit was begun without an end.
    begun: BTreeMap<u64, u32>,
    ended: usize,
}

impl Bodies {
    fn put(&mut self, hash: String, body: Bytes) {
        if self.by_hash.contains_key(&hash) {
            return;
        }
        self.bytes += body.len();
        self.by_hash.insert(hash.clone(), body);
        self.order.push_back(hash);
        while self.bytes > BODIES_BYTES_MAX && self.order.len() > 1 {
            let oldest = self.order.pop_front().unwrap_or_default();
            let removed = self.by_hash.remove(&oldest);
            self.bytes -= removed.map_or(0, |body| body.len());
        }
    }
}

impl Runs {
    fn of(&mut self, name: &str) -> &mut Run {
        if !self.by_name.contains_key(name) {
            self.order.push_back(name.to_string());
            while self.order.len() > RUNS_MAX {
                let oldest = self.order.pop_front().unwrap_or_default();
                self.by_name.remove(&oldest);
            }
        }
        let new = || Run { since: Instant::now(), heard: None, begun: BTreeMap::new(), ended: 0 };
        self.by_name.entry(name.to_string()).or_insert_with(new)
    }
}

/// The state of the routes.
#[derive(Clone)]
struct Here {
    door: Arc<Door>,
    server: Server,
}

/// The time after which a silent client counts as gone.
const CLIENT_SILENCE: Duration = Duration::from_secs(10);

/// The routes. Runs of clients that are gone end.
pub(crate) fn routes(server: Server) -> Router {
    let here = Here { door: Arc::default(), server };
    tokio::spawn(end_abandoned(here.clone()));
    Router::new()
        .route("/quarrier/version", get(|| async { quarrier_cli::build() }))
        .route("/quarrier/bodies/{hash}", put(put_body))
        .route("/quarrier/bodies/{hash}", get(get_body))
        .route("/quarrier/begun/{run}/{index}", post(begun))
        .route("/quarrier/ended/{run}/{index}", post(ended))
        .route("/quarrier/cancelled/{run}", post(cancelled))
        .route("/quarrier/waited/{run}", get(waited))
        .route("/quarrier/status", get(status))
        .layer(DefaultBodyLimit::max(quarrier_cli::PACKED_BYTES_MAX as usize))
        .with_state(here)
}

/// The name of a body.
pub(crate) fn hash_of(body: &[u8]) -> String {
    hex::encode(&<[u8; 32]>::from(Sha256::digest(body)))
}

async fn put_body(
    State(here): State<Here>,
    Path(hash): Path<String>,
    body: Bytes,
) -> Result<(), (StatusCode, &'static str)> {
    if hash != hash_of(&body) {
        return Err((StatusCode::BAD_REQUEST, "the body has another hash"));
    }
    lock(&here.door.bodies).put(hash, body);
    Ok(())
}

async fn get_body(
    State(here): State<Here>,
    Path(hash): Path<String>,
) -> Result<Bytes, (StatusCode, &'static str)> {
    let found = lock(&here.door.bodies).by_hash.get(&hash).cloned();
    found.ok_or((
        StatusCode::NOT_FOUND,
        "the scheduler no longer has the request or the units of this job",
    ))
}

async fn begun(State(here): State<Here>, Path((run, index)): Path<(String, u64)>) -> String {
    let mut runs = lock(&here.door.runs);
    let count = runs.of(&run).begun.entry(index).or_default();
    let before = *count;
    *count += 1;
    before.to_string()
}

async fn ended(State(here): State<Here>, Path((run, index)): Path<(String, u64)>) {
    let mut runs = lock(&here.door.runs);
    let run = runs.of(&run);
    if run.begun.remove(&index).is_some() {
        run.ended += 1;
    }
}

async fn cancelled(State(here): State<Here>, Path(run): Path<String>) {
    cancel(&here, &HashSet::from([run])).await;
}

async fn waited(
    State(here): State<Here>,
    Path(run): Path<String>,
) -> Result<String, (StatusCode, String)> {
    lock(&here.door.runs).of(&run).heard = Some(Instant::now());
    // The states of all jobs would take time, each second for each client.
    let overview = Overview {
        version: quarrier_cli::build(),
        workers: workers(&here).await,
        runs: Vec::new(),
    };
    json(&overview)
}

/// Cancels runs whose clients are gone: nobody would fetch their rows.
async fn end_abandoned(here: Here) {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let is_abandoned = |run: &Run| run.heard.is_some_and(|at| at.elapsed() > CLIENT_SILENCE);
        let abandoned: HashSet<String> = {
            let mut runs = lock(&here.door.runs);
            let found = runs.by_name.iter_mut().filter(|(_, run)| is_abandoned(run));
            found
                .map(|(name, run)| {
                    run.heard = None;
                    name.clone()
                })
                .collect()
        };
        // Most of them have ended. Reading the states of all jobs takes time, so it is done once for all.
        if !abandoned.is_empty() {
            cancel(&here, &abandoned).await;
        }
    }
}

/// Cancels the jobs of runs that have not ended.
async fn cancel(here: &Here, runs: &HashSet<String>) {
    for job in here.server.state.task_manager.get_all_jobs().await.unwrap_or_default() {
        let is_unfinished =
            matches!(&job.status.status, Some(Status::Queued(_) | Status::Running(_)));
        if is_unfinished && runs.contains(&job.job_name) {
            // A job that cannot be cancelled ends by itself.
            let _ = here.server.cancel_job(job.job_id).await;
        }
    }
}

async fn status(State(here): State<Here>) -> Result<String, (StatusCode, String)> {
    json(&overview(&here).await)
}

fn json(overview: &Overview) -> Result<String, (StatusCode, String)> {
    serde_json::to_string(overview)
        .map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

/// The workers, by name.
async fn workers(here: &Here) -> Vec<Worker> {
    let workers = here.server.state.executor_manager.get_executors_state().await;
    let mut workers: Vec<Worker> = workers
        .unwrap_or_default()
        .into_iter()
        .map(|(worker, ..)| Worker {
            name: worker.id,
            host: worker.host,
            port: worker.port,
            cores: worker.specification.vcores,
        })
        .collect();
    workers.sort_by(|one, other| one.name.cmp(&other.name));
    workers
}

async fn overview(here: &Here) -> Overview {
    let state = &here.server.state;
    let mut states: HashMap<String, &'static str> = HashMap::new();
    for job in state.task_manager.get_all_jobs().await.unwrap_or_default() {
        let state = match &job.status.status {
            Some(Status::Queued(_)) => "queued",
            Some(Status::Running(_)) => "running",
            Some(Status::Successful(_)) => "done",
            Some(Status::Failed(_)) => "failed",
            None => "unknown",
        };
        states.insert(job.job_name, state);
    }
    let workers = workers(here).await;
    let runs = lock(&here.door.runs);
    let of_run = |name: &String| {
        let run = runs.by_name.get(name)?;
        Some(RunOverview {
            name: name.clone(),
            state: states.get(name).copied().unwrap_or("unknown").to_string(),
            units_running: run.begun.len(),
            units_ended: run.ended,
            seconds: run.since.elapsed().as_secs(),
        })
    };
    let runs = runs.order.iter().filter_map(of_run).collect();
    Overview { version: quarrier_cli::build(), workers, runs }
}
