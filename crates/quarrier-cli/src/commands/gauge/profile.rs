//! Where the machine profile lies, and how a run adds to it.

use std::path::PathBuf;

use quarrier_gauge::Area;
use quarrier_gauge::profile::{MachineKey, MachineProfile, mount_point};
use quarrier_gauge::report::Report;

use crate::args::Measure;
use crate::{complain, host};

/// Adds what `report` measured to the profile, and says where that is. A profile that cannot be
/// kept is no failure: the report is what was asked for.
pub(super) fn keep(measure: &Measure, report: &Report, quiet: bool) -> Option<PathBuf> {
    let key = MachineKey::of(&report.machine);
    let note = |text: &str| {
        if !quiet {
            complain(text);
        }
    };
    let Some(path) = host::machine().profile_path(&key) else {
        note("the machine profile is not kept: neither XDG_CACHE_HOME nor HOME is a folder");
        return None;
    };
    let old = MachineProfile::load(&path).unwrap_or_else(|error| {
        note(&format!("the machine profile is made anew: {error}"));
        None
    });
    let new = || MachineProfile::new(&report.machine);
    let mut profile = old.filter(|old| old.machine == key).unwrap_or_else(new);
    let mount = match measure.areas.contains(&Area::Disk) {
        true => mount_point(&measure.path).ok(),
        false => None,
    };
    profile.update(report, mount, measure.connect.is_none());
    match profile.save(&path) {
        Ok(()) => Some(path),
        Err(error) => {
            note(&format!("the machine profile is not kept: {error}"));
            None
        }
    }
}
