//! The client of queries: runs fragments on a cluster, and passes on the rows of their units in order.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::BufReader;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use quarrier::{OpenOptions, Opener, Sources};
use quarrier_cli::{
    Answer, Cluster, ClusterJob, Gather, PackedCarve, PackedRequest, SearchPart, TakeCarvedFiles,
    TakeFindings, absolute_name, unit_bytes_for, waves,
};
use quarrier_core::threads;
use quarrier_sql::{Engine, Options, Spread, SpreadFragment, SpreadSource, TakeRows};
use quarrier_units::{Incoming, Results, SourceUnits, Unit, View};

use crate::client::Client;
use crate::query::{codec, packed};

/// A unit, and the name by which workers open its source.
type Named = (Unit, OsString);

/// The time for runs to end after their statement was stopped.
const PATIENCE: Duration = Duration::from_secs(3);

/// The number of runs.
static RUNS: AtomicUsize = AtomicUsize::new(0);

/// A run, until it is dropped.
struct Running;

impl Running {
    fn begin() -> Self {
        RUNS.fetch_add(1, Ordering::SeqCst);
        Running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits until runs that were stopped have told their scheduler and removed their files, or for some seconds.
pub(crate) fn wait_for_runs() {
    let since = Instant::now();
    while RUNS.load(Ordering::SeqCst) > 0 && since.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The cluster of a scheduler.
struct QueryCluster {
    at: String,
    /// The functions that every worker has.
    context: Arc<TaskContext>,
}

impl std::fmt::Debug for QueryCluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueryCluster").field("at", &self.at).finish_non_exhaustive()
    }
}

/// Prepares queries on the cluster of the scheduler at an address.
///
/// # Errors
/// A message for the user.
pub(crate) fn connect(at: &str) -> Result<Arc<dyn Spread>, String> {
    let engine = Engine::new(Options::default()).map_err(|error| error.to_string())?;
    let context = engine.context().task_ctx();
    Ok(Arc::new(QueryCluster { at: at.to_string(), context }))
}

impl Spread for QueryCluster {
    fn pack(&self, fragment: &Arc<dyn ExecutionPlan>) -> Option<Vec<u8>> {
        codec::pack(fragment, &self.context)
    }

    fn run(
        &self,
        fragment: &SpreadFragment,
        stop: &Arc<AtomicBool>,
        take: &mut TakeRows<'_>,
    ) -> Result<(), String> {
        let _running = Running::begin();
        let opener = Opener::new(OpenOptions::default(), quarrier_cli::environment(), stop);
        let units = units_of(fragment, &opener)?;
        drop(opener);
        let request = PackedRequest::Query(Box::new(packed::pack(fragment)?)).pack()?;
        let folder = tempfile::Builder::new()
            .prefix("quarrier-cluster-")
            .tempdir()
            .map_err(|error| format!("no folder for rows: {error}"))?;
        let results = Results::temporary(folder.path().to_path_buf());
        let name = packed::job_of(&request);
        let job = ClusterJob { name: &name, request, to: None, units };
        let read_units = AtomicUsize::new(0);
        let reading =
            Reading { results: &results, job: &job, rows: &fragment.rows, read_units: &read_units };
        std::thread::scope(|scope| {
            let (sender, receiver) = channel();
            let storing = Storing { results: &results, job: &job, open: BTreeMap::new(), sender };
            let (at, read) = (self.at.as_str(), &read_units);
            let run = move || run_waves(at, fragment.is_limited, storing, (read, stop));
            let running = threads::in_scope(scope, "cluster", run)
                .map_err(|error| format!("no thread to work in: {error}"))?;
            let read = reading.all(&receiver, take);
            if !matches!(read, Ok(ControlFlow::Continue(()))) {
                // No more rows are needed.
                stop.store(true, Ordering::Relaxed);
            }
            let ran = running.join().unwrap_or_else(|_| Err("a thread ended early".to_string()));
            match read {
                Ok(ControlFlow::Continue(())) => ran,
                Ok(ControlFlow::Break(())) => Ok(()),
                Err(reason) => Err(reason),
            }
        })
    }

    fn search(
        &self,
        what: SearchPart<'_>,
        (sources, opener): (&Sources, &Opener),
        stop: &AtomicBool,
        take: &mut dyn TakeFindings,
    ) -> Result<(), String> {
        let _running = Running::begin();
        Gather { cluster: &Client, at: &self.at, sources, opener }.findings(what, stop, take)
    }

