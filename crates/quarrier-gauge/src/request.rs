//! The measurements that the caller requests.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::reading::Area;
use crate::trial::{Effort, Team};

/// The number of visits to each subject, if its readings have more than one run.
const VISITS: u32 = 2;
/// The maximum time of each stream of a quick measurement.
const QUICK_SUSTAINED_MAX: Duration = Duration::from_secs(10);

/// A request: the areas to measure, and how.
#[derive(Debug, Clone)]
pub struct Request {
    /// The parts of the machine.
    pub areas: Vec<Area>,
    /// How long and how often to measure.
    pub effort: Effort,
    /// Whether to make only the measurements for the profile: all areas in under 30 s.
    pub quick: bool,
    /// A folder on the disk to measure.
    pub path: PathBuf,
    /// The rates that the disk sustains, instead of its other readings: long streams exhaust what would
    /// make other readings fast. The disk must be the only area.
    pub sustained: Option<Sustained>,
    /// The path of the network measurements.
    pub network: Network,
    /// The numbers of threads to measure with, in order.
    pub threads: Vec<usize>,
}

/// A request for the rates that a disk sustains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sustained {
    /// The time of writing, and that of reading.
    pub time: Duration,
    /// The maximum size of the file in bytes; it also takes at most a quarter of the free space.
    pub file_bytes_max: u64,
}

/// A path through the network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Network {
    /// The address of another gauge, `host:port` or `host`; `None` to measure the loopback of this
    /// machine.
    pub peer: Option<String>,
    /// The congestion control of TCP, by its name in the kernel; `None` for the system's default.
    pub congestion: Option<String>,
}

impl Request {
    /// Requests everything for a report, with at least `runs` runs; files are created in `path`.
    pub fn full(path: impl Into<PathBuf>, runs: u32) -> Request {
        Request {
            areas: Area::ALL.to_vec(),
            effort: Effort::full(runs),
            quick: false,
            path: path.into(),
            sustained: None,
            network: Network::default(),
            threads: powers(2 * cpus()),
        }
    }

    /// Requests the measurements for the profile.
    pub fn quick(path: impl Into<PathBuf>) -> Request {
        let full = Request::full(path, 3);
        Request { effort: Effort::quick(), quick: true, threads: powers(cpus()), ..full }
    }
}

impl Request {
    /// The number of visits to each subject.
    pub(crate) fn visits(&self) -> u32 {
        if self.sustained.is_some() { 1 } else { VISITS.min(self.effort.runs) }
    }

    /// Returns an error for areas that cannot be measured together, and for too long a time.
    pub(crate) fn check(&self) -> Result<()> {
        let Some(sustained) = &self.sustained else { return Ok(()) };
        let refuse = |text: String| Err(Error::BadRequest(text));
        if self.areas != [Area::Disk] {
            return refuse("sustained rates are of disks: name the area disk, and no other".into());
        }
        if self.quick && sustained.time > QUICK_SUSTAINED_MAX {
            let most = QUICK_SUSTAINED_MAX.as_secs();
            return refuse(format!("a quick measurement sustains a rate for {most} s at most"));
        }
        Ok(())
    }
}

fn cpus() -> usize {
    Team::here().map_or(1, |team| team.cpus())
}

/// Returns 1, 2, 4, 8 … up to `most`, and `most` itself.
fn powers(most: usize) -> Vec<usize> {
    let mut threads: Vec<usize> = std::iter::successors(Some(1), |count| Some(count * 2))
        .take_while(|&count| count < most)
        .collect();
    threads.push(most.max(1));
    threads
}
