//! Updates a machine's profile from a report.

use super::{
    ByBlock, ByDepth, ByThreads, Cpu, Disk, Gpu, MachineProfile, Memory, MountPoint, Network,
    is_old,
};
use crate::reading::{Area, Reading, Unit};
use crate::report::{Ceilings, Report};

/// Requests of this size count as small ones.
const SMALL_BYTES: u64 = 4096;

impl MachineProfile {
    /// Updates the profile with the readings of `report`; the others stay. `mount` is the place of the
    /// disk's measurements; `over_loopback` says whether the network readings are of the loopback.
    ///
    /// A disturbed reading does not replace an undisturbed one that is not stale. If there is no other,
    /// it is stored: planning with too low a ceiling is better than planning without one.
    pub fn update(&mut self, report: &Report, mount: Option<MountPoint>, over_loopback: bool) {
        let ceilings = Ceilings::of(report);
        self.quarrier.clone_from(&report.quarrier);
        let cpu = cpu(report, ceilings);
        let held = self.cpu.as_ref().map(|held| (held.when, held.disturbed));
        if !cpu.flops.is_empty() && is_better((cpu.when, cpu.disturbed), held) {
            self.cpu = Some(cpu);
        }
        self.update_memory(report, ceilings);
        if let Some(mount) = mount {
            let disk = disk(report, ceilings, mount);
            let held = self.disks.iter().find(|held| held.mount == disk.mount);
            let held = held.map(|held| (held.when, held.disturbed));
            let has_any = !disk.sequential_read.is_empty() || !disk.random_read.is_empty();
            if has_any && is_better((disk.when, disk.disturbed), held) {
                self.disks.retain(|held| held.mount.path != disk.mount.path);
                self.disks.push(disk);
            }
        }
        let network = network(report, ceilings);
        let held = self.network.as_ref().map(|held| (held.when, held.disturbed));
        let has_any = over_loopback && network.tcp_bytes_per_second.is_some();
        if has_any && is_better((network.when, network.disturbed), held) {
            self.network = Some(network);
        }
        for gpu in gpus(report, ceilings) {
            let held = self.gpus.iter().find(|held| held.device == gpu.device);
            let held = held.map(|held| (held.when, held.disturbed));
            if is_better((gpu.when, gpu.disturbed), held) {
                self.gpus.retain(|held| held.device != gpu.device);
                self.gpus.push(gpu);
            }
        }
    }

    /// Updates main memory, and files in the page cache, whose readings belong to the disk.
    fn update_memory(&mut self, report: &Report, ceilings: Ceilings<'_>) {
        let mut memory = memory(report, ceilings);
        let held = self.memory.as_ref().map(|held| (held.when, held.disturbed));
        if !memory.read.is_empty() && is_better((memory.when, memory.disturbed), held) {
            let kept = self.memory.take().map(|memory| memory.cached_file_read);
            memory.cached_file_read = kept.unwrap_or_default();
            self.memory = Some(memory);
        }
        let cached = by_block(ceilings.disk("sequential read", "warm"));
        if let (Some(memory), false) = (&mut self.memory, cached.is_empty()) {
            memory.cached_file_read = cached;
        }
    }
}

/// Whether a reading with this time and disturbance may replace the stored one.
fn is_better(new: (u64, bool), held: Option<(u64, bool)>) -> bool {
    held.is_none_or(|(when, disturbed)| !new.1 || disturbed || is_old(when, new.0))
}

fn cpu(report: &Report, ceilings: Ceilings<'_>) -> Cpu {
    let chains = ceilings.chains("f64");
    let disturbed = ceilings.chains("f64").any(|reading| reading.disturbed);
    let clock = ceilings.best(Area::Cpu, |reading| reading.measurement == "dependent add");
    Cpu {
        when: report.when,
        disturbed,
        clock_hertz: clock.map(|reading| reading.value).or(report.conditions.clock_before_hertz),
        flops: by_threads(chains, |reading| reading.value),
    }
}

fn memory(report: &Report, ceilings: Ceilings<'_>) -> Memory {
    let mut used = ceilings.main_memory("read").chain(ceilings.main_memory("copy"));
    Memory {
        when: report.when,
        disturbed: used.any(|reading| reading.disturbed),
        read: by_threads(ceilings.main_memory("read"), |reading| reading.value),
        copy: by_threads(ceilings.main_memory("copy"), |reading| reading.value),
        cached_file_read: Vec::new(),
        latency_seconds: ceilings.latency().map(|reading| reading.value),
    }
}

