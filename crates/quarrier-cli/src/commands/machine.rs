//! What is known of this machine: its profile, where `quarrier gauge` has measured one.

use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use quarrier_core::pipeline::{Asked, Rates};
use quarrier_core::source::Source;
use quarrier_gauge::conditions::Machine;
use quarrier_gauge::profile::{ByBlock, Disk, MachineKey, MachineProfile, mount_point};
use quarrier_gpu::{Cache, Device};

use super::gauge::profile;

/// The profile, if there is one that is not stale.
pub(in crate::commands) fn known() -> Option<&'static MachineProfile> {
    static PROFILE: OnceLock<Option<MachineProfile>> = OnceLock::new();
    let load = || {
        let key = MachineKey::of(&Machine::detect());
        // One that cannot be read is as none: `quarrier gauge` says what is wrong with it.
        let profile = MachineProfile::load(&profile::path(&key)?).ok()??;
        profile.stale(&key, now()).is_none().then_some(profile)
    };
    PROFILE.get_or_init(load).as_ref()
}

/// All devices, as `quarrier_gpu::find` has them; what is compiled for them is kept in the user's
/// cache folder where their drivers keep nothing.
pub(in crate::commands) fn devices() -> Vec<Device> {
    let cache = profile::cache_folder().map(|folder| Cache::at(folder.join("kernels")));
    quarrier_gpu::find_with(cache.as_ref())
}

/// What the disk gives on which a source lies, where that was measured.
pub(in crate::commands) fn disk_of(source: &dyn Source) -> Option<&'static Disk> {
    let disk = known()?.disk(&mount_point(Path::new(source.name())).ok()?)?;
    Some(disk).filter(|disk| !disk.is_stale(now()) && !disk.sequential_read.is_empty())
}

/// What a run over `range` of `source` is to be planned by: nothing, where no byte has to be
/// fetched; else the profile of its disk, or a trial of at most a second.
pub(in crate::commands) fn rates(source: &dyn Source, range: &Range<u64>) -> Option<Rates> {
    if source.is_resident() {
        return None;
    }
    match disk_of(source) {
        Some(disk) => Some(rates_of(disk)),
        None => Rates::probe(source, range.clone()),
    }
}

fn rates_of(disk: &Disk) -> Rates {
    let asked = disk.sequential_read.iter().filter_map(|rate: &ByBlock| {
        Some(Asked {
            block_bytes: usize::try_from(rate.block_bytes).ok()?,
            in_flight: rate.threads.saturating_mul(rate.depth) as usize,
            bytes_per_second: rate.bytes_per_second,
        })
    });
    Rates { asked: asked.collect(), of: format!("the disk at {}", disk.mount.path) }
}

/// Seconds since 1970.
pub(in crate::commands) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
