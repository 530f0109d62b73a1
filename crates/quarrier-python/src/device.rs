//! Where a search runs: the CPU, a device, or both.

use std::sync::Arc;

use quarrier_core::parallel::available_workers;
use quarrier_core::pipeline::{Access, Pipeline};
use quarrier_core::source::Source;
use quarrier_gpu::{Device, Wish};
use quarrier_search::{GpuSearcher, Sample, Searcher};

/// What `device=` asks for, read.
///
/// # Errors
/// In words.
pub(crate) fn wish(text: &str) -> Result<Wish, String> {
    match text.parse() {
        // The command line chooses by the machine's profile, which is the user's, not a library's;
        // without one it is the CPU.
        Ok(Wish::Auto) => Ok(Wish::Cpu),
        Err(_) => {
            Err(format!("no device '{text}'; there are: auto, cpu, gpu, gpu:0, gpu:1 …, all"))
        }
        Ok(wish) => Ok(wish),
    }
}

/// Devices with a set compiled for them.
pub(crate) struct OnDevices {
    pub(crate) searcher: GpuSearcher,
    cpu_workers: usize,
}

impl OnDevices {
    /// The devices that are meant; `None` where the CPU is to do all.
    ///
    /// # Errors
    /// No such device, or one that cannot take the set.
    pub(crate) fn choose(
        wish: Wish,
        searcher: &Arc<Searcher>,
        sample: &Sample,
        (slots, workers): (usize, usize),
    ) -> quarrier_search::Result<Option<Self>> {
        if wish == Wish::Cpu {
            return Ok(None);
        }
        let chosen = wish.choose(quarrier_gpu::find()).map_err(quarrier_search::Error::Device)?;
        let devices: Vec<Device> = chosen.into_iter().map(|(_, device)| device).collect();
        let usual = || devices.iter().map(GpuSearcher::usual_slots).max().unwrap_or(1);
        let slots = if slots > 0 { slots } else { usual() };
        let cpu_workers = match (wish, workers) {
            (Wish::All, 0) => available_workers(),
            (Wish::All, workers) => workers,
            _ => 0,
        };
        let searcher = searcher.on_devices(&devices, slots, sample)?;
        Ok(Some(OnDevices { searcher, cpu_workers }))
    }

    /// `pipeline` as devices need it.
    pub(crate) fn pipeline<'p>(
        &self,
        pipeline: Pipeline<'p>,
        source: &dyn Source,
        (access, buffer_bytes): (Option<Access>, usize),
        length: u64,
    ) -> Pipeline<'p> {
        let buffer_bytes = Some(buffer_bytes).filter(|&bytes| bytes > 0);
        let pipeline = self.searcher.planned(pipeline, self.cpu_workers, buffer_bytes, length);
        // Pages of a file are no memory of a device: slots read them into theirs.
        match access {
            None if source.is_resident() => pipeline.access(Access::Read),
            _ => pipeline,
        }
    }

    /// The engines in use.
    pub(crate) fn engine_name(&self) -> String {
        self.searcher.engine_name(self.cpu_workers > 0)
    }
}
