//! Results of recent runs, for comparison with the next one.
//!
//! As long as a process runs, its memory may have a better or worse placement, or its virtual machine
//! another neighbour: all its runs then agree, and differ from those of the next process. Only another
//! process can reveal that.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::MachineKey;
use super::file::{bad, read, write};
use crate::error::Result;
use crate::reading::{Area, Reading, Subject};
use crate::report::Report;

/// Maximum age of results for a comparison: an hour.
pub const REPEATS_WITHIN_SECONDS: u64 = 3600;

/// Values repeat if they differ by no more than this share of the smaller one.
const DIFFER_MIN: f64 = 0.05;
/// Maximum size of the file.
const FILE_BYTES_MOST: u64 = 16 << 20;

/// The readings of the last runs on one machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeats {
    machine: MachineKey,
    readings: Vec<Earlier>,
}

/// An undisturbed reading of an earlier run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Earlier {
    /// The start of the run, in seconds since 1970.
    when: u64,
    /// The mount point of a disk, or the other end of a network; empty for parts of the machine itself.
    place: String,
    #[serde(flatten)]
    subject: Subject,
    value: f64,
}

impl Repeats {
    /// Creates an empty set for this machine.
    pub fn new(machine: MachineKey) -> Repeats {
        Repeats { machine, readings: Vec::new() }
    }

    /// Reads the results of `machine` from the file at `path`; empty if the file is missing, or the
    /// machine has changed since.
    ///
    /// # Errors
    /// If the file cannot be read, or has another format.
    pub fn load(path: &Path, machine: &MachineKey) -> Result<Repeats> {
        let none = || Repeats::new(machine.clone());
        let Some(bytes) = read(path, FILE_BYTES_MOST)? else { return Ok(none()) };
        let found: Repeats = serde_json::from_slice(&bytes).map_err(|error| {
            bad(path, &format!("does not hold results of earlier runs: {error}"))
        })?;
        Ok(if found.machine == *machine { found } else { none() })
    }

    /// Writes the results to `path`, replacing any file there, and creates the folders above it.
    ///
    /// # Errors
    /// The operating system's error; no partial file is left behind.
    pub fn save(&self, path: &Path) -> Result<()> {
        write(path, self)
    }

    /// Marks otherwise undisturbed readings of `report` as disturbed if a run in the preceding hour
    /// gave a value that differs by more than 5 %. `place_of` names the object of an area's
    /// measurements, unless that is the machine itself.
    pub fn hold(&self, report: &mut Report, place_of: impl Fn(Area) -> String) {
        for reading in &mut report.readings {
            let place = place_of(reading.area);
            let is_same = |earlier: &&Earlier| {
                earlier.is_of(reading, &place) && earlier.is_recent(report.when)
            };
            let Some(earlier) = self.readings.iter().find(is_same) else { continue };
            let (low, high) = (reading.value.min(earlier.value), reading.value.max(earlier.value));
            if reading.disturbed || high <= low * (1.0 + DIFFER_MIN) {
                continue;
            }
            let ago = report.when - earlier.when;
            let unit = reading.unit.name();
            reading.notes.insert(0, format!("a run {ago} s before: {:.3e} {unit}", earlier.value));
            reading.earlier_value = Some(earlier.value);
            reading.disturbed = true;
            reading.conditions.disturbed = true;
            report.conditions.disturbed += 1;
        }
    }

    /// Stores the undisturbed readings of `report`, replacing earlier ones, and drops results that are
    /// too old.
    pub fn update(&mut self, report: &Report, place_of: impl Fn(Area) -> String) {
        self.readings.retain(|earlier| earlier.is_recent(report.when));
        for reading in &report.readings {
            if reading.is_disturbed_itself() || !reading.value.is_normal() {
                continue;
            }
            let place = place_of(reading.area);
            self.readings.retain(|earlier| !earlier.is_of(reading, &place));
            let subject = reading.subject();
            self.readings.push(Earlier { when: report.when, place, subject, value: reading.value });
        }
    }
}

impl Earlier {
    fn is_of(&self, reading: &Reading, place: &str) -> bool {
        self.place == place && self.subject == reading.subject()
    }

    /// A result from the future is not recent: a wrong clock may have produced it.
    fn is_recent(&self, now: u64) -> bool {
        now.checked_sub(self.when).is_some_and(|ago| ago <= REPEATS_WITHIN_SECONDS)
    }
}
