//! Threads that run units. Each owns a compiled request, and serves one unit after another. The threads of the
//! last requests are kept, so that a request is compiled once for each unit that runs at the same time.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::SystemTime;

use quarrier::search::Planning;
use quarrier::{Carve, Opener};
use quarrier_cli::{PackedCarve, PackedRequest};
use quarrier_core::threads;
use quarrier_units::{
    CarveUnits, Error, JudgeUnits, Results, SourceUnits, Stored, Unit, UnitSearch, WhatToTry,
};

use crate::query::UnitQuery;
use crate::task::{RunUnits, Task};

/// The number of requests whose threads are kept.
const REQUESTS_KEPT: usize = 4;

/// Threads that wait for work, by request.
#[derive(Default)]
pub(crate) struct Pool {
    idle: HashMap<String, Vec<Runner>>,
    order: VecDeque<String>,
}

impl Pool {
    pub(crate) fn take(&mut self, key: &str) -> Option<Runner> {
        self.idle.get_mut(key)?.pop()
    }

    pub(crate) fn give(&mut self, key: &str, runner: Runner) {
        if !self.idle.contains_key(key) {
            self.order.push_back(key.to_string());
            while self.order.len() > REQUESTS_KEPT {
                let oldest = self.order.pop_front().unwrap_or_default();
                self.idle.remove(&oldest);
            }
        }
        self.idle.entry(key.to_string()).or_default().push(runner);
    }
}

/// Work for a thread, with the request that it has compiled.
type Work = Box<dyn FnOnce(&mut dyn RunUnits, &Opener) + Send>;

/// A thread that owns a compiled request.
pub(crate) struct Runner {
    pub(crate) work: SyncSender<Work>,
    pub(crate) stop: Arc<AtomicBool>,
}

/// Why a thread cannot start.
pub(crate) enum CannotStart {
    /// No worker can run the request.
    Request(String),
    /// Another worker may have a thread.
    Thread(String),
}

impl Runner {
    /// Starts a thread. `cores` are the CPUs of this worker.
    ///
    /// # Errors
    /// If the request is invalid, or the system has no thread.
    pub(crate) fn start(
        request: PackedRequest,
        cores: usize,
        (opener, results): (Opener, Results),
        stop: Arc<AtomicBool>,
    ) -> Result<Self, CannotStart> {
        let (sender, receiver) = sync_channel::<Work>(1);
        let own_stop = Arc::clone(&stop);
        let started = match request {
            PackedRequest::Search(packed) => {
                let planning = Planning { workers: 1, ..Planning::default() };
                let request = packed.request(planning, &stop).map_err(CannotStart::Request)?;
                threads::alone("units", move || {
                    let machine = quarrier_cli::machine();
                    let mut units = UnitSearch::new(&request, machine, &own_stop).keep(results);
                    serve(&receiver, &mut units, &opener);
                })
            }
            PackedRequest::Carve(packed) => {
                let request = packed.request(cores).map_err(CannotStart::Request)?;
                let mut units = UnitCarve::new(&packed, request, results, own_stop);
                threads::alone("units", move || serve(&receiver, &mut units, &opener))
            }
            PackedRequest::Judge(packed) => {
                // Other units run beside it.
                let request = packed.request(1).map_err(CannotStart::Request)?;
                let units = JudgeUnits::new(&request, results);
                let mut units = UnitJudge { request, units, stop: own_stop };
                threads::alone("units", move || serve(&receiver, &mut units, &opener))
            }
            PackedRequest::Query(packed) => {
                let mut units = UnitQuery::new(&packed, results, cores, own_stop)
                    .map_err(CannotStart::Request)?;
                threads::alone("units", move || serve(&receiver, &mut units, &opener))
            }
        };
        match started {
            Ok(_) => Ok(Runner { work: sender, stop }),
            Err(error) => Err(CannotStart::Thread(format!("no thread to work in: {error}"))),
        }
    }
}

fn serve(receiver: &Receiver<Work>, units: &mut dyn RunUnits, opener: &Opener) {
    for work in receiver {
        work(units, opener);
    }
}

impl RunUnits for UnitSearch<'_> {
    fn job(&self) -> &str {
        UnitSearch::job(self)
    }

    fn store(&mut self, source: &mut SourceUnits, unit: &Unit) -> Result<Stored, Error> {
        UnitSearch::store(self, source, unit).map(|(stored, _)| stored)
    }

    fn leaves_failed(&self) -> bool {
        false
    }
}

