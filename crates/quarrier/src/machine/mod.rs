//! This machine: its profile, if `quarrier gauge` has measured one, and its devices.

mod ceiling;

pub use ceiling::Ceiling;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use quarrier_core::name;
use quarrier_core::pipeline::{AccessRate, Rates};
use quarrier_core::source::Source;
use quarrier_gauge::conditions::Machine as Conditions;
use quarrier_gauge::profile::{ByBlock, Disk, MachineKey, MachineProfile, mount_point};
use quarrier_gpu::{Cache, Device};

use crate::Environment;

/// This machine, for planning runs and comparing them with its ceiling. Clones share the loaded
/// profile.
///
/// The profile is loaded when a run first needs it. [`Machine::unknown`] has none, so every run on it
/// is planned by a trial.
#[derive(Clone, Default)]
#[must_use]
pub struct Machine {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    cache_folder: Option<PathBuf>,
    profile: OnceLock<Option<MachineProfile>>,
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let folder = &self.inner.cache_folder;
        f.debug_struct("Machine").field("cache_folder", folder).finish_non_exhaustive()
    }
}

impl Machine {
    /// Creates a machine with the profile in the cache folder of the environment.
    pub fn of(environment: &Environment) -> Self {
        let cache_folder = environment.cache_folder().cloned();
        Machine { inner: Arc::new(Inner { cache_folder, profile: OnceLock::new() }) }
    }

    /// Creates a machine without measurements.
    pub fn unknown() -> Self {
        Machine::default()
    }

    /// Creates a machine with this profile.
    #[cfg(test)]
    fn with_profile(profile: MachineProfile) -> Self {
        let profile = OnceLock::from(Some(profile));
        Machine { inner: Arc::new(Inner { cache_folder: None, profile }) }
    }

    /// The path of the profile of the machine `key`, whether or not it exists. `None` without a cache
    /// folder.
    pub fn profile_path(&self, key: &MachineKey) -> Option<PathBuf> {
        Some(self.inner.cache_folder.as_ref()?.join(key.file_name()))
    }

    /// The path of the results of recent measurements of the machine `key`.
    pub(crate) fn repeats_path(&self, key: &MachineKey) -> Option<PathBuf> {
        Some(self.inner.cache_folder.as_ref()?.join(key.repeats_file_name()))
    }

    /// The profile; `None` if it is missing or stale.
    pub fn profile(&self) -> Option<&MachineProfile> {
        let load = || {
            self.inner.cache_folder.as_ref()?;
            let key = MachineKey::of(&Conditions::detect());
            // An unreadable profile counts as missing: `quarrier gauge` reports its error.
            let profile = MachineProfile::load(&self.profile_path(&key)?).ok()??;
            profile.stale(&key, now()).is_none().then_some(profile)
        };
        self.inner.profile.get_or_init(load).as_ref()
    }

    /// All devices that [`quarrier_gpu::find`] finds. Kernels compiled for them are kept in the cache
    /// folder, unless their drivers have a cache.
    pub fn devices(&self) -> Vec<Device> {
        let folder = self.inner.cache_folder.as_ref();
        quarrier_gpu::find_with(folder.map(|folder| Cache::at(folder.join("kernels"))).as_ref())
    }

    /// The measured rates of the disk on which a source lies.
    fn disk_of(&self, source: &dyn Source) -> Option<&Disk> {
        let disk = self.profile()?.disk(&mount_point(&name::path_of(source.name())).ok()?)?;
        Some(disk).filter(|disk| !disk.is_stale(now()) && !disk.sequential_read.is_empty())
    }

    /// The rates for planning a run over `range` of `source`: `None` if no byte has to be fetched; else
    /// from the profile of its disk, or from a trial of at most a second.
    pub fn rates(&self, source: &dyn Source, range: &Range<u64>) -> Option<Rates> {
        if source.is_resident() {
            return None;
        }
        match self.disk_of(source) {
            Some(disk) => Some(rates_of(disk)),
            None => Rates::probe(source, range.clone()),
        }
    }
}

fn rates_of(disk: &Disk) -> Rates {
    let asked = disk.sequential_read.iter().filter_map(|rate: &ByBlock| {
        Some(AccessRate {
            block_bytes: usize::try_from(rate.block_bytes).ok()?,
            in_flight: rate.threads.saturating_mul(rate.depth) as usize,
            bytes_per_second: rate.bytes_per_second,
        })
    });
    Rates { asked: asked.collect(), of: format!("the disk at {}", disk.mount.path) }
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
