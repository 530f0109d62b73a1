//! What a report says about a machine's ceilings, taken over into its profile.

use super::{ByBlock, ByDepth, ByThreads, Cpu, Disk, MachineProfile, Memory, MountPoint, Network};
use crate::reading::{Area, Reading, Unit};
use crate::report::{Ceilings, Report};

/// Requests of this size are taken for small ones.
const SMALL_BYTES: u64 = 4096;

impl MachineProfile {
    /// Takes over what `report` measured; what it did not measure stays as it was. `mount` is
    /// where the disk's readings were taken; `over_loopback` says that the network's were.
    ///
    /// A reading that was disturbed is used all the same: a plan by a low ceiling is better than
    /// a plan by none, and the next measurement replaces it.
    pub fn update(&mut self, report: &Report, mount: Option<MountPoint>, over_loopback: bool) {
        let ceilings = Ceilings::of(report);
        self.quarrier.clone_from(&report.quarrier);
        let cpu = cpu(report, ceilings);
        if !cpu.flops.is_empty() {
            self.cpu = Some(cpu);
        }
        let mut memory = memory(report, ceilings);
        if !memory.read.is_empty() {
            let kept = self.memory.take().map(|memory| memory.cached_file_read).unwrap_or_default();
            memory.cached_file_read = kept;
            self.memory = Some(memory);
        }
        let cached = by_block(ceilings.disk("sequential read", "warm"));
        if let (Some(memory), false) = (&mut self.memory, cached.is_empty()) {
            memory.cached_file_read = cached;
        }
        if let Some(mount) = mount {
            let disk = disk(report, ceilings, mount);
            if !disk.sequential_read.is_empty() || !disk.random_read.is_empty() {
                self.disks.retain(|held| held.mount.path != disk.mount.path);
                self.disks.push(disk);
            }
        }
        if over_loopback {
            let network = network(report, ceilings);
            if network.tcp_bytes_per_second.is_some() {
                self.network = Some(network);
            }
        }
    }
}

fn cpu(report: &Report, ceilings: Ceilings<'_>) -> Cpu {
    let chains = ceilings.chains("f64");
    let clock = ceilings.best(Area::Cpu, |reading| reading.unit == Unit::Hertz);
    Cpu {
        when: report.when,
        clock_hertz: clock.map(|reading| reading.value).or(report.conditions.clock_before_hertz),
        flops: by_threads(chains, |reading| reading.value),
    }
}

fn memory(report: &Report, ceilings: Ceilings<'_>) -> Memory {
    Memory {
        when: report.when,
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
    let of = |name: &str| ceilings.network(name, "tcp").map(|reading| reading.value);
    Network {
        when: report.when,
        tcp_bytes_per_second: of("throughput"),
        round_trip_seconds: of("round trip"),
    }
}

/// The highest rate for each number of threads, in their order.
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

/// A count among the parameters; 1 where it is not told.
fn count(reading: &Reading, name: &str) -> u32 {
    u32::try_from(crate::report::parameter_count(reading, name)).unwrap_or(u32::MAX)
}
