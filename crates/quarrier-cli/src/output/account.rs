//! The statistics of a run, as `--stats` writes them.

use quarrier_core::pipeline::{Stage, StageLoad, Timeline};
use quarrier_remote::Counters;
use serde_json::{Value, json};

/// One JSON object; the field names are fixed, people script against them.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    pub(crate) command: &'static str,
    /// Bytes of the source that were covered, holes included.
    pub(crate) bytes: u64,
    /// Of these, bytes in holes that were passed over without reading.
    pub(crate) hole_bytes: u64,
    pub(crate) seconds: f64,
    pub(crate) bytes_per_second: f64,
    pub(crate) findings: u64,
    pub(crate) patterns: usize,
    /// Time to read and compile the patterns, and to sample the source.
    pub(crate) compile_seconds: f64,
    pub(crate) workers: usize,
    pub(crate) readers: usize,
    pub(crate) buffers: usize,
    pub(crate) buffer_bytes: usize,
    pub(crate) access: &'static str,
    pub(crate) engine: String,
    /// `cpu`, `gpu:0`, or several joined by `+`.
    pub(crate) device: String,
    /// What these devices are.
    pub(crate) device_names: Vec<String>,
    pub(crate) stages: Stages,
    pub(crate) ceiling: Option<CeilingShare>,
    pub(crate) limited_by: &'static str,
    /// Where a source was remote.
    pub(crate) remote: Option<RemoteCost>,
    /// Where columns in memory were asked: bytes of them that were touched.
    pub(crate) column_bytes: Option<u64>,
    /// Where the source has messages: how many, and how many were left out.
    pub(crate) messages: Option<(u64, u64)>,
    /// Where files were carved.
    pub(crate) files: Option<Files>,
}

/// Carved files.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Files {
    pub(crate) valid: u64,
    pub(crate) partial: u64,
    pub(crate) header: u64,
    /// Of the valid ones, those whose fragments were found.
    pub(crate) mended: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
}

/// What fetching took, of all remote sources together.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RemoteCost {
    pub(crate) requests: u64,
    pub(crate) retries: u64,
    pub(crate) bytes_fetched: u64,
    pub(crate) bytes_from_cache: u64,
}

impl RemoteCost {
    pub(crate) fn add(&mut self, counters: &Counters) {
        self.requests += counters.requests;
        self.retries += counters.retries;
        self.bytes_fetched += counters.bytes_fetched;
        self.bytes_from_cache += counters.bytes_from_disk;
    }
}

/// The loads of all stages.
#[derive(Debug, Default)]
pub(crate) struct Stages {
    pub(crate) read: StageSeconds,
    pub(crate) work: StageSeconds,
    pub(crate) sink: StageSeconds,
    /// The parts of the work, where a device did some.
    pub(crate) on_devices: Vec<(&'static str, StageSeconds)>,
}

/// Time of a stage, all its agents together.
#[derive(Debug, Default)]
pub(crate) struct StageSeconds {
    pub(crate) busy_seconds: f64,
    pub(crate) waiting_seconds: f64,
}

/// The limiting ceiling and the share of it that was reached.
#[derive(Debug)]
pub(crate) struct CeilingShare {
    pub(crate) of: &'static str,
    pub(crate) bytes_per_second: f64,
    pub(crate) share: f64,
}

impl Stats {
    /// The object as it is written.
    pub(crate) fn to_json(&self) -> Value {
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
    /// The loads by stage.
    pub(crate) fn of(loads: &[StageLoad; 3]) -> Self {
        let [read, work, sink] = loads.map(|load| StageSeconds {
            busy_seconds: load.busy.as_secs_f64(),
            waiting_seconds: load.waiting.as_secs_f64(),
        });
        Stages { read, work, sink, on_devices: Vec::new() }
    }

    /// The sums over several runs.
    pub(crate) fn new<'t>(timelines: impl Iterator<Item = &'t Timeline>) -> Self {
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