    fn carve(
        &self,
        packed: &PackedCarve,
        (sources, opener): (&Sources, &Opener),
        stop: &AtomicBool,
        take: &mut dyn TakeCarvedFiles,
    ) -> Result<(), String> {
        let _running = Running::begin();
        Gather { cluster: &Client, at: &self.at, sources, opener }.files(packed, stop, take)
    }
}

/// Runs the units of a job; if a limit may end it early, in waves, each after the rows of the one before were
/// read.
fn run_waves(
    at: &str,
    is_limited: bool,
    mut storing: Storing<'_>,
    (read_units, stop): (&AtomicUsize, &AtomicBool),
) -> Result<(), String> {
    let job = storing.job;
    for wave in waves(job.units.len(), is_limited) {
        while read_units.load(Ordering::Relaxed) < wave.start {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let units = job.units.get(wave.clone()).unwrap_or_default().to_vec();
        let part = ClusterJob { units, request: job.request.clone(), ..*job };
        Client
            .run(at, &part, stop, &mut |index, answer| storing.take(wave.start + index, answer))?;
    }
    Ok(())
}

/// The units of all sources, in order.
fn units_of(fragment: &SpreadFragment, opener: &Opener) -> Result<Vec<Named>, String> {
    let open = |source: &SpreadSource, bytes: u64| {
        let (view, all) = (View::Messages, 0..u64::MAX);
        let units = SourceUnits::open_as(view, &source.named, opener, &all, bytes);
        let units = units.map_err(|error| error.to_string())?;
        let now = units.unit(0).version;
        match source.version.as_ref().is_none_or(|before| *before == now) {
            true => Ok(units),
            false => Err(format!("{}: it was changed; run the statement again", units.name())),
        }
    };
    let mut bytes: u64 = 0;
    for source in fragment.sources.iter() {
        bytes = bytes.saturating_add(open(source, u64::MAX)?.bytes());
    }
    let size = unit_bytes_for(bytes);
    let mut units = Vec::new();
    for source in fragment.sources.iter() {
        for unit in open(source, if source.is_cut { size } else { u64::MAX })?.units() {
            let at = absolute_name(&unit.name)?;
            units.push((unit, at));
        }
    }
    Ok(units)
}

/// Stores the rows that workers send.
struct Storing<'s> {
    results: &'s Results,
    job: &'s ClusterJob<'s>,
    /// The objects of which only the first parts have come.
    open: BTreeMap<usize, Incoming>,
    /// Gets the index of each unit whose rows are complete.
    sender: Sender<usize>,
}

impl Storing<'_> {
    fn take(&mut self, index: usize, answer: Answer<'_>) -> Result<(), String> {
        let message = |error: quarrier_units::Error| error.to_string();
        let (unit, _) = self.job.units.get(index).ok_or("a worker answered for an unknown unit")?;
        let Answer::Part { is_first, bytes, is_last } = answer else {
            return Err(format!(
                "{}: bytes {}..{} were not read: three workers of the cluster ended there",
                unit.source, unit.range.start, unit.range.end
            ));
        };
        if is_first {
            let incoming = self.results.receive(self.job.name, unit).map_err(message)?;
            self.open.insert(index, incoming);
        }
        let incoming = self.open.get_mut(&index).ok_or("a worker left out a part")?;
        incoming.write(bytes).map_err(message)?;
        if is_last && let Some(incoming) = self.open.remove(&index) {
            incoming.finish().map_err(message)?;
            // Nobody waits if no more rows are needed.
            let _ = self.sender.send(index);
        }
        Ok(())
    }
}

/// Reads stored rows.
struct Reading<'r> {
    results: &'r Results,
    job: &'r ClusterJob<'r>,
    rows: &'r SchemaRef,
    /// The number of units whose rows were passed on.
    read_units: &'r AtomicUsize,
}

impl Reading<'_> {
    /// Passes on the rows of all units in order, as they become complete. Returns early if the job ends, whose
    /// error says why.
    fn all(
        &self,
        complete: &Receiver<usize>,
        take: &mut TakeRows<'_>,
    ) -> Result<ControlFlow<()>, String> {
        let mut stored = BTreeSet::new();
        for (index, (unit, _)) in self.job.units.iter().enumerate() {
            while !stored.remove(&index) {
                let Ok(next) = complete.recv() else { return Ok(ControlFlow::Continue(())) };
                stored.insert(next);
            }
            if self.one(unit, take)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            self.results.remove(self.job.name, unit).map_err(|error| error.to_string())?;
            self.read_units.store(index + 1, Ordering::Relaxed);
        }
        Ok(ControlFlow::Continue(()))
    }

    fn one(&self, unit: &Unit, take: &mut TakeRows<'_>) -> Result<ControlFlow<()>, String> {
        let path = self.results.path(self.job.name, unit);
        let damaged = |reason: &dyn std::fmt::Display| {
            format!("{}: a worker sent damaged rows: {reason}", unit.source)
        };
        let file = File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let batches = StreamReader::try_new(BufReader::new(file), None);
        for batch in batches.map_err(|error| damaged(&error))? {
            let batch = batch.map_err(|error| damaged(&error))?;
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let (rows, columns) = (Arc::clone(self.rows), batch.columns().to_vec());
            let batch = RecordBatch::try_new_with_options(rows, columns, &options);
            if take(batch.map_err(|error| damaged(&error))?).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