/// Carves sources.
struct UnitCarve {
    request: Carve,
    is_single: bool,
    hint: WhatToTry,
    units: CarveUnits,
    stop: Arc<AtomicBool>,
}

impl UnitCarve {
    fn new(packed: &PackedCarve, request: Carve, results: Results, stop: Arc<AtomicBool>) -> Self {
        let (is_single, hint) = (packed.is_single(), packed.hint());
        let units = CarveUnits::new(&request, is_single, results);
        UnitCarve { request, is_single, hint, units, stop }
    }
}

impl RunUnits for UnitCarve {
    fn job(&self) -> &str {
        self.units.job()
    }

    fn store(&mut self, source: &mut SourceUnits, unit: &Unit) -> Result<Stored, Error> {
        if self.units.object(unit, &mut |_| ())?.is_some() {
            return Ok(Stored::Before);
        }
        let now = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos());
        let attempt = format!("{:x}-{now:x}", std::process::id());
        let request = self.request.attempt(&unit.name, self.is_single, &attempt);
        let carved = self.units.carve(
            &request,
            (source, unit),
            None,
            (&(), self.hint),
            quarrier_cli::machine(),
            &self.stop,
        );
        match carved {
            Ok(carved) if carved.is_stored => Ok(Stored::Now),
            Ok(_) => Ok(Stored::NotKept),
            Err(error) => {
                if let Some(folder) = request.output_folder() {
                    // The client removes it if this fails.
                    let _ = std::fs::remove_dir_all(folder);
                }
                Err(error)
            }
        }
    }

    fn leaves_failed(&self) -> bool {
        true
    }
}

/// Judges the strides of sources.
struct UnitJudge {
    request: Carve,
    units: JudgeUnits,
    stop: Arc<AtomicBool>,
}

impl RunUnits for UnitJudge {
    fn job(&self) -> &str {
        self.units.job()
    }

    fn store(&mut self, source: &mut SourceUnits, unit: &Unit) -> Result<Stored, Error> {
        self.units.store(&self.request, (source, unit), quarrier_cli::machine(), &self.stop)
    }

    fn leaves_failed(&self) -> bool {
        true
    }
}

/// What became of a unit.
pub(crate) enum Ran {
    /// Its object is at the place that all workers reach.
    Stored,
    /// Its object is in this file.
    File(PathBuf),
    Left,
    Failed(String),
}

/// Runs a unit; an error that may pass is a message.
pub(crate) fn run_unit(
    (units, opener): (&mut dyn RunUnits, &Opener),
    task: &Task,
    job: &str,
    (own, is_shared): (&Results, bool),
) -> std::result::Result<Ran, String> {
    if units.job() != job {
        return Ok(Ran::Failed(
            "a worker understands the request differently; use one version".to_string(),
        ));
    }
    let unit = task.unit();
    #[cfg(debug_assertions)]
    for_tests(&unit);
    let at = OsStr::from_bytes(&task.source.at);
    let opened = SourceUnits::of_unit_at(units.view(), &unit, at, opener);
    let stored = opened.and_then(|mut source| units.store(&mut source, &unit));
    match stored {
        Ok(Stored::NotKept) => Ok(Ran::Left),
        Ok(_) if is_shared => Ok(Ran::Stored),
        Ok(_) => Ok(Ran::File(own.path(job, &unit))),
        // The join decides whether the match is in the source.
        Err(Error::Search(quarrier::Error::TooLong { .. })) => Ok(Ran::Left),
        Err(
            error @ Error::Search(quarrier::Error::Remote(_) | quarrier::Error::Stopped { .. }),
        ) => Err(error.to_string()),
        Err(_) if units.leaves_failed() => Ok(Ran::Left),
        Err(error) => Ok(Ran::Failed(error.to_string())),
    }
}

/// Ends this process at the unit whose start or source the environment names, or waits before each unit.
#[cfg(debug_assertions)]
fn for_tests(unit: &Unit) {
    let text = |name: &str| std::env::var(name).ok();
    let number = |name: &str| text(name).and_then(|number| number.parse().ok());
    let is_named = text("QUARRIER_CLUSTER_ENDS_IN").is_some_and(|name| name == unit.source);
    if number("QUARRIER_CLUSTER_ENDS_AT") == Some(unit.range.start) || is_named {
        std::process::abort();
    }
    if let Some(millis) = number("QUARRIER_CLUSTER_WAITS") {
        std::thread::sleep(std::time::Duration::from_millis(millis));
    }
}
