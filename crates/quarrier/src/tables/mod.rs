//! Tables: the messages of sources as columns in memory.
//!
//! ```text
//!  Opened ─→ Tables::detect ─→ DetectedSource, with its format ─→ Tables::load ─→ Loaded: one table of all,
//!            first bytes, name, dictionary                        Load             rejects, account
//! ```

mod detected;
mod query;
mod rejects;
mod stream;

pub use detected::{DetectedSource, Sharing};
pub use query::answer;
pub use rejects::reject_row;
pub(crate) use stream::{Patient, detect_format as detect_stream_format};

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quarrier_core::parallel::{available_workers, planned_workers};
use quarrier_core::source::Source;
use quarrier_messages::build::Refused;
use quarrier_messages::{
    ColumnReader, Error as LoadError, Format, HiddenColumns, Limits, Load, Reject, Schema, Table,
};

use crate::account::{RemoteCost, Stages, Stats, rate};
use crate::source::Version;
use crate::{Error, Opener, Result, Sources};

/// A request to load messages.
///
/// ```
/// use quarrier::{Environment, OpenOptions, Opener, Sources, Tables};
/// use quarrier_messages::Value;
///
/// # let file = std::env::temp_dir().join(format!("quarrier-tables-{}.csv", std::process::id()));
/// std::fs::write(&file, "side,qty\nB,7\nS,8\n")?;
/// let stop = Default::default();
/// let opener = Opener::new(OpenOptions::default(), &Environment::default(), &stop);
/// let loaded = Tables::new().load_all(&Sources::of([&file]), &opener, &stop)?;
/// assert_eq!(loaded.table.rows(), 2);
/// assert_eq!(loaded.table.value(1, 1), Value::Integer(8));
/// assert_eq!(loaded.rejected, 0);
/// # std::fs::remove_file(&file)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Tables<'p> {
    format: Option<Format>,
    dictionary: Option<PathBuf>,
    keeps_bytes: bool,
    hidden: HiddenColumns,
    workers: usize,
    limits: Limits,
    range: Option<Range<u64>>,
    parquet: Option<&'p dyn ColumnReader>,
}

/// The loaded messages.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Loaded {
    /// All messages, in the order of the sources.
    pub table: Table,
    /// Rejected messages, in order, at most [`Limits::rejects_max`].
    pub rejects: Vec<Reject>,
    /// The number of rejected messages.
    pub rejected: u64,
    /// Fields that have no column because there are too many.
    pub refused: Refused,
    /// The number of bytes parsed, after decompression.
    pub bytes: u64,
    /// The number of lines that start there.
    pub lines: u64,
    /// Damaged places of logs that were skipped, a line each.
    pub damages: Vec<String>,
    /// Notices of images, a line each that begins with the name of the source.
    pub notices: Vec<String>,
    /// The cost of remote sources, and of listings of buckets by [`Tables::load_all`], if there were any.
    pub remote: Option<RemoteCost>,
    /// The versions of the sources, in order; `None` for those without one. Only set by
    /// [`Tables::load_all`].
    pub versions: Vec<Option<Version>>,
    /// The number of threads that parsed.
    pub workers: usize,
    /// The duration of the load.
    pub elapsed: Duration,
}

impl Default for Tables<'_> {
    fn default() -> Self {
        Tables {
            format: None,
            dictionary: None,
            keeps_bytes: false,
            hidden: HiddenColumns::default(),
            workers: available_workers(),
            limits: Limits::default(),
            range: None,
            parquet: None,
        }
    }
}

impl<'p> Tables<'p> {
    /// Creates a request for all columns of messages, with the format detected for each source.
    pub fn new() -> Self {
        Tables::default()
    }

    /// Sets the format of the messages; `None` to detect it for each source.
    pub fn format(mut self, format: Option<Format>) -> Self {
        self.format = format;
        self
    }

    /// Sets the QuickFIX data dictionary for FIX and NVFIX; `None` for the built-in one.
    pub fn dictionary(mut self, path: Option<PathBuf>) -> Self {
        self.dictionary = path;
        self
    }

    /// Whether to keep each message's own bytes as a column: see [`Load::keep_bytes`].
    pub fn keep_bytes(mut self, keeps_bytes: bool) -> Self {
        self.keeps_bytes = keeps_bytes;
        self
    }

    /// Adds hidden columns, which statements can name: see [`Load::hidden`].
    pub fn hidden(mut self, hidden: HiddenColumns) -> Self {
        self.hidden = hidden;
        self
    }

