//! The statistics of a run: its cost, the load of each stage, its share of the ceiling.

use quarrier_carve::SkimmedRange;
use quarrier_core::pipeline::{Stage, StageLoad, Timeline};
use quarrier_report::number;
use serde_json::{Value, json};

use crate::Ceiling;
use crate::carve::skimmed_to_json;
pub use crate::remote_cost::RemoteCost;

/// Statistics as one JSON object. The field names are stable, since scripts depend on them.
#[derive(Debug, Default)]
pub struct Stats {
    /// The command.
    pub command: &'static str,
    /// Bytes of the source that were processed, holes included.
    pub bytes: u64,
    /// The part of these bytes that lies in holes and was skipped without reading.
    pub hole_bytes: u64,
    /// Time from start to end.
    pub seconds: f64,
    /// `bytes` divided by `seconds`.
    pub bytes_per_second: f64,
    /// Findings, rows or files.
    pub findings: u64,
    /// Patterns, conditions, statements or signatures.
    pub patterns: usize,
    /// Time to read and compile the patterns, and to sample the source.
    pub compile_seconds: f64,
    /// The number of worker threads.
    pub workers: usize,
    /// The number of threads that only read.
    pub readers: usize,
    /// Number of buffers or windows that exist at once.
    pub buffers: usize,
    /// Size of a buffer in bytes.
    pub buffer_bytes: usize,
    /// How bytes reached memory, such as `window` or `read`.
    pub access: &'static str,
    /// The engine that did the work.
    pub engine: String,
    /// `cpu`, `gpu:0`, or several joined by `+`.
    pub device: String,
    /// The names of these devices.
    pub device_names: Vec<String>,
    /// The load of each stage.
    pub stages: Stages,
    /// The ceiling, if it is known.
    pub ceiling: Option<CeilingShare>,
    /// The stage that set the pace.
    pub limited_by: &'static str,
    /// The cost of fetching, if a source was remote or a bucket was listed.
    pub remote: Option<RemoteCost>,
    /// Bytes of columns that were read, if columns in memory were queried.
    pub column_bytes: Option<u64>,
    /// The numbers of messages and of rejected ones, if the source has messages.
    pub messages: Option<(u64, u64)>,
    /// The carved files, if files were carved.
    pub files: Option<Files>,
}

/// Carved files by status.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// Files read to the end that their formats define.
    pub valid: u64,
    /// Files that are broken or truncated.
    pub partial: u64,
    /// Files of which only the header was found.
    pub header: u64,
    /// The valid files whose fragments were found and joined.
    pub mended: u64,
    /// Total size of all files.
    pub bytes: u64,
    /// Ranges of the source that were examined less closely.
    pub skimmed: Vec<SkimmedRange>,
}

/// The loads of all stages.
#[derive(Debug, Default)]
pub struct Stages {
    /// Reading bytes.
    pub read: StageSeconds,
    /// Processing them.
    pub work: StageSeconds,
    /// Passing results on.
    pub sink: StageSeconds,
    /// The parts of the work on devices, if any did some.
    pub on_devices: Vec<(&'static str, StageSeconds)>,
}

/// The time of a stage, summed over its agents.
#[derive(Debug, Default)]
pub struct StageSeconds {
    /// Time spent working, in seconds.
    pub busy_seconds: f64,
    /// Time spent waiting for other stages, in seconds.
    pub waiting_seconds: f64,
}

/// The limiting ceiling and the share of it that was reached.
#[derive(Debug, Clone, Copy)]
pub struct CeilingShare {
    /// The name of the ceiling: `memory read`, `disk read`, `gpu copy`.
    pub of: &'static str,
    /// The ceiling in bytes per second.
    pub bytes_per_second: f64,
    /// The share that was reached; 1 means the whole ceiling.
    pub share: f64,
}

impl CeilingShare {
    /// Formats the share: `93 % of the ceiling (memory read 24.1 GB/s)`.
    pub fn describe(&self) -> String {
        let rate = number::rate(self.bytes_per_second);
        format!("{:.0} % of the ceiling ({} {rate})", 100.0 * self.share, self.of)
    }
}

/// The start dominates a shorter run, so its share of a ceiling means nothing.
const SHARE_SECONDS_MIN: f64 = 0.1;

impl Stats {
    /// Formats the share of the ceiling for display; `None` if the run was too short to reach it.
    pub fn describe_share(&self) -> Option<String> {
        let ceiling = self.ceiling.filter(|_| self.seconds >= SHARE_SECONDS_MIN)?;
        Some(ceiling.describe())
    }

