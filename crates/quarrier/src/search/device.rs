//! Chooses where to search: the CPU, devices, or both.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use quarrier_core::parallel::planned_workers;
use quarrier_core::pipeline::{Access, Pipeline};
use quarrier_core::source::Source;
use quarrier_gpu::{Device, DeviceChoice, Kind};
use quarrier_search::{GpuSearcher, Sample, Searcher};

use super::{Planning, Search};
use crate::machine::now;
use crate::{Ceiling, Machine, Result};

/// Smaller sources are searched on the CPU before a device has started.
const AUTO_BYTES_MIN: u64 = 256 << 20;
/// The share of the transfer rate to a device that a search is expected to reach.
const STREAM_SHARE: f64 = 0.85;

/// The devices that search, and their settings.
pub(super) struct OnDevices {
    pub(super) searcher: GpuSearcher,
    /// The label in `--stats`: `gpu:0`, `cpu+gpu:0`.
    pub(super) label: String,
    /// The names of the devices.
    pub(super) names: Vec<String>,
    /// The names that the drivers report.
    device_names: Vec<String>,
    /// The number of CPUs that take chunks from the same queue.
    cpu_workers: usize,
}

/// The device that is expected to be faster than the CPU, by measurements of both: the transfer rate to
/// the device from `quarrier gauge gpu`, and the CPU engine's rate over the sample. Devices that are
/// the CPU itself, or were not measured, do not qualify. The error is the reason why no device
/// qualifies.
fn faster(
    search: &Search,
    machine: &Machine,
    searcher: &Searcher,
    sample: Option<&Sample>,
    length: u64,
) -> std::result::Result<(usize, Device), &'static str> {
    if length < AUTO_BYTES_MIN {
        return Err("the source is smaller than 256 MiB");
    }
    let profile = machine.profile().ok_or("the machine has no profile; run 'quarrier gauge'")?;
    let best = profile
        .gpus
        .iter()
        .filter(|gpu| !gpu.is_stale(now()))
        .max_by(|a, b| a.host_to_device.total_cmp(&b.host_to_device))
        .ok_or("the profile has no GPU measured in the last 30 days; run 'quarrier gauge gpu'")?;
    let bytes = sample.ok_or("the source could not be sampled")?.bytes();
    let start = Instant::now();
    searcher.find_all(bytes).map_err(|_| "the sample could not be searched")?;
    let of_one = bytes.len() as f64 / start.elapsed().as_secs_f64().max(1e-9);
    let of_all = of_one * planned_workers(search.planning.workers) as f64;
    let reads = profile.memory.as_ref().map_or(&[][..], |memory| &memory.read);
    let of_memory = reads.iter().map(|read| read.per_second).reduce(f64::max);
    if STREAM_SHARE * best.host_to_device <= of_all.min(of_memory.unwrap_or(f64::INFINITY)) {
        return Err("the CPUs or the memory are faster than the transfer to the GPU");
    }
    let found = machine.devices().into_iter().enumerate().find(|(_, device)| {
        let facts = device.facts();
        facts.name == best.device && facts.kind != Kind::Cpu
    });
    found.ok_or("the GPU of the profile is not found")
}

/// The requested devices, with the set compiled for them; `None` if the CPU does all the work.
///
/// # Errors
/// If the device does not exist or cannot take the set, or `stop` became true.
pub(super) fn choose(
    search: &Search,
    machine: &Machine,
    searcher: &Arc<Searcher>,
    (sample, length): (Option<&Sample>, u64),
    stop: &AtomicBool,
) -> Result<Option<OnDevices>> {
    let requested = search.device;
    let chosen = match requested {
        DeviceChoice::Cpu => return Ok(None),
        DeviceChoice::Auto => match faster(search, machine, searcher, sample, length) {
            Ok((index, device)) => {
                tracing::info!(device = %device.facts(), "searching on gpu:{index}");
                vec![(index, device)]
            }
            Err(reason) => {
                tracing::info!(reason, "no GPU is used");
                return Ok(None);
            }
        },
        _ => requested.choose(machine.devices()).map_err(quarrier_search::Error::Device)?,
    };
    let devices: Vec<Device> = chosen.iter().map(|(_, device)| device.clone()).collect();
    let slots = match search.planning.buffers {
        0 => devices.iter().map(GpuSearcher::usual_slots).max().unwrap_or(1),
        slots => slots,
    };
    let on_devices = match sample {
        Some(sample) => searcher.on_devices(&devices, slots, sample, stop),
        None => searcher.on_devices(&devices, slots, &Sample::default(), stop),
    };
    let on_devices = on_devices?;
    let cpu_workers = match requested {
        DeviceChoice::All => planned_workers(search.planning.workers),
        _ => 0,
    };
    let mut labels: Vec<String> =
        (cpu_workers > 0).then(|| "cpu".to_string()).into_iter().collect();
    labels.extend(chosen.iter().map(|(index, _)| format!("gpu:{index}")));
    Ok(Some(OnDevices {
        searcher: on_devices,
        label: labels.join("+"),
        names: devices.iter().map(|device| device.facts().to_string()).collect(),
        device_names: devices.iter().map(|device| device.facts().name.clone()).collect(),
        cpu_workers,
    }))
}

impl OnDevices {
    /// The pipeline with the workers and buffers that the devices need.
    pub(super) fn pipeline<'p>(
        &self,
        planning: &Planning,
        pipeline: Pipeline<'p>,
        source: Option<&dyn Source>,
        length: u64,
    ) -> Pipeline<'p> {
        let (cpu_workers, buffer_bytes) = (self.cpu_workers, planning.buffer_bytes);
        let mut pipeline = self.searcher.planned(pipeline, cpu_workers, buffer_bytes, length);
        // A device cannot use pages of a file as its memory: slots read them into their own.
        if planning.access.is_none() && source.is_some_and(|source| source.is_resident()) {
            pipeline = pipeline.access(Access::Read);
        }
        pipeline
    }

    /// The ceiling of a run: the measured transfer rate to the devices, if it is below the ceiling of
    /// the source.
    pub(super) fn ceiling(&self, machine: &Machine, of_source: Option<Ceiling>) -> Option<Ceiling> {
        let profile = machine.profile().filter(|_| self.cpu_workers == 0);
        let rates = profile.map_or(&[][..], |profile| &profile.gpus).iter();
        let ours = rates.filter(|gpu| self.device_names.contains(&gpu.device));
        let way: f64 = ours.map(|gpu| gpu.host_to_device).sum();
        if way > 0.0 && of_source.is_none_or(|source| way < source.bytes_per_second) {
            return Some(Ceiling { of: "gpu copy", bytes_per_second: way });
        }
        of_source
    }

    /// The engines in use, with those of the CPU if it does a part.
    pub(super) fn engine_name(&self) -> String {
        self.searcher.engine_name(self.cpu_workers > 0)
    }
}
