//! Searches for literals and hex patterns on devices; the CPU searches for the rest of the set.
//!
//! ```text
//!  worker 0 … n-1: slots of devices
//!   chunk ─→ copy ─→ kernel ─→ collect ─┐
//!                  + on the CPU: regexes, needles without an anchor ──────┼─→ findings in order
//!  worker n …    : CPUs, by the engine of the set ────────────────────────┘
//! ```
//!
//! A slot is a worker like any other: it takes a chunk from the same queue, waits for its device,
//! and submits the findings. While one slot reads its bytes, another uploads a chunk, and a third
//! searches. A slot whose device fails searches its chunk, and all later ones, on the CPU.

mod lane;
mod tables;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use quarrier_core::pipeline::{Chunk, Emitter, Kernel, Need, Pipeline, Stage};
use quarrier_core::region::{AlignedBuffer, PAGE_BYTES};
use quarrier_core::sync::lock;
use quarrier_gpu::{Device, Kind};

use crate::error::{Error, Result};
use crate::sample::Sample;
use crate::searcher::{ChunkFindings, CpuPart, Searcher};
use crate::wanted::Wanted;
use lane::{Lane, Searched, Site};
use tables::Tables;

pub(crate) use tables::Rest;

/// A set compiled for devices: a pipeline kernel to use in place of its [`Searcher`], with the
/// searcher's sink.
pub struct GpuSearcher {
    searcher: Arc<Searcher>,
    tables: Tables,
    sites: Vec<(Site, Health)>,
    lanes: Vec<Mutex<Lane>>,
}

/// Whether a device still works, and the error otherwise.
#[derive(Default)]
struct Health {
    is_lost: AtomicBool,
    why: Mutex<Option<String>>,
}

impl Searcher {
    /// Compiles the set for devices, with `slots` slots on each. The first `slots` × devices
    /// workers of a run are slots, the others are CPUs.
    ///
    /// Compiles a kernel, which takes up to some seconds unless the device's driver has it in its
    /// cache.
    ///
    /// # Errors
    /// [`Error::Device`] if a device cannot compile or hold the set, [`Error::Stopped`] if `stop`
    /// became true.
    pub fn on_devices(
        self: &Arc<Self>,
        devices: &[Device],
        slots: usize,
        sample: &Sample,
        stop: &AtomicBool,
    ) -> Result<GpuSearcher> {
        let wanted = Wanted::until(stop);
        let tables = Tables::new(self.needles(), sample, wanted)?;
        let mut sites = Vec::new();
        for device in devices {
            wanted.check()?;
            sites.push((Site::new(device, &tables).map_err(Error::Device)?, Health::default()));
        }
        // Round-robin, so that the first workers are spread over all devices.
        let mut lanes = Vec::new();
        for _ in 0..slots.max(1) {
            for (site, _) in &sites {
                lanes.push(Mutex::new(Lane::new(site).map_err(Error::Device)?));
            }
        }
        Ok(GpuSearcher { searcher: Arc::clone(self), tables, sites, lanes })
    }
}

/// Slots of a device: one is filled, one copied, one searched.
const GPU_SLOTS: usize = 3;
/// A CPU device searches with all of its threads, and filling the next slot takes one of them: two
/// to four slots were not faster than one (see docs/gpu.md).
const CPU_SLOTS: usize = 1;
/// The buffer size of a slot: large for a device with a launch per chunk, smaller for one that
/// works in the caches of the CPU.
const GPU_BUFFER_BYTES: usize = 16 << 20;
const CPU_BUFFER_BYTES: usize = 4 << 20;

impl GpuSearcher {
    /// Returns the number of slots that was measured to be fastest on this type of device.
    pub fn usual_slots(device: &Device) -> usize {
        match device.facts().kind {
            Kind::Cpu => CPU_SLOTS,
            Kind::Gpu | Kind::Accelerator => GPU_SLOTS,
        }
    }

    /// Returns the buffer size of a slot of such a device, in bytes.
    pub fn usual_buffer_bytes(device: &Device) -> usize {
        match device.facts().kind {
            Kind::Cpu => CPU_BUFFER_BYTES,
            Kind::Gpu | Kind::Accelerator => GPU_BUFFER_BYTES,
        }
    }

    /// Returns the number of slots of all devices; each takes the place of one worker of a run.
    pub fn slots(&self) -> usize {
        self.lanes.len()
    }

