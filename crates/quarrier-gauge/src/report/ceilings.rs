//! The readings that bound a part of the machine: the page's headline, the lines of the roofline, and
//! the contents of the profile.

use super::Report;
use crate::conditions::Cache;
use crate::reading::{Area, Reading, Unit};

/// Finds ceilings in a report; those that were not measured are missing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ceilings<'r> {
    report: &'r Report,
}

/// A level of memory, the nearest first; the last is main memory.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Level<'r> {
    /// `L1`, `L2` … `memory`.
    pub(crate) name: String,
    /// The reading with the highest read rate of the level.
    pub(crate) reading: &'r Reading,
}

/// Arrays larger than the last cache by this factor count as main memory, and so do those of this size.
const BEYOND_CACHES: u64 = 4;
const BEYOND_CACHES_BYTES: u64 = 1 << 30;

impl<'r> Ceilings<'r> {
    pub(crate) fn of(report: &'r Report) -> Self {
        Ceilings { report }
    }

    /// All readings of an area that satisfy `fits`.
    pub(crate) fn all(
        self,
        area: Area,
        fits: impl Fn(&Reading) -> bool,
    ) -> impl Iterator<Item = &'r Reading> {
        let some = self.report.readings.iter();
        some.filter(move |r| r.area == area && r.value.is_finite() && r.value > 0.0 && fits(r))
    }

    /// The best of these readings.
    pub(crate) fn best(self, area: Area, fits: impl Fn(&Reading) -> bool) -> Option<&'r Reading> {
        self.all(area, fits).reduce(|a, b| {
            let is_better =
                if a.unit.less_is_better() { b.value < a.value } else { b.value > a.value };
            if is_better { b } else { a }
        })
    }

    /// The highest rate of floating-point operations with numbers of this type, in chains of
    /// instructions.
    pub(crate) fn arithmetic(self, kind: &str) -> Option<&'r Reading> {
        self.comparable(self.chains(kind))
    }

    /// The best of `readings` that have the number of threads of the other ceilings, or else of all.
    fn comparable(self, readings: impl Iterator<Item = &'r Reading>) -> Option<&'r Reading> {
        let all: Vec<&Reading> = readings.collect();
        let cpus = u64::from(self.report.machine.cpus);
        let threads = self.common_threads().unwrap_or(cpus);
        let best = |readings: &mut dyn Iterator<Item = &'r Reading>| {
            readings.max_by(|a, b| a.value.total_cmp(&b.value))
        };
        let mut same = all.iter().copied().filter(|r| count(r, "threads") == threads);
        best(&mut same).or_else(|| best(&mut all.iter().copied()))
    }

    /// The theoretical maximum of the design with numbers of this type at the measured clock, on this many
    /// threads.
    pub(crate) fn theoretical(self, kind: &str, threads: u64) -> Option<&'r Reading> {
        self.best(Area::Cpu, |r| {
            r.measurement == "theoretical peak"
                && r.parameters.text("type") == Some(kind)
                && count(r, "threads") == threads
        })
    }

    /// The number of threads at which both arithmetic and memory were measured, so that one drawing can have
    /// both: the most that have a CPU each, or else the least.
    pub(crate) fn common_threads(self) -> Option<u64> {
        let reads = || self.all(Area::Memory, |r| is_sweep(r, "read"));
        let both = |chain: &&Reading| {
            reads().any(|read| count(read, "threads") == count(chain, "threads"))
        };
        let mut common: Vec<u64> = self
            .all(Area::Cpu, is_chain)
            .filter(both)
            .map(|chain| count(chain, "threads"))
            .collect();
        common.sort_unstable();
        let cpus = u64::from(self.report.machine.cpus);
        let fitting = common.iter().rev().find(|threads| **threads <= cpus);
        fitting.or(common.first()).copied()
    }

    /// Readings of instruction chains that multiply and add numbers of this type.
    pub(crate) fn chains(self, kind: &str) -> impl Iterator<Item = &'r Reading> {
        self.all(Area::Cpu, move |r| is_chain(r) && r.parameters.text("type") == Some(kind))
    }

    /// The product of matrices of this type.
    pub(crate) fn product(self, kind: &str) -> Option<&'r Reading> {
        self.comparable(self.all(Area::Cpu, move |r| {
            r.measurement == "matrix product" && r.parameters.text("type") == Some(kind)
        }))
    }

    /// The number types whose arithmetic was measured.
    pub(crate) fn kinds(self) -> Vec<&'r str> {
        let mut kinds: Vec<&str> =
            self.all(Area::Cpu, is_chain).filter_map(|r| r.parameters.text("type")).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// Readings of `measurement`, in any variant, in main memory.
    pub(crate) fn main_memory(self, measurement: &str) -> impl Iterator<Item = &'r Reading> {
        self.all(Area::Memory, move |r| is_sweep(r, measurement) && self.is_beyond_caches(r))
    }

    /// Whether the reading used more bytes than the caches hold.
    pub(crate) fn is_beyond_caches(self, reading: &Reading) -> bool {
        let last = self.report.machine.last_cache_bytes();
        let beyond = last.saturating_mul(BEYOND_CACHES).min(BEYOND_CACHES_BYTES);
        reading.parameters.integer("block_bytes").is_some_and(|bytes| bytes >= beyond)
    }

    /// The highest rate of `measurement` in main memory.
    pub(crate) fn memory(self, measurement: &str) -> Option<&'r Reading> {
        self.comparable(self.main_memory(measurement))
    }

    /// Latency of a dependent load from main memory, in seconds: over the largest set, on the slower
    /// type of pages.
    pub(crate) fn latency(self) -> Option<&'r Reading> {
        let bytes = |reading: &Reading| reading.parameters.integer("block_bytes");
        let some = || self.all(Area::Memory, |r| r.measurement == "latency");
        let largest = some().filter_map(bytes).max()?;
        some().filter(|r| bytes(r) == Some(largest)).max_by(|a, b| a.value.total_cmp(&b.value))
    }

    /// The read rate of this many threads at each measured level of memory.
    pub(crate) fn levels(self, threads: u64) -> Vec<Level<'r>> {
        let machine = &self.report.machine;
        let mut levels = Vec::new();
        let mut above = None;
        for cache in &machine.caches {
            let inside = |r: &Reading| {
                // Well inside the combined caches of this level, and well outside of those of the level
                // before.
                let most = together(cache, threads, machine.cpus) / 4 * 3;
                let least = above.map_or(0, |above| {
                    together(above, threads, machine.cpus).saturating_mul(3) / 2
                });
                is_sweep(r, "read")
                    && count(r, "threads") == threads
                    && r.parameters.integer("block_bytes").is_some_and(|b| b > least && b <= most)
            };
            if let Some(reading) = self.best(Area::Memory, inside) {
                levels.push(Level { name: format!("L{}", cache.level), reading });
            }
            above = Some(cache);
        }
        let main = self.main_memory("read").filter(|r| count(r, "threads") == threads);
        if let Some(reading) = main.max_by(|a, b| a.value.total_cmp(&b.value)) {
            levels.push(Level { name: "memory".to_string(), reading });
        }
        levels
    }

    /// Closed-loop messages with this protocol.
    pub(crate) fn network(self, name: &str, protocol: &str) -> Option<&'r Reading> {
        self.best(Area::Network, |r| {
            r.measurement == name
                && r.parameters.text("protocol").is_some_and(|p| p.eq_ignore_ascii_case(protocol))
                && r.parameters.text("load") != Some("offered")
        })
    }

    /// Disk requests with this name, through the page cache or not, in a closed loop.
    pub(crate) fn disk(self, name: &str, cache: &str) -> impl Iterator<Item = &'r Reading> {
        self.all(Area::Disk, move |r| {
            r.measurement == name && r.parameters.text("cache") == Some(cache)
        })
    }
}

/// A count among the parameters; 1 if it is missing.
pub(crate) fn count(reading: &Reading, name: &str) -> u64 {
    reading.parameters.integer(name).unwrap_or(1).max(1)
}

/// The combined size of all caches like this one that `threads` threads have, each on its own CPU.
fn together(cache: &Cache, threads: u64, cpus: u32) -> u64 {
    let there = u64::from(cpus.div_ceil(cache.shared_by.max(1))).max(1);
    cache.bytes.saturating_mul(threads.min(there))
}

fn is_chain(reading: &Reading) -> bool {
    reading.measurement == "multiply-add" && reading.unit == Unit::FlopPerSecond
}

/// Whether this is `measurement` or, for `read`, its variant with several streams.
fn is_sweep(reading: &Reading, measurement: &str) -> bool {
    let rest = reading.measurement.strip_prefix(measurement);
    reading.unit == Unit::BytesPerSecond
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" in "))
}