    /// The number of threads that parse; 0, the default, means one per CPU.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = planned_workers(workers);
        self
    }

    /// Sets other limits for messages.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Loads only the messages that start in a range of each source: see [`Load::range`]. `None` for all.
    pub fn range(mut self, range: Option<Range<u64>>) -> Self {
        self.range = range;
        self
    }

    /// Reads Parquet with `reader`, that of the crate `quarrier-parquet`; without one it is refused.
    pub fn parquet(mut self, reader: Option<&'p dyn ColumnReader>) -> Self {
        self.parquet = reader;
        self
    }

    /// Loads all sources into one table, in order. The format of each source is detected; columns with
    /// the same name become one column, of a type that holds the values of all sources.
    ///
    /// # Errors
    /// Those of [`Opener::open`], [`Tables::detect`] and [`Tables::load`].
    pub fn load_all(
        &self,
        sources: &Sources,
        opener: &Opener,
        stop: &Arc<AtomicBool>,
    ) -> Result<Loaded> {
        let cost = opener.remote_cost();
        let (sources, mut versions) = (sources.listed(opener), Vec::new());
        let detected = sources.iter().zip(sources.open_messages(opener)).map(|(named, opened)| {
            let opened = opened?;
            versions.push(Version::of(named, &opened).ok());
            self.detect(opened, stop)
        });
        let detected = detected.collect::<Result<Vec<_>>>()?;
        let loaded = self.load(detected, stop)?;
        let remote = opener.remote_cost().and_then(|now| now.since(cost));
        Ok(Loaded { versions, remote, ..loaded })
    }

    /// Loads again the sources of a [`load_all`](Self::load_all), which must still have these versions.
    ///
    /// # Errors
    /// Those of `load_all`; [`Error::Request`] if a source has another version now, or none.
    pub fn load_again(
        &self,
        sources: &Sources,
        opener: &Opener,
        (stop, versions): (&Arc<AtomicBool>, &[Option<Version>]),
    ) -> Result<Loaded> {
        let loaded = self.load_all(sources, opener, stop)?;
        let same =
            |(now, before): (&Option<Version>, &Option<Version>)| now.is_some() && now == before;
        let are_same = loaded.versions.len() == versions.len()
            && loaded.versions.iter().zip(versions).all(same);
        match are_same {
            true => Ok(loaded),
            false => Err(Error::Request(
                "the messages must be read again for _line, _offset or _message, and their source \
                 was changed or comes only once; name these columns in quarrier.query(…) over it"
                    .to_string(),
            )),
        }
    }

    /// Loads sources into one table, in order, until `stop` becomes true.
    ///
    /// # Errors
    /// [`Error::Messages`] if a source cannot be read, its compressed bytes are damaged, or the load is
    /// stopped.
    pub fn load(&self, mut detected: Vec<DetectedSource<'_>>, stop: &AtomicBool) -> Result<Loaded> {
        let started = Instant::now();
        let mut all = Loaded { workers: self.workers, ..Loaded::default() };
        let mut tables = Vec::new();
        for alike in detected.chunk_by_mut(|one, next| one.goes_with(next)) {
            let loaded = self.load_alike(alike, stop).map_err(|error| {
                // Stopping the wait for a stream surfaces as another error.
                if stop.load(Ordering::Relaxed) { LoadError::Cancelled } else { error }
            })?;
            all.rejects.extend(loaded.rejects);
            all.rejected += loaded.rejected;
            all.refused.add(loaded.refused);
            all.bytes += loaded.bytes;
            all.lines += loaded.lines;
            tables.push(loaded.table);
        }
        all.rejects.truncate(self.limits.rejects_max);
        all.damages =
            detected.iter().flat_map(|detected| detected.damages().iter().cloned()).collect();
        let notices = detected.iter().filter_map(DetectedSource::notice);
        all.notices = notices.map(str::to_string).collect();
        all.table = match tables.len() {
            1 => tables.pop().unwrap_or_default(),
            _ => {
                let hidden = tables.iter().map(Table::hidden);
                let hidden = hidden.fold(HiddenColumns::default(), |all, one| all | one);
                Table::concat(&tables, self.workers).hiding(hidden)
            }
        };
        for counters in detected.iter().filter_map(DetectedSource::counters) {
            all.remote.get_or_insert_default().add(&counters);
        }
        all.elapsed = started.elapsed();
        Ok(all)
    }

    /// Loads sources of one format at once, or a stream.
    fn load_alike(
        &self,
        alike: &mut [DetectedSource<'_>],
        stop: &AtomicBool,
    ) -> quarrier_messages::Result<quarrier_messages::Loaded> {
        let Some(first) = alike.first_mut() else {
            return Ok(quarrier_messages::Loaded::default());
        };
        let load = self.request(first.format(), stop);
        if let Some((name, mut stream)) = first.stream() {
            return load.run_stream(&name, &mut stream);
        }
        let sources: Vec<&dyn Source> = alike.iter().filter_map(DetectedSource::source).collect();
        load.run(&sources)
    }

    /// Loads one source in pieces: whenever its messages take more than about `bytes_max` of memory,
    /// passes them to `take` as a table and continues without them. Returns the rest. A column has the
    /// type that each piece needs, or a wider one in `schema`, which then names all columns. Rejects
    /// are reported with their piece.
    ///
    /// # Errors
    /// Those of [`Tables::load`], and the errors of `take`; [`Error::Request`] for a stream that was
    /// loaded already.
    pub fn load_in_pieces(
        &self,
        detected: &mut DetectedSource<'_>,
        stop: &AtomicBool,
        (bytes_max, schema): (usize, Option<&Schema>),
        take: &mut dyn FnMut(Loaded) -> Result<()>,
    ) -> Result<Loaded> {
        let started = Instant::now();
        let load = self.request(detected.format(), stop);
        let load = schema.cloned().into_iter().fold(load, Load::schema);
        let mut failed = None;
        let mut hand = |piece| {
            let taken = take(self.loaded(piece, started));
            taken.map_err(|error| {
                failed = Some(error);
                LoadError::Cancelled
            })
        };
        let loaded = if let Some((name, mut stream)) = detected.stream() {
            load.run_stream_in_pieces(&name, &mut stream, bytes_max, &mut hand)
        } else if let Some(source) = detected.source() {
            load.run_in_pieces(&[source], bytes_max, &mut hand)
        } else {
            let reason = format!(
                "{}: it can be read only once, and was read already; save it as a file",
                detected.name()
            );
            return Err(crate::Error::Request(reason));
        };
        match (loaded, failed) {
            (_, Some(error)) => Err(error),
            // Stopping the wait for a stream surfaces as another error.
            (Err(_), None) if stop.load(Ordering::Relaxed) => Err(LoadError::Cancelled.into()),
            (loaded, None) => {
                let mut loaded = self.loaded(loaded?, started);
                loaded.damages = detected.damages().to_vec();
                loaded.notices = detected.notice().map(str::to_string).into_iter().collect();
                loaded.remote = detected.counters().map(|counters| RemoteCost::of(&counters));
                Ok(loaded)
            }
        }
    }

    fn request<'l>(&'l self, format: &Format, stop: &'l AtomicBool) -> Load<'l> {
        let load = Load::new(format.clone())
            .workers(self.workers)
            .limits(self.limits.clone())
            .keep_bytes(self.keeps_bytes)
            .hidden(self.hidden)
            .cancel(stop);
        let load = self.range.clone().into_iter().fold(load, Load::range);
        self.parquet.into_iter().fold(load, Load::parquet)
    }

    fn loaded(&self, loaded: quarrier_messages::Loaded, started: Instant) -> Loaded {
        let quarrier_messages::Loaded { table, rejects, rejected, refused, bytes, lines, .. } =
            loaded;
        let (workers, elapsed) = (self.workers, started.elapsed());
        let rest = Loaded::default();
        Loaded { table, rejects, rejected, refused, bytes, lines, workers, elapsed, ..rest }
    }
}

impl Loaded {
    /// The columns of floats with values that had more digits than a float holds, and the number of
    /// such values.
    pub fn rounded(&self) -> impl Iterator<Item = (&str, u64)> {
        let columns = self.table.schema().fields.iter().zip(self.table.columns());
        let rounded = columns.map(|(field, column)| (&*field.name, column.rounded()));
        rounded.filter(|(_, count)| *count > 0)
    }

    /// The account of a command that loads: all of its time is reading.
    pub fn stats(&self, command: &'static str) -> Stats {
        let seconds = self.elapsed.as_secs_f64();
        let mut stages = Stages::default();
        stages.read.busy_seconds = seconds;
        Stats {
            command,
            bytes: self.bytes,
            seconds,
            bytes_per_second: rate(self.bytes, seconds),
            workers: self.workers,
            device: "cpu".to_string(),
            stages,
            limited_by: "read",
            remote: self.remote,
            messages: Some((self.table.rows(), self.rejected)),
            ..Stats::default()
        }
    }
}
