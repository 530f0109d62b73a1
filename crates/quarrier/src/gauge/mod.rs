//! Gauge: measures the machine's ceilings, and stores them in its profile for planning.
//!
//! ```text
//!  Gauge ──→ areas, one after another ──→ Report ──→ compared with recent runs ──→ Gauged
//!                                            └─────→ the machine's profile, in the cache folder
//! ```

mod kept;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use quarrier_gauge::report::Report;
use quarrier_gauge::trial::Effort;
use quarrier_gauge::{Area, Network, Progress, Request, Sustained};

use crate::{Error, Machine, Result};

/// A request: what to measure, for how long, and where.
///
/// ```
/// use quarrier::{Gauge, Machine};
/// use quarrier_gauge::Area;
///
/// let gauge = Gauge::new().areas(Gauge::areas_named(["cpu"])?).quick(true).runs(Some(1));
/// let gauged = gauge.run(&Machine::unknown(), &mut (), &false.into())?;
/// assert!(gauged.report.readings.iter().all(|reading| reading.area == Area::Cpu));
/// assert!(gauged.report.readings.iter().all(|reading| reading.value > 0.0));
/// // Nothing is kept of a machine without a cache folder.
/// assert_eq!(gauged.profile, None);
/// # Ok::<(), quarrier::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Gauge {
    areas: Vec<Area>,
    quick: bool,
    runs: Option<u32>,
    sustained: Option<Duration>,
    folder: PathBuf,
    network: Network,
}

/// The outcome of a measurement.
#[derive(Debug)]
#[non_exhaustive]
pub struct Gauged {
    /// The readings, and the conditions of the run.
    pub report: Report,
    /// The file of the updated profile; `None` if it could not be stored.
    pub profile: Option<PathBuf>,
    /// Why something could not be stored, a line each.
    pub notices: Vec<String>,
}

/// Minimum number of runs for a reading in a full measurement.
const RUNS: u32 = 3;

impl Default for Gauge {
    fn default() -> Self {
        Gauge {
            areas: Area::ALL.to_vec(),
            quick: false,
            runs: None,
            sustained: None,
            folder: PathBuf::from("."),
            network: Network::default(),
        }
    }
}

impl Gauge {
    /// Creates a request for everything that the machine has, which takes minutes; the disk is that of
    /// the current folder, the network is the loopback.
    pub fn new() -> Self {
        Gauge::default()
    }

    /// The areas with these names, each once; all of them if no name is given.
    ///
    /// # Errors
    /// [`Error::Request`] for an unknown name, with the valid ones.
    pub fn areas_named<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Result<Vec<Area>> {
        let area = |name: N| {
            let name = name.as_ref();
            Area::of(name).ok_or_else(|| {
                let names = Area::ALL.map(Area::name).join(", ");
                Error::Request(format!("no area '{name}'; there are: {names}"))
            })
        };
        let mut areas = names.into_iter().map(area).collect::<Result<Vec<_>>>()?;
        areas.sort_unstable();
        areas.dedup();
        Ok(if areas.is_empty() { Area::ALL.to_vec() } else { areas })
    }

    /// Measures only these areas.
    pub fn areas(mut self, areas: Vec<Area>) -> Self {
        self.areas = areas;
        self
    }

    /// Measures only what planning needs: all areas in less than 30 seconds.
    pub fn quick(mut self, quick: bool) -> Self {
        self.quick = quick;
        self
    }

    /// The minimum number of runs for each reading; `None` for 3. Readings that differ get more.
    pub fn runs(mut self, runs: Option<u32>) -> Self {
        self.runs = runs;
        self
    }

    /// Measures the rates that the disk sustains instead of its other readings: writes for this time, then
    /// reads for as long. The file takes at most a quarter of the free space. The disk must be the only
    /// area; a quick measurement takes 10 s at most for each.
    pub fn sustained(mut self, time: Option<Duration>) -> Self {
        self.sustained = time;
        self
    }

    /// Measures the disk of this folder.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// The address of another gauge that listens; `None` to measure the loopback.
    pub fn peer(mut self, peer: Option<String>) -> Self {
        self.network.peer = peer;
        self
    }

    /// The congestion control of TCP, by its name in the kernel; `None` for the system's default.
    pub fn congestion(mut self, name: Option<String>) -> Self {
        self.network.congestion = name;
        self
    }

    /// Measures, marks readings that differ from those of recent runs, and adds them to the profile of
    /// `machine` if it has a cache folder. `progress` is called for each reading.
    ///
    /// # Errors
    /// [`Error::Gauge`] for an impossible request, an invalid folder, a wrong result, an error of the system, or if `stop`
    /// became true before the end.
    pub fn run(
        &self,
        machine: &Machine,
        progress: &mut dyn Progress,
        stop: &AtomicBool,
    ) -> Result<Gauged> {
        self.check_folder()?;
        let mut report = quarrier_gauge::measure(&self.request(), progress, stop)?;
        let mut notices = Vec::new();
        self.hold(machine, &mut report, &mut notices);
        let profile = self.keep(machine, &report, &mut notices);
        Ok(Gauged { report, profile, notices })
    }

    /// Reports an impossible measurement before minutes are spent.
    fn check_folder(&self) -> Result<()> {
        if !self.measures(Area::Disk) || self.folder.is_dir() {
            return Ok(());
        }
        let folder = self.folder.display();
        Err(Error::Request(format!(
            "{folder}: is not a folder; name one on the disk to be measured"
        )))
    }

    fn measures(&self, area: Area) -> bool {
        self.areas.contains(&area)
    }

    fn request(&self) -> Request {
        let mut request = match self.quick {
            true => Request::quick(&self.folder),
            false => Request::full(&self.folder, self.runs.unwrap_or(RUNS)),
        };
        if let Some(runs) = self.runs {
            let most_runs = request.effort.most_runs.max(runs);
            request.effort = Effort { runs, most_runs, ..request.effort };
        }
        let sustained = |time| Sustained { time, file_bytes_max: u64::MAX };
        request.sustained = self.sustained.map(sustained);
        request.areas.clone_from(&self.areas);
        request.network = self.network.clone();
        request
    }

    fn disk(&self) -> Option<&Path> {
        self.measures(Area::Disk).then_some(&*self.folder)
    }
}
