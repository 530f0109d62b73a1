//! The account of `quarrier query --stats`.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use quarrier::Ceiling;
use quarrier::account::{RemoteCost, StageSeconds, Stages, Stats, rate};
use quarrier_core::pipeline::Stage;

use crate::commands::search::summary::write_stats;
use crate::host;

/// The cost of all statements together.
#[derive(Debug, Clone, Default)]
pub struct QueryAccount {
    /// Rows in the answers.
    pub rows: u64,
    /// The number of statements.
    pub statements: usize,
    /// The number of threads.
    pub workers: usize,
    /// Bytes of input that were parsed, searched, or read from files of rows.
    pub bytes: u64,
    /// Bytes of columns in memory that were touched.
    pub column_bytes: u64,
    /// The cost of requests for remote tables, if there are any.
    pub remote: Option<RemoteCost>,
    /// Time spent opening files and planning statements.
    pub reading: Duration,
    /// Time spent waiting for rows.
    pub working: Duration,
    /// Time spent writing rows.
    pub writing: Duration,
}

impl QueryAccount {
    /// Writes the account to a file, or to standard error for `-`.
    ///
    /// # Errors
    /// A message for the user, if the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        write_stats(&self.stats(), path)
    }

    fn stats(&self) -> Stats {
        let seconds = (self.reading + self.working + self.writing).as_secs_f64();
        let bytes_per_second = rate(self.bytes, seconds);
        let busy = |time: Duration| StageSeconds {
            busy_seconds: time.as_secs_f64(),
            waiting_seconds: seconds - time.as_secs_f64(),
        };
        let stages = Stages {
            read: busy(self.reading),
            work: busy(self.working),
            sink: busy(self.writing),
            on_devices: Vec::new(),
        };
        // Statements read columns in memory as well, so memory is the ceiling.
        let ceiling = host::machine().memory_ceiling(self.workers);
        let ceiling =
            ceiling.map(|ceiling| ceiling.share_of(self.bytes + self.column_bytes, seconds));
        // The statements ran one after the other, and so did their stages.
        let times =
            [(Stage::Read, self.reading), (Stage::Work, self.working), (Stage::Sink, self.writing)];
        let limited_by = times.into_iter().max_by_key(|(_, time)| *time);
        let limited_by = limited_by.map_or(Stage::Work, |(stage, _)| stage);
        Stats {
            command: "query",
            bytes: self.bytes,
            hole_bytes: 0,
            seconds,
            bytes_per_second,
            findings: self.rows,
            patterns: self.statements,
            compile_seconds: 0.0,
            workers: self.workers,
            readers: 0,
            buffers: 0,
            buffer_bytes: 0,
            access: "window",
            engine: "datafusion".to_string(),
            device: "cpu".to_string(),
            device_names: Vec::new(),
            stages,
            ceiling,
            limited_by: limited_by.name(),
            remote: self.remote,
            column_bytes: Some(self.column_bytes),
            messages: None,
            files: None,
        }
    }
}

/// The memory bandwidth of `workers` threads in bytes per second: from the machine profile, or
/// measured, once. `None` if it is unknown.
pub fn memory_bytes_per_second(workers: usize) -> Option<f64> {
    static KNOWN: OnceLock<Option<Ceiling>> = OnceLock::new();
    let known = KNOWN.get_or_init(|| host::machine().memory_ceiling(workers));
    known.map(|ceiling| ceiling.bytes_per_second)
}
