//! One image, searched on devices and on the CPU; every count is compared with the planted
//! keywords.

use std::ops::ControlFlow;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use quarrier_core::pipeline::{Access, Pipeline, Run, Stage};
use quarrier_core::source::FileSource;
use quarrier_gpu::Device;
use quarrier_search::{GpuSearcher, Pattern, Sample, Searcher};

use crate::contender::THREADS;
use crate::image::Image;
use crate::measure::Spread;

/// The rates of runs, in bytes per second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    pub(super) stream: f64,
    /// By the device's clock; `None` for a CPU.
    pub(super) kernel: Option<f64>,
    /// Shares of the time spent filling, copying, searching and collecting.
    pub(super) loads: [f64; 4],
}

impl Rate {
    fn of(run: &Run) -> Self {
        let busy = |stage| run.timeline.load_alone(stage).busy.as_secs_f64();
        let (seconds, kernel) = (run.elapsed.as_secs_f64(), busy(Stage::Kernel));
        let stages = [Stage::Read, Stage::Copy, Stage::Kernel, Stage::Collect];
        Rate {
            stream: run.bytes as f64 / seconds,
            kernel: (kernel > 0.0).then(|| run.bytes as f64 / kernel),
            loads: stages.map(|stage| busy(stage) / seconds),
        }
    }

    /// Returns the median of each.
    pub(super) fn middle(rates: &[Rate]) -> Result<Rate> {
        let median = |of: &dyn Fn(&Rate) -> Option<f64>| {
            Spread::of(rates.iter().filter_map(of)).map(|spread| spread.median)
        };
        Ok(Rate {
            stream: median(&|rate| Some(rate.stream)).context("no run")?,
            kernel: median(&|rate| rate.kernel),
            loads: [0, 1, 2, 3].map(|at| median(&|rate| Some(rate.loads[at])).unwrap_or(0.0)),
        })
    }
}

/// The settings of a run: which threads fill the buffers, and how many buffers there are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    pub(super) slots: usize,
    /// Number of threads that fill; 0: each slot fills its own buffer.
    pub(super) readers: usize,
}

impl Cut {
    /// Returns the settings of `quarrier search`.
    pub(super) fn usual(device: &Device) -> Self {
        Cut { slots: GpuSearcher::usual_slots(device), readers: 0 }
    }
}

pub(super) struct Case<'c> {
    pub(super) image: &'c Image,
    pub(super) source: FileSource,
    pub(super) sample: Sample,
    pub(super) rounds: usize,
}

/// A set compiled for a device, ready for any number of runs.
pub(super) struct Ready<'c> {
    case: &'c Case<'c>,
    searcher: Arc<Searcher>,
    on: GpuSearcher,
    device: Device,
    cut: Cut,
    patterns: usize,
}

impl Case<'_> {
    /// Compiles the image's first `patterns` words.
    pub(super) fn searcher(&self, patterns: usize) -> Result<Arc<Searcher>> {
        let words = self.image.keywords.iter().take(patterns);
        let patterns = words.map(|word| Ok(Pattern::literal(std::str::from_utf8(word)?)?));
        let builder = Searcher::builder().sample(self.sample.clone());
        Ok(Arc::new(builder.build(patterns.collect::<Result<_>>()?)?))
    }

    pub(super) fn ready<'c>(
        &'c self,
        searcher: &Arc<Searcher>,
        device: &Device,
        cut: Cut,
        patterns: usize,
    ) -> Result<Ready<'c>> {
        let on = searcher.on_devices(
            std::slice::from_ref(device),
            cut.slots,
            &self.sample,
            &false.into(),
        )?;
        let (searcher, device) = (Arc::clone(searcher), device.clone());
        Ok(Ready { case: self, searcher, on, device, cut, patterns })
    }

    /// Returns the rate of a device, the median of all rounds.
    pub(super) fn on(
        &self,
        searcher: &Arc<Searcher>,
        device: &Device,
        cut: Cut,
        patterns: usize,
    ) -> Result<Rate> {
        let ready = self.ready(searcher, device, cut, patterns)?;
        // The first run starts the device, and does not count.
        ready.once()?;
        let rates = (0..self.rounds).map(|_| ready.once()).collect::<Result<Vec<_>>>()?;
        Rate::middle(&rates)
    }

    /// Returns the rate of the CPU's best engine.
    pub(super) fn on_cpu(&self, searcher: &Searcher, patterns: usize) -> Result<Rate> {
        let mut rates = Vec::new();
        for _ in 0..=self.rounds {
            let mut found = 0;
            let mut sink = searcher.sink(|_, findings| {
                found += findings.len();
                ControlFlow::Continue(())
            });
            let pipeline = Pipeline::new(&self.source).workers(THREADS);
            let run = pipeline.run(searcher, &mut sink)?;
            drop(sink);
            self.check(found, patterns, "the CPU")?;
            rates.push(Rate::of(&run));
        }
        Rate::middle(&rates[1..])
    }

    fn check(&self, found: usize, patterns: usize, who: &str) -> Result<()> {
        let expected = self.image.plants_of(patterns).count();
        if found != expected {
            bail!("WRONG COUNT: {who} found {found} of {patterns} patterns, expected {expected}");
        }
        Ok(())
    }
}

impl Ready<'_> {
    /// Runs once, from the file to the findings.
    pub(super) fn once(&self) -> Result<Rate> {
        let memory = |bytes| Some(self.on.buffer(bytes));
        let mut found = 0;
        let mut sink = self.searcher.sink(|_, findings| {
            found += findings.len();
            ControlFlow::Continue(())
        });
        let Cut { slots, readers } = self.cut;
        let access = if readers > 0 { Access::Queue } else { Access::Read };
        let run = Pipeline::new(&self.case.source)
            .access(access)
            .readers(readers)
            .workers(slots)
            // A reader fills one buffer while each slot holds one.
            .buffers(slots + readers)
            .buffer_bytes(GpuSearcher::usual_buffer_bytes(&self.device))
            .memory(&memory)
            .run(&self.on, &mut sink)?;
        drop(sink);
        self.case.check(found, self.patterns, &self.device.facts().name)?;
        match self.on.lost().first() {
            Some(lost) => bail!("{lost}"),
            None => Ok(Rate::of(&run)),
        }
    }
}
