//! A timeline of when each thread was busy: cheap to record during a run, and rendered later.

use std::time::{Duration, Instant};

/// The three stages of a chunk, and the parts of work on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Bytes are read into memory.
    Read,
    /// The kernel runs.
    Work,
    /// Results are put in order and passed on.
    Sink,
    /// A part of the work: bytes are copied to a device.
    Copy,
    /// A part of the work: the device runs its kernel.
    Kernel,
    /// A part of the work: the host fetches a device's findings.
    Collect,
}

impl Stage {
    /// The stages in the order of flow.
    pub const ALL: [Stage; 3] = [Stage::Read, Stage::Work, Stage::Sink];
    /// The stages, including those of devices, in the order of flow.
    pub const WITH_DEVICE: [Stage; 6] =
        [Stage::Read, Stage::Copy, Stage::Kernel, Stage::Collect, Stage::Work, Stage::Sink];

    /// The stage's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Read => "read",
            Stage::Work => "work",
            Stage::Sink => "sink",
            Stage::Copy => "copy",
            Stage::Kernel => "kernel",
            Stage::Collect => "collect",
        }
    }

    /// Whether its bytes count as processed: each byte counts in exactly one of these stages.
    pub fn is_work(self) -> bool {
        matches!(self, Stage::Work | Stage::Kernel)
    }
}

/// A span of time that one agent spent in one stage.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// The stage.
    pub stage: Stage,
    /// Start of the span, since the start of the run.
    pub start: Duration,
    /// End of the span, since the start of the run.
    pub end: Duration,
    /// Busy time within the span: less than its length if spans were merged.
    pub busy: Duration,
    /// Source bytes handled.
    pub bytes: u64,
}

/// How long all agents of a stage were busy, and how long they waited for others.
#[derive(Debug, Clone, Copy, Default)]
pub struct StageLoad {
    /// Time at work.
    pub busy: Duration,
    /// Time spent waiting for a buffer, a chunk, or the turn.
    pub waiting: Duration,
}

/// The activity of all agents over the whole run.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// A list of spans per thread, in order of time, with the thread's name.
    pub agents: Vec<(String, Vec<Span>)>,
    loads: [StageLoad; 6],
}

impl Timeline {
    /// Creates a timeline from the agents' own records, for work that ran without a pipeline.
    pub fn of(agents: Vec<(String, Vec<Span>)>) -> Self {
        let mut loads = [StageLoad::default(); 6];
        for span in agents.iter().flat_map(|(_, spans)| spans) {
            loads[span.stage as usize].busy += span.busy;
        }
        Timeline { agents, loads }
    }

    /// Returns the load of a stage, all agents together. The load of [`Stage::Work`] includes its
    /// parts on devices.
    pub fn load(&self, stage: Stage) -> StageLoad {
        let mut load = self.load_alone(stage);
        if stage == Stage::Work {
            for part in [Stage::Copy, Stage::Kernel, Stage::Collect] {
                load.busy += self.loads[part as usize].busy;
                load.waiting += self.loads[part as usize].waiting;
            }
        }
        load
    }

    /// Returns the load of a stage; that of [`Stage::Work`] excludes its parts on devices.
    pub fn load_alone(&self, stage: Stage) -> StageLoad {
        self.loads[stage as usize]
    }

    /// Whether a device took part.
    pub fn has_device(&self) -> bool {
        !self.loads[Stage::Kernel as usize].busy.is_zero()
    }

    pub(super) fn add(&mut self, recorder: Recorder) {
        for (sum, load) in self.loads.iter_mut().zip(recorder.loads) {
            sum.busy += load.busy;
            sum.waiting += load.waiting;
        }
        self.agents.push((recorder.name, recorder.spans));
        self.agents.sort_by(|a, b| a.0.cmp(&b.0));
    }
}

/// Maximum number of spans per agent; beyond it, adjacent spans of a stage are merged.
const SPANS_MAX: usize = 4096;

/// The record of one agent.
#[derive(Debug)]
pub(super) struct Recorder {
    name: String,
    epoch: Instant,
    spans: Vec<Span>,
    loads: [StageLoad; 6],
    /// Spans shorter than this are merged with the previous one; doubles when the list is full.
    resolution: Duration,
}

impl Recorder {
    pub(super) fn new(name: String, epoch: Instant) -> Self {
        Recorder {
            name,
            epoch,
            spans: Vec::with_capacity(SPANS_MAX),
            loads: Default::default(),
            resolution: Duration::from_micros(20),
        }
    }

    /// Records that this agent was busy in `stage` from `start` until now.
    pub(super) fn busy(&mut self, stage: Stage, start: Instant, bytes: u64) {
        self.busy_until(stage, start, Instant::now(), bytes);
    }

    /// Records that this agent was busy in `stage` from `start` to `end`.
    pub(super) fn busy_until(&mut self, stage: Stage, start: Instant, end: Instant, bytes: u64) {
        let busy = end - start;
        self.loads[stage as usize].busy += busy;
        let span = Span { stage, start: start - self.epoch, end: end - self.epoch, busy, bytes };
        self.push(span);
    }

    /// Records that this agent waited from `start` until now, as part of `stage`.
    pub(super) fn waited(&mut self, stage: Stage, start: Instant) {
        self.loads[stage as usize].waiting += start.elapsed();
    }

    fn push(&mut self, span: Span) {
        if let Some(same) = self.spans.iter_mut().rev().take(6).find(|s| s.stage == span.stage)
            && span.end - same.start < self.resolution
        {
            same.end = span.end;
            same.busy += span.busy;
            same.bytes += span.bytes;
            return;
        }
        if self.spans.len() == SPANS_MAX {
            self.coarsen();
        }
        self.spans.push(span);
    }

    /// Makes room by merging spans that are close together, more coarsely each time.
    fn coarsen(&mut self) {
        while self.spans.len() > SPANS_MAX / 2 {
            self.resolution *= 2;
            let mut open: [Option<usize>; 6] = [None; 6];
            let mut kept: Vec<Span> = Vec::with_capacity(SPANS_MAX);
            for span in self.spans.drain(..) {
                match open[span.stage as usize] {
                    Some(at) if span.end - kept[at].start < self.resolution => {
                        kept[at].end = span.end;
                        kept[at].busy += span.busy;
                        kept[at].bytes += span.bytes;
                    }
                    _ => {
                        open[span.stage as usize] = Some(kept.len());
                        kept.push(span);
                    }
                }
            }
            self.spans = kept;
        }
    }
}