fn disk(report: &Report, ceilings: Ceilings<'_>, mount: MountPoint) -> Disk {
    let small = || {
        let random = ceilings.disk("random read", "direct");
        random.filter(|reading| reading.parameters.integer("block_bytes") == Some(SMALL_BYTES))
    };
    let alone =
        small().find(|reading| (count(reading, "depth"), count(reading, "threads")) == (1, 1));
    let waited = alone.map(|reading| match &reading.percentiles {
        Some(percentiles) => percentiles.p50,
        None => 1.0 / reading.value,
    });
    Disk {
        mount,
        when: report.when,
        disturbed: ceilings
            .disk("sequential read", "direct")
            .chain(small())
            .any(|reading| reading.disturbed),
        sequential_read: by_block(ceilings.disk("sequential read", "direct")),
        random_read: small()
            .map(|reading| ByDepth {
                depth: count(reading, "depth"),
                threads: count(reading, "threads"),
                per_second: reading.value,
            })
            .collect(),
        latency_seconds: waited,
    }
}

fn network(report: &Report, ceilings: Ceilings<'_>) -> Network {
    let of = |name: &str| ceilings.network(name, "tcp");
    let (throughput, round_trip) = (of("throughput"), of("round trip"));
    Network {
        when: report.when,
        disturbed: throughput.iter().chain(&round_trip).any(|reading| reading.disturbed),
        tcp_bytes_per_second: throughput.map(|reading| reading.value),
        round_trip_seconds: round_trip.map(|reading| reading.value),
    }
}

/// Returns each device whose transfer from the host was measured.
fn gpus(report: &Report, ceilings: Ceilings<'_>) -> Vec<Gpu> {
    let of = |device: &str, name: &str| {
        ceilings.best(Area::Gpu, |r| {
            r.measurement == name
                && r.parameters.text("device") == Some(device)
                && r.parameters.text("memory") != Some("pageable")
        })
    };
    let mut names: Vec<&str> =
        ceilings.all(Area::Gpu, |_| true).filter_map(|r| r.parameters.text("device")).collect();
    names.sort_unstable();
    names.dedup();
    let gpu = |name: &str| {
        let (way, read) = (of(name, "host to device")?, of(name, "read"));
        Some(Gpu {
            device: name.to_owned(),
            driver: way.parameters.text("driver").unwrap_or_default().to_owned(),
            when: report.when,
            disturbed: way.disturbed || read.is_some_and(|read| read.disturbed),
            host_to_device: way.value,
            memory_read: read.map(|read| read.value),
        })
    };
    names.into_iter().filter_map(gpu).collect()
}

/// Returns the highest rate for each number of threads, in order.
fn by_threads<'r>(
    readings: impl Iterator<Item = &'r Reading>,
    rate: impl Fn(&Reading) -> f64,
) -> Vec<ByThreads> {
    let mut rates: Vec<ByThreads> = Vec::new();
    for reading in readings {
        let (threads, per_second) = (count(reading, "threads"), rate(reading));
        match rates.iter_mut().find(|held| held.threads == threads) {
            Some(held) => held.per_second = held.per_second.max(per_second),
            None => rates.push(ByThreads { threads, per_second }),
        }
    }
    rates.sort_by_key(|rate| rate.threads);
    rates
}

fn by_block<'r>(readings: impl Iterator<Item = &'r Reading>) -> Vec<ByBlock> {
    let mut rates: Vec<ByBlock> = readings
        .filter(|reading| reading.unit == Unit::BytesPerSecond)
        .filter_map(|reading| {
            Some(ByBlock {
                block_bytes: reading.parameters.integer("block_bytes")?,
                threads: count(reading, "threads"),
                depth: count(reading, "depth"),
                bytes_per_second: reading.value,
            })
        })
        .collect();
    rates.sort_by_key(|rate| (rate.block_bytes, rate.threads, rate.depth));
    rates
}

/// Returns a count among the parameters; 1 if it is missing.
fn count(reading: &Reading, name: &str) -> u32 {
    u32::try_from(crate::report::parameter_count(reading, name)).unwrap_or(u32::MAX)
}
