//! What the last runs found, beside the profile: a reading that does not repeat is marked.

use std::path::Path;

use quarrier_gauge::Area;
use quarrier_gauge::profile::{MachineKey, Repeats, mount_point};
use quarrier_gauge::report::Report;

use crate::args::Measure;
use crate::complain;
use crate::host;

/// Marks what runs a short while ago found different, and keeps what this one found for the next.
/// Where nothing can be kept nothing is marked; what the profile says of that need not be said twice.
pub(super) fn hold(measure: &Measure, report: &mut Report, quiet: bool) {
    let key = MachineKey::of(&report.machine);
    let Some(path) =
        host::environment().cache_folder().map(|folder| folder.join(key.repeats_file_name()))
    else {
        return;
    };
    let mut repeats = Repeats::load(&path, &key).unwrap_or_else(|error| {
        if !quiet {
            complain(&format!("nothing is held against earlier runs: {error}"));
        }
        Repeats::new(key)
    });
    let place_of = |area| place(measure, area);
    repeats.hold(report, place_of);
    repeats.update(report, place_of);
    // Where this fails the profile beside it fails, too, and says so.
    let _ = repeats.save(&path);
}

/// What an area is measured on, where that is not the machine itself.
fn place(measure: &Measure, area: Area) -> String {
    let mounted_at = |path: &Path| Some(mount_point(path).ok()?.path);
    match area {
        Area::Disk => mounted_at(&measure.path).unwrap_or_default(),
        Area::Network => measure.connect.clone().unwrap_or_default(),
        _ => String::new(),
    }
}
