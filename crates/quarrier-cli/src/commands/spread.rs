//! `--cluster`: workers of a cluster run the units, and this process joins their rows.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier::source::is_remote;
use quarrier::{Opener, Sources};
use quarrier_core::name;
use quarrier_units::{Error, Incoming, Results, SourceUnits, Unit};

use crate::cluster::{Answer, Cluster, ClusterJob};

/// Maximum number of units of a run on a cluster.
const UNITS_MAX: usize = 2_000_000;

/// The sizes of units that are not chosen by the user.
const UNIT_BYTES_MIN: u64 = 16 << 20;
const UNIT_BYTES_MAX: u64 = 1 << 30;

/// The number of units that such sizes aim at.
const UNITS_WANTED: u64 = 64;

/// What became of the units.
#[derive(Debug, Default)]
pub(super) struct Distributed {
    /// The units that workers refuse.
    pub(super) refused: Vec<Unit>,
    /// The number of units that they ran.
    pub(super) ran: u64,
}

/// A run that is spread over a cluster.
pub(super) struct Spread<'s> {
    pub(super) cluster: &'s dyn Cluster,
    pub(super) at: &'s str,
    /// The name of the job.
    pub(super) job: &'s str,
    pub(super) request: Vec<u8>,
    pub(super) to: Option<&'s OsStr>,
    pub(super) results: &'s Results,
    pub(super) has: &'s HasObject<'s>,
}

/// Whether a unit has an object.
pub(super) type HasObject<'h> = dyn Fn(&Unit) -> Result<bool, Error> + 'h;

impl Spread<'_> {
    /// Lets the cluster run all units that have no object.
    ///
    /// # Errors
    /// A message for the user.
    pub(super) fn run(
        self,
        (sources, opener): (&Sources, &Opener),
        (range, unit_bytes): (&std::ops::Range<u64>, u64),
        stop: &AtomicBool,
    ) -> Result<Distributed, String> {
        let units = units_of((sources, opener), (range, unit_bytes), stop)?;
        match stop.load(Ordering::Relaxed) {
            true => Ok(Distributed::default()),
            false => self.run_units(units, stop),
        }
    }

    /// Lets the cluster run those of these units that have no object.
    ///
    /// # Errors
    /// A message for the user.
    pub(super) fn run_units(
        self,
        all: Vec<Unit>,
        stop: &AtomicBool,
    ) -> Result<Distributed, String> {
        let mut units = Vec::new();
        for unit in all {
            if !(self.has)(&unit).map_err(|error| error.to_string())? {
                let name = absolute_name(&unit.name)?;
                units.push((unit, name));
            }
        }
        if units.is_empty() {
            return Ok(Distributed::default());
        }
        let job = ClusterJob { name: self.job, request: self.request, to: self.to, units };
        let mut receiving = Receiving {
            results: self.results,
            job: job.name,
            units: &job.units,
            open: BTreeMap::new(),
            distributed: Distributed::default(),
        };
        self.cluster
            .run(self.at, &job, stop, &mut |index, answer| receiving.take(index, answer))?;
        Ok(receiving.distributed)
    }
}

/// The units of all sources that can be opened, in order. The join reports the other sources.
///
/// # Errors
/// If there are too many.
pub(super) fn units_of(
    (sources, opener): (&Sources, &Opener),
    (range, unit_bytes): (&std::ops::Range<u64>, u64),
    stop: &AtomicBool,
) -> Result<Vec<Unit>, String> {
    let mut units = Vec::new();
    for named in sources.iter() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let Ok(source) = SourceUnits::open(named, opener, range, unit_bytes) else { continue };
        if source.len() > (UNITS_MAX - units.len()) as u64 {
            return Err(format!(
                "{}: makes more than {UNITS_MAX} units in total; raise --unit-size",
                source.name()
            ));
        }
        units.extend(source.units());
    }
    Ok(units)
}

/// Stores the objects that workers send.
struct Receiving<'r> {
    results: &'r Results,
    job: &'r str,
    units: &'r [(Unit, OsString)],
    /// The objects of which only the first parts have come.
    open: BTreeMap<usize, Incoming>,
    distributed: Distributed,
}

impl Receiving<'_> {
    fn take(&mut self, index: usize, answer: Answer<'_>) -> Result<(), String> {
        let message = |error: quarrier_units::Error| error.to_string();
        let (unit, _) = self.units.get(index).ok_or("a worker answered for an unknown unit")?;
        match answer {
            Answer::Part { is_first, bytes, is_last } => {
                if is_first {
                    let incoming = self.results.receive(self.job, unit).map_err(message)?;
                    self.open.insert(index, incoming);
                }
                let incoming = self.open.get_mut(&index).ok_or("a worker left out a part")?;
                incoming.write(bytes).map_err(message)?;
                if is_last && let Some(incoming) = self.open.remove(&index) {
                    incoming.finish().map_err(message)?;
                    self.distributed.ran += 1;
                }
            }
            Answer::Stored => self.distributed.ran += 1,
            Answer::Left => {}
            Answer::Refused => self.distributed.refused.push(unit.clone()),
        }
        Ok(())
    }
}

/// The name by which a process in any folder finds a source.
///
/// # Errors
/// A message for the user.
pub fn absolute_name(name: &OsStr) -> Result<OsString, String> {
    if is_remote(&name.to_string_lossy()) {
        return Ok(name.to_os_string());
    }
    let path = std::path::absolute(name::path_of(name));
    path.map(PathBuf::into_os_string).map_err(|error| format!("{}: {error}", name::of_path(name)))
}

/// The place for objects as every worker finds it.
///
/// # Errors
/// A message for the user.
pub(super) fn absolute_place(to: &OsStr) -> Result<OsString, String> {
    absolute_name(to)
}

/// A size for units of these sources: large enough to cost little each, small enough for all workers to have
/// some.
pub(super) fn unit_bytes(
    sources: &Sources,
    opener: &Opener,
    range: &std::ops::Range<u64>,
    stop: &AtomicBool,
) -> u64 {
    let mut total: u64 = 0;
    for named in sources.iter() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let source = SourceUnits::open(named, opener, range, u64::MAX);
        total = total.saturating_add(source.map_or(0, |source| source.bytes()));
    }
    unit_bytes_for(total)
}

/// A size for units of sources that have `total` bytes together.
pub fn unit_bytes_for(total: u64) -> u64 {
    // For tests, in which files are small.
    #[cfg(debug_assertions)]
    {
        let number = |name: &str| -> Option<u64> { std::env::var(name).ok()?.parse().ok() };
        if let Some(size) = number("QUARRIER_CLUSTER_UNIT") {
            return size;
        }
    }
    (total / UNITS_WANTED).next_multiple_of(1 << 20).clamp(UNIT_BYTES_MIN, UNIT_BYTES_MAX)
}

/// A folder of this process, removed when dropped.
pub(super) struct OwnFolder(PathBuf);

impl OwnFolder {
    /// Creates a folder for temporary objects.
    ///
    /// # Errors
    /// A message for the user.
    pub(super) fn new() -> Result<Self, String> {
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos());
        let name = format!("quarrier-cluster-{}-{now}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let created = DirBuilder::new().mode(0o700).create(&path);
        created
            .map_err(|error| format!("{}: cannot create this folder: {error}", path.display()))?;
        Ok(OwnFolder(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        // A folder that stays takes space, but does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