    /// Returns the statistics as JSON.
    pub fn to_json(&self) -> Value {
        let mut stats = json!({
            "command": self.command,
            "bytes": self.bytes,
            "hole_bytes": self.hole_bytes,
            "seconds": self.seconds,
            "bytes_per_second": self.bytes_per_second,
            "findings": self.findings,
            "patterns": self.patterns,
            "compile_seconds": self.compile_seconds,
            "workers": self.workers,
            "readers": self.readers,
            "buffers": self.buffers,
            "buffer_bytes": self.buffer_bytes,
            "access": self.access,
            "engine": self.engine,
            "device": self.device,
            "stages": {
                "read": self.stages.read.to_json(),
                "work": self.stages.work.to_json(),
                "sink": self.stages.sink.to_json(),
            },
            "ceiling": self.ceiling.as_ref().map(|ceiling| json!({
                "of": ceiling.of,
                "bytes_per_second": ceiling.bytes_per_second,
                "share": ceiling.share,
            })),
            "limited_by": self.limited_by,
        });
        if !self.device_names.is_empty() {
            stats["device_names"] = json!(self.device_names);
        }
        for (name, seconds) in &self.stages.on_devices {
            stats["stages"][name] = seconds.to_json();
        }
        if let Some(remote) = &self.remote {
            stats["requests"] = json!(remote.requests);
            stats["retries"] = json!(remote.retries);
            stats["bytes_fetched"] = json!(remote.bytes_fetched);
            stats["bytes_from_cache"] = json!(remote.bytes_from_cache);
        }
        if let Some(bytes) = self.column_bytes {
            stats["column_bytes"] = json!(bytes);
        }
        if let Some((messages, rejected)) = self.messages {
            stats["messages"] = json!(messages);
            stats["rejected"] = json!(rejected);
        }
        if let Some(files) = &self.files {
            stats["files"] = json!({
                "valid": files.valid,
                "partial": files.partial,
                "header": files.header,
                "mended": files.mended,
                "bytes": files.bytes,
            });
            stats["skimmed"] = skimmed_to_json(&files.skimmed);
        }
        stats
    }
}

impl StageSeconds {
    fn add(&mut self, load: StageLoad) {
        self.busy_seconds += load.busy.as_secs_f64();
        self.waiting_seconds += load.waiting.as_secs_f64();
    }

    fn to_json(&self) -> Value {
        json!({"busy_seconds": self.busy_seconds, "waiting_seconds": self.waiting_seconds})
    }
}

impl Stages {
    /// Converts the loads of stages.
    pub fn of(loads: &[StageLoad; 3]) -> Self {
        let [read, work, sink] = loads.map(|load| StageSeconds {
            busy_seconds: load.busy.as_secs_f64(),
            waiting_seconds: load.waiting.as_secs_f64(),
        });
        Stages { read, work, sink, on_devices: Vec::new() }
    }

    /// Sums the loads of several runs.
    pub fn new<'t>(timelines: impl Iterator<Item = &'t Timeline>) -> Self {
        let mut sums: [StageSeconds; 3] = Default::default();
        let mut on_devices = [Stage::Copy, Stage::Kernel, Stage::Collect]
            .map(|stage| (stage, StageSeconds::default()));
        let mut has_device = false;
        for timeline in timelines {
            for stage in Stage::ALL {
                sums[stage as usize].add(timeline.load(stage));
            }
            has_device |= timeline.has_device();
            on_devices.iter_mut().for_each(|(stage, sum)| sum.add(timeline.load(*stage)));
        }
        let [read, work, sink] = sums;
        let on_devices = on_devices.map(|(stage, sum)| (stage.name(), sum)).into();
        let on_devices = if has_device { on_devices } else { Vec::new() };
        Stages { read, work, sink, on_devices }
    }
}

/// Returns bytes per second; 0 if no time passed.
pub fn rate(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 }
}

impl Ceiling {
    /// Returns the share that a run over `bytes` bytes reached.
    pub fn share_of(self, bytes: u64, seconds: f64) -> CeilingShare {
        let Ceiling { of, bytes_per_second } = self;
        CeilingShare { of, bytes_per_second, share: rate(bytes, seconds) / bytes_per_second }
    }
}

impl Stages {
    /// Returns the stage that set the pace. Pages of a window are read while they are processed, so a run
    /// close to its ceiling is limited by reading, whatever the times of the stages.
    pub fn limit(&self, ceiling: Option<&CeilingShare>, workers: usize, seconds: f64) -> Stage {
        if ceiling.is_some_and(|ceiling| ceiling.share >= 0.8) {
            return Stage::Read;
        }
        let work_load = self.work.busy_seconds / (workers.max(1) as f64 * seconds.max(1e-9));
        let sink_load = self.sink.busy_seconds / seconds.max(1e-9);
        if sink_load > work_load && sink_load > 0.5 {
            Stage::Sink
        } else if self.work.waiting_seconds > self.work.busy_seconds
            || self.read.busy_seconds > self.work.busy_seconds
        {
            Stage::Read
        } else {
            Stage::Work
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_run_says_no_share_of_the_ceiling() {
        let ceiling = Some(CeilingShare { of: "memory read", bytes_per_second: 2e9, share: 0.005 });
        let after = |seconds| Stats { seconds, ceiling, ..Stats::default() }.describe_share();
        assert_eq!(after(0.001), None);
        assert_eq!(after(1.0).as_deref(), Some("0 % of the ceiling (memory read 2.00 GB/s)"));
        assert_eq!(Stats { seconds: 1.0, ..Stats::default() }.describe_share(), None);
    }
}