    /// Sets up `pipeline` for a run over `length` bytes, with `cpu_workers` CPUs besides the slots:
    /// workers, buffers, and, if `buffer_bytes` is 0, their size.
    pub fn planned<'p>(
        &self,
        pipeline: Pipeline<'p>,
        cpu_workers: usize,
        buffer_bytes: usize,
        length: u64,
    ) -> Pipeline<'p> {
        let slots = self.slots();
        // Even a small source is divided among the slots.
        let share = || {
            let usual = self.sites.iter().map(|(site, _)| Self::usual_buffer_bytes(&site.device));
            let usual = usual.max().unwrap_or(CPU_BUFFER_BYTES) as u64;
            (((length / (4 * slots as u64)).min(usual) & !0xFFFF) as usize).max(1 << 16)
        };
        pipeline
            .workers(slots + cpu_workers)
            // A slot that waits for its turn holds a buffer, and CPUs finish theirs out of order.
            .buffers(slots + 2 * cpu_workers)
            .buffer_bytes(if buffer_bytes == 0 { share() } else { buffer_bytes })
    }

    /// Returns the names of the engines in use, including the CPU's if it does a part.
    pub fn engine_name(&self, has_cpu_workers: bool) -> String {
        let searcher = &self.searcher;
        let is_all_here = self.needles() == searcher.needle_count()
            && searcher.patterns().iter().all(|pattern| !pattern.is_regex());
        if is_all_here && !has_cpu_workers {
            return "gpu-gram".to_string();
        }
        format!("gpu-gram+{}", searcher.engine_name())
    }

    /// Returns the number of needles that the devices search for; the CPU searches for the others.
    pub fn needles(&self) -> usize {
        self.tables.count
    }

    /// Allocates a buffer that the first device reads fast, or one in plain memory if the device
    /// has none left.
    pub fn buffer(&self, bytes: usize) -> AlignedBuffer {
        let Some((site, _)) = self.sites.first() else { return AlignedBuffer::new(bytes) };
        match site.device.pinned(bytes) {
            Ok(pinned) if pinned.as_ptr().addr().is_multiple_of(PAGE_BYTES) => {
                AlignedBuffer::lent(Box::new(pinned))
            }
            _ => AlignedBuffer::new(bytes),
        }
    }

    /// Returns the devices that have failed, each with its error.
    pub fn lost(&self) -> Vec<String> {
        self.sites.iter().filter_map(|(_, health)| lock(&health.why).clone()).collect()
    }

    /// Returns the slot of a worker, and its device; `None` for a CPU, or if the device has failed.
    fn lane(&self, worker: usize) -> Option<(&Mutex<Lane>, &Site, &Health)> {
        let lane = self.lanes.get(worker)?;
        let (site, health) = &self.sites[worker % self.sites.len()];
        (!health.is_lost.load(Ordering::Relaxed)).then_some((lane, site, health))
    }

    /// Returns the device's findings in a chunk; `None` if the CPU has to search it.
    fn search(&self, chunk: &Chunk<'_>, emit: &mut Emitter<'_, ChunkFindings>) -> Option<()> {
        let (lane, site, health) = self.lane(emit.worker())?;
        let mut lane = lock(lane);
        let searched = match lane.search(site, &self.tables, chunk) {
            Ok(searched) => searched,
            Err(error) => {
                if !health.is_lost.swap(true, Ordering::Relaxed) {
                    *lock(&health.why) = Some(error.to_string());
                }
                return None;
            }
        };
        let needles = self.searcher.needles();
        let findings = lane.findings(searched.count?).map(|(start, needle)| {
            let needle = needles.get(needle);
            crate::Finding {
                offset: chunk.offset + start as u64,
                pattern: needle.pattern,
                length: needle.len() as u32,
            }
        });
        let collected = Instant::now();
        self.searcher.work_on(
            chunk,
            emit,
            &CpuPart::Remainder(self.tables.rest.as_ref()),
            findings,
        );
        note(emit, &searched, collected, chunk.own.len() as u64);
        Some(())
    }
}

/// Records the parts of the work on the timeline.
fn note(
    emit: &mut Emitter<'_, ChunkFindings>,
    searched: &Searched,
    collected: Instant,
    bytes: u64,
) {
    let Searched { started, times, .. } = searched;
    // The device's clock and ours start at slightly different times.
    let at = |since| (*started + since).min(collected);
    emit.note(Stage::Copy, at(times.copy.start), at(times.copy.end), bytes);
    emit.note(Stage::Kernel, at(times.kernel.start), at(times.kernel.end), bytes);
    emit.note(Stage::Collect, at(times.collect.start), collected, 0);
    // The CPU's part; its bytes are counted with the kernel's.
    emit.note(Stage::Work, collected, Instant::now(), 0);
}

impl Kernel for GpuSearcher {
    type Output = ChunkFindings;

    fn need(&self) -> Need {
        self.searcher.need()
    }

    fn worker_name(&self, worker: usize) -> String {
        match worker.checked_sub(self.lanes.len()) {
            Some(cpu) => format!("worker {}", cpu + 1),
            None => format!("slot {}", worker + 1),
        }
    }

    fn work(&self, chunk: &Chunk<'_>, emit: &mut Emitter<'_, ChunkFindings>) {
        if self.search(chunk, emit).is_none() {
            self.searcher.work(chunk, emit);
        }
    }
}
