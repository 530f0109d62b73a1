//! The readings that say what a part of the machine can do at most: what the page tells first, the
//! roofline draws, and the profile keeps.

use super::Report;
use crate::reading::{Area, Reading, Unit};

/// Looks for ceilings in a report. Where one was not measured, it is missing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ceilings<'r> {
    report: &'r Report,
}

/// A level of memory, from the nearest on; the last is main memory.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Level<'r> {
    /// `L1`, `L2` … `memory`.
    pub(crate) name: String,
    /// The highest rate of reading there.
    pub(crate) reading: &'r Reading,
}

/// Blocks of so many times the last cache lie in main memory.
const BEYOND_CACHES: u64 = 2;

impl<'r> Ceilings<'r> {
    pub(crate) fn of(report: &'r Report) -> Self {
        Ceilings { report }
    }

    /// All readings of an area that `fits`.
    pub(crate) fn all(
        self,
        area: Area,
        fits: impl Fn(&Reading) -> bool,
    ) -> impl Iterator<Item = &'r Reading> {
        let some = self.report.readings.iter();
        some.filter(move |r| r.area == area && r.value.is_finite() && r.value > 0.0 && fits(r))
    }

    /// The best of them.
    pub(crate) fn best(self, area: Area, fits: impl Fn(&Reading) -> bool) -> Option<&'r Reading> {
        self.all(area, fits).reduce(|a, b| {
            let is_better =
                if a.unit.less_is_better() { b.value < a.value } else { b.value > a.value };
            if is_better { b } else { a }
        })
    }

    /// The most floating-point operations a second with numbers of this kind, as chains of
    /// instructions reach them.
    pub(crate) fn arithmetic(self, kind: &str) -> Option<&'r Reading> {
        self.best(Area::Cpu, |r| is_chain(r) && r.parameters.text("type") == Some(kind))
    }

    /// The product of matrices of this kind.
    pub(crate) fn product(self, kind: &str) -> Option<&'r Reading> {
        self.best(Area::Cpu, |r| {
            r.unit == Unit::FlopPerSecond && !is_chain(r) && r.parameters.text("type") == Some(kind)
        })
    }

    /// The kinds of numbers whose arithmetic was measured.
    pub(crate) fn kinds(self) -> Vec<&'r str> {
        let mut kinds: Vec<&str> =
            self.all(Area::Cpu, is_chain).filter_map(|r| r.parameters.text("type")).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// Readings of `measurement` in order, in main memory.
    pub(crate) fn main_memory(self, measurement: &str) -> impl Iterator<Item = &'r Reading> {
        let beyond = self.report.machine.last_cache_bytes().saturating_mul(BEYOND_CACHES);
        self.all(Area::Memory, move |r| {
            is_in_order(r, measurement) && set_bytes(r).is_some_and(|bytes| bytes >= beyond)
        })
    }

    /// The highest rate of `measurement` in main memory.
    pub(crate) fn memory(self, measurement: &str) -> Option<&'r Reading> {
        self.main_memory(measurement).max_by(|a, b| a.value.total_cmp(&b.value))
    }

    /// Seconds for a load from main memory that waits for the one before: over the largest set,
    /// with ordinary pages where both were measured.
    pub(crate) fn latency(self) -> Option<&'r Reading> {
        let some = || self.all(Area::Memory, |r| r.unit == Unit::Seconds && set_bytes(r).is_some());
        let largest = some().filter_map(set_bytes).max()?;
        some().filter(|r| set_bytes(r) == Some(largest)).max_by(|a, b| a.value.total_cmp(&b.value))
    }

    /// The rate of reading at each level of memory that was measured.
    pub(crate) fn levels(self) -> Vec<Level<'r>> {
        let mut levels = Vec::new();
        let mut above = 0;
        for cache in &self.report.machine.caches {
            // Well inside this cache, well outside of the one before.
            let (from, to) = (above + above / 2, cache.bytes * 3 / 4);
            let inside = |r: &Reading| {
                is_in_order(r, "read") && set_bytes(r).is_some_and(|b| b > from && b <= to)
            };
            if let Some(reading) = self.best(Area::Memory, inside) {
                levels.push(Level { name: format!("L{}", cache.level), reading });
            }
            above = cache.bytes;
        }
        if let Some(reading) = self.memory("read") {
            levels.push(Level { name: "memory".to_string(), reading });
        }
        levels
    }

    /// Requests of the disk with this name and way past or through the page cache, in a closed
    /// loop.
    pub(crate) fn disk(self, name: &str, cache: &str) -> impl Iterator<Item = &'r Reading> {
        self.all(Area::Disk, move |r| {
            r.measurement == name && r.parameters.text("cache") == Some(cache)
        })
    }
}

/// Chains of instructions; a product of matrices computes too, but not only.
fn is_chain(reading: &Reading) -> bool {
    reading.unit == Unit::FlopPerSecond && !reading.measurement.contains("product")
}

fn is_in_order(reading: &Reading, measurement: &str) -> bool {
    reading.unit == Unit::BytesPerSecond
        && reading.measurement == measurement
        && reading.parameters.text("access").is_none_or(|access| access == "sequential")
}

/// Over how many bytes a reading of memory went.
fn set_bytes(reading: &Reading) -> Option<u64> {
    let names = ["working_set_bytes", "set_bytes", "block_bytes"];
    names.into_iter().find_map(|name| reading.parameters.integer(name))
}
