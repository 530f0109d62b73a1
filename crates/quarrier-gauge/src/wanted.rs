//! What the caller wants measured, and who hears of it.

use std::path::PathBuf;

use crate::reading::{Area, Parameters, Reading};
use crate::trial::{Effort, Team};

/// Which areas, how, and where.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The parts of the machine.
    pub areas: Vec<Area>,
    /// How long and how often.
    pub effort: Effort,
    /// Only what the profile needs: all areas in under 30 s.
    pub quick: bool,
    /// A folder on the disk that is measured.
    pub path: PathBuf,
    /// Over which path the network is measured.
    pub network: Network,
    /// How many threads, one after the other.
    pub threads: Vec<usize>,
}

/// Over which path the network is measured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Network {
    /// Where another gauge listens, `host:port` or `host`; without one the loopback of this machine
    /// is measured.
    pub peer: Option<String>,
    /// The congestion control of TCP, by its name in the kernel; else the system's own.
    pub congestion: Option<String>,
}

impl Wanted {
    /// Everything, for a report, with at least `runs` runs; files are made in `path`.
    pub fn full(path: impl Into<PathBuf>, runs: u32) -> Wanted {
        Wanted {
            areas: Area::ALL.to_vec(),
            effort: Effort::full(runs),
            quick: false,
            path: path.into(),
            network: Network::default(),
            threads: powers(2 * cpus()),
        }
    }

    /// What the profile needs.
    pub fn quick(path: impl Into<PathBuf>) -> Wanted {
        let full = Wanted::full(path, 3);
        Wanted { effort: Effort::quick(), quick: true, threads: powers(cpus()), ..full }
    }
}

fn cpus() -> usize {
    Team::here().map_or(1, |team| team.cpus())
}

/// 1, 2, 4, 8 … up to `most`, and `most` itself.
fn powers(most: usize) -> Vec<usize> {
    let mut threads: Vec<usize> = std::iter::successors(Some(1), |count| Some(count * 2))
        .take_while(|&count| count < most)
        .collect();
    threads.push(most.max(1));
    threads
}

/// Hears how the measurement goes. Nothing need be done with it.
pub trait Progress {
    /// Visit `number` of `of` begins, counted from 1: each measures all that is wanted.
    fn visit(&mut self, number: u32, of: u32) {
        let _ = (number, of);
    }

    /// A measurement begins.
    fn begin(&mut self, area: Area, measurement: &str, parameters: &Parameters) {
        let _ = (area, measurement, parameters);
    }

    /// A measurement is done for this visit; the reading is that of all visits so far.
    fn reading(&mut self, reading: &Reading) {
        let _ = reading;
    }
}

/// Nobody listens.
impl Progress for () {}
