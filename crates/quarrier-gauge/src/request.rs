//! The measurements that the caller requests.

use std::path::PathBuf;

use crate::reading::Area;
use crate::trial::{Effort, Team};

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
    /// The path of the network measurements.
    pub network: Network,
    /// The numbers of threads to measure with, in order.
    pub threads: Vec<usize>,
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
