//! The engine of all measurements: threads that start together on their own CPUs, trials that are
//! dropped when the threads lost their CPUs, and repeats until the median is known.
//!
//! ```text
//!  Team::prepare ─→ a state for each thread, its memory touched by the thread itself
//!  series: warm-up ─→ Team::run ─→ Trial ─→ kept, or dropped: a CPU was taken
//!                        ↑            │
//!                        └────────────┘  until the interval is narrow, or patience is out
//!  long run: Windows, each with its rate ─→ Series, from the last change of the rate on
//!  Session: the Series of each visit to a subject, joined ─→ Reading
//! ```

mod gate;
mod progress;
mod series;
mod session;
mod team;
mod visits;
mod windows;

use std::time::Duration;

pub use progress::Progress;
pub use series::{Needs, series};
pub use session::Session;
pub use team::Team;
pub(crate) use visits::Datagrams;
pub use visits::Series;
pub(crate) use windows::Windows;

/// A trial whose threads got less of their CPU than this is dropped.
pub const CPU_SHARE_MIN: f64 = 0.985;

/// A trial is dropped if one of its cores, right before or after it, reached less than this share of
/// the best multiply-adds per cycle of as many cores, or if its value was below this share of the best
/// trial of its reading. Sharing a core, a cache or the memory with others makes a trial slower, never
/// faster.
pub const CORE_SHARE_MIN: f64 = 0.93;

/// A trial is dropped if its threads ran together for less than this share of it.
pub const OVERLAP_MIN: f64 = 0.8;

/// The work of one thread in a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ThreadWork {
    /// The number of units: operations, bytes, loads.
    pub units: f64,
    /// A sum of the values computed, read or received. The caller compares it, so the compiler cannot
    /// remove the work.
    pub check: u64,
}

/// One run of all threads.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trial {
    /// The time from the first thread's start to the last one's end, in seconds.
    pub seconds: f64,
    /// The work of all threads.
    pub units: f64,
    /// Each thread's check value.
    pub checks: Vec<u64>,
    /// The smallest share of its time that a CPU gave to the threads pinned to it.
    pub cpu_share: f64,
    /// The share of the trial in which all threads ran; 1 if there are more threads than CPUs.
    pub overlap: f64,
    /// The mean clock right before and after the trial, in Hz; 0 if not measured.
    pub clock_hertz: f64,
    /// The number of CPUs that its threads ran on.
    pub cores: usize,
    /// Fused multiply-adds per cycle of the slowest core, right before or after; 0 if not measured.
    pub fused_per_cycle: f64,
}

impl Trial {
    /// Units per second.
    pub fn rate(&self) -> f64 {
        self.units / self.seconds
    }

    /// Whether its threads had all of their cores; `most_fused_per_cycle` is the best rate of such
    /// a core.
    fn had_its_cores(&self, most_fused_per_cycle: f64) -> bool {
        self.cpu_share >= CPU_SHARE_MIN
            && self.overlap >= OVERLAP_MIN
            && self.fused_per_cycle >= CORE_SHARE_MIN * most_fused_per_cycle
    }
}

/// How long and how often to measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Effort {
    /// The minimum number of runs to keep.
    pub runs: u32,
    /// The maximum number of runs.
    pub most_runs: u32,
    /// The time of the warm-up, whose runs are discarded.
    pub warm_up: Duration,
    /// The planned time of a run.
    pub trial: Duration,
    /// The maximum time of a reading, unless it has fewer than `runs` runs by then.
    pub patience: Duration,
    /// A reading is done when the interval of its median reaches no further than this share on either
    /// side.
    pub narrow: f64,
}

impl Effort {
    /// Returns the share of one of `visits`, if earlier ones kept `missing` runs fewer than planned.
    fn of_one(&self, visits: u32, missing: u32) -> Effort {
        let runs = (self.runs.div_ceil(visits) + missing).min(self.runs);
        Effort {
            runs,
            most_runs: self.most_runs.div_ceil(visits).max(runs),
            warm_up: self.warm_up / visits,
            patience: self.patience / visits,
            ..self.clone()
        }
    }

    /// The effort for the profile: 3 runs of 15 ms.
    pub fn quick() -> Effort {
        Effort {
            runs: 3,
            most_runs: 5,
            warm_up: Duration::from_millis(5),
            trial: Duration::from_millis(15),
            patience: Duration::from_millis(150),
            narrow: 0.02,
        }
    }

    /// The effort for a report of hundreds of readings: at least `runs` (one or more) of 30 ms.
    pub fn full(runs: u32) -> Effort {
        Effort {
            warm_up: Duration::from_millis(30),
            trial: Duration::from_millis(30),
            patience: Duration::from_millis(600),
            ..Effort::alone(runs)
        }
    }

    /// The effort for a single, careful reading: at least `runs` (one or more) of 60 ms.
    pub fn alone(runs: u32) -> Effort {
        let runs = runs.max(1);
        Effort {
            runs,
            most_runs: runs.max(25),
            warm_up: Duration::from_millis(60),
            trial: Duration::from_millis(60),
            patience: Duration::from_millis(1_500),
            narrow: 0.01,
        }
    }

    /// The same effort for disks and networks, whose response times vary more than the speed of a CPU, and
    /// whose queues take time to fill.
    pub(crate) fn for_answers(&self) -> Effort {
        Effort {
            warm_up: Duration::from_millis(1),
            trial: (self.trial * 10 / 3).max(Duration::from_millis(100)),
            patience: self.patience.max(Duration::from_millis(300)),
            narrow: self.narrow.max(0.02),
            ..self.clone()
        }
    }
}
