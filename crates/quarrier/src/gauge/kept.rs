//! Stored measurements: the machine's profile, and beside it the results of recent runs.

use std::path::PathBuf;

use quarrier_gauge::Area;
use quarrier_gauge::profile::{MachineKey, MachineProfile, Repeats, mount_point};
use quarrier_gauge::report::Report;

use super::Gauge;
use crate::Machine;

impl Gauge {
    /// Adds the measurements of `report` to the profile, and returns its path. Failing to store the
    /// profile is not an error, since the user asked for the report.
    pub(super) fn keep(
        &self,
        machine: &Machine,
        report: &Report,
        notices: &mut Vec<String>,
    ) -> Option<PathBuf> {
        let key = MachineKey::of(&report.machine);
        let Some(path) = machine.profile_path(&key) else {
            let why = "neither XDG_CACHE_HOME nor HOME is a folder";
            notices.push(format!("the machine profile was not stored: {why}"));
            return None;
        };
        let old = MachineProfile::load(&path).unwrap_or_else(|error| {
            notices.push(format!("the machine profile is replaced: {error}"));
            None
        });
        let new = || MachineProfile::new(&report.machine);
        let mut profile = old.filter(|old| old.machine == key).unwrap_or_else(new);
        let mount = self.disk().and_then(|folder| mount_point(folder).ok());
        profile.update(report, mount, self.network.peer.is_none());
        match profile.save(&path) {
            Ok(()) => Some(path),
            Err(error) => {
                notices.push(format!("the machine profile was not stored: {error}"));
                None
            }
        }
    }

    /// Marks readings that differ from those of recent runs, and stores this run for the next. If it
    /// cannot be stored, nothing is marked; the profile has already reported the error.
    pub(super) fn hold(&self, machine: &Machine, report: &mut Report, notices: &mut Vec<String>) {
        let key = MachineKey::of(&report.machine);
        let Some(path) = machine.repeats_path(&key) else { return };
        let mut repeats = Repeats::load(&path, &key).unwrap_or_else(|error| {
            notices.push(format!("readings are not compared with earlier runs: {error}"));
            Repeats::new(key)
        });
        let place_of = |area| self.place(area);
        repeats.hold(report, place_of);
        repeats.update(report, place_of);
        // If this fails, storing the profile fails too, and reports it.
        let _ = repeats.save(&path);
    }

    /// The disk or host of an area, unless it is measured on the machine itself.
    fn place(&self, area: Area) -> String {
        match area {
            Area::Disk => mount_point(&self.folder).map(|mount| mount.path).unwrap_or_default(),
            Area::Network => self.network.peer.clone().unwrap_or_default(),
            _ => String::new(),
        }
    }
}
