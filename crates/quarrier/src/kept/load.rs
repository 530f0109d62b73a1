//! Loads sources into a table of a data folder.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quarrier_core::name;
use quarrier_core::source::Source;
use quarrier_messages::kept::{Definition, LoadOptions, LoadWatch, Origin, Progress, Stored};
use quarrier_messages::log::Retention;
use quarrier_messages::{Format, Limits, Reject};

use super::DataFolder;
use crate::account::{RemoteCost, Stages, Stats, rate};
use crate::filter::{Conditions, Counting, Counts, Filtered, Form, Rows};
use crate::tables::{Patient, detect_stream_format, reject_row};
use crate::{Error, Filter, Named, Opened, Opener, Result, Sources};

/// A request to append sources to a table.
///
/// ```
/// use quarrier::kept::{DataFolder, KeptLoad};
/// use quarrier::{Environment, OpenOptions, Opener, Sources};
///
/// # let folder = std::env::temp_dir().join(format!("quarrier-kept-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let file = folder.join("orders.ndjson");
/// std::fs::write(&file, "{\"qty\":7}\n{\"qty\":8}\nno message\n")?;
/// let kept = DataFolder::open(&folder.join("data"))?;
/// let stop = Default::default();
/// let opener = Opener::new(OpenOptions::default(), &Environment::default(), &stop);
/// let load = KeptLoad::new("orders");
/// let loaded = load.run(&kept, &Sources::of([&file]), &opener, &stop, &mut ())?;
/// assert_eq!((loaded.messages(), loaded.rejected()), (2, 1));
/// let again = load.run(&kept, &Sources::of([&file]), &opener, &stop, &mut ())?;
/// assert_eq!(again.messages(), 0); // it continues where it stopped
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct KeptLoad {
    table: String,
    format: Option<Format>,
    workers: usize,
    limits: Limits,
    compression: Option<i32>,
    is_again: bool,
    rejects: Option<PathBuf>,
    conditions: Option<Arc<Conditions>>,
    retention: Option<Retention>,
}

/// A source that was appended completely and is on disk.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LoadedSource {
    /// The name of the source.
    pub name: String,
    /// The outcome.
    pub stored: Stored,
    /// The duration of the load.
    pub elapsed: Duration,
    /// The messages that satisfy each condition, if they were counted during the load.
    counts: Option<Counts>,
}

/// The result of appending sources.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct KeptLoaded {
    /// The sources read, in order.
    pub sources: Vec<LoadedSource>,
    /// Whether the run was stopped.
    pub is_stopped: bool,
    /// The duration of all loads.
    pub elapsed: Duration,
    /// The cost of remote sources and listings of buckets, if there were any.
    pub remote: Option<RemoteCost>,
    workers: usize,
    conditions: Option<Arc<Conditions>>,
}

/// Observes a load.
pub trait KeptWatch: Send {
    /// A source begins; `end` is its stored length in bytes, or [`u64::MAX`] if that is unknown or
    /// differs from the length of its contents.
    fn begin(&mut self, name: &str, end: u64) {
        let _ = (name, end);
    }

    /// A source has a notice that people should read before they trust its messages, such as that a
    /// segment of an image is missing: a line that begins with the name of the source.
    fn notice(&mut self, notice: &str) {
        let _ = notice;
    }

    /// A damaged part of a source that is a log was skipped; the line says what and where.
    fn damaged(&mut self, damage: &str) {
        let _ = damage;
    }

    /// More of the source is on disk.
    fn progressed(&mut self, progress: &Progress) {
        let _ = progress;
    }

    /// A source is done. `first` is its first rejected message, if any.
    fn done(&mut self, loaded: &LoadedSource, first: Option<&Reject>) {
        let _ = (loaded, first);
    }

    /// A source could not be read to its end. `Ok` continues with the next one.
    ///
    /// # Errors
    /// Any error ends the run. The default implementation returns `error`.
    fn failed(&mut self, error: Error) -> Result<()> {
        Err(error)
    }
}

impl KeptWatch for () {}

impl KeptLoad {
    /// Makes a request to append to the table of this name, which is created if it does not exist.
    pub fn new(table: impl Into<String>) -> Self {
        KeptLoad {
            table: table.into(),
            format: None,
            workers: 0,
            limits: Limits::default(),
            compression: None,
            is_again: false,
            rejects: None,
            conditions: None,
            retention: None,
        }
    }

    /// Sets conditions to count while messages are parsed, for [`KeptLoaded::filter`].
    pub fn counting(mut self, conditions: Option<Conditions>) -> Self {
        self.conditions = conditions.map(Arc::new);
        self
    }

    /// Sets the bounds of the table; `None` leaves them as they are.
    pub fn retention(mut self, retention: Option<Retention>) -> Self {
        self.retention = retention;
        self
    }

    /// Sets the format of the messages; `None` to detect it for each source.
    pub fn format(mut self, format: Option<Format>) -> Self {
        self.format = format;
        self
    }

    /// Sets the number of threads that parse; 0, the default, means one per CPU.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Sets the limits on messages.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the Zstandard level for stored messages; `None` stores them uncompressed.
    pub fn compression(mut self, level: Option<i32>) -> Self {
        self.compression = level;
        self
    }

    /// Sets whether to load sources again from their start, even if they were loaded before.
    pub fn again(mut self, is_again: bool) -> Self {
        self.is_again = is_again;
        self
    }

    /// Sets the file that lists rejected messages, one JSON object a line.
    pub fn rejects(mut self, path: Option<PathBuf>) -> Self {
        self.rejects = path;
        self
    }

    /// Appends the sources in order. Messages already loaded from a path or URL are not loaded again, so an
    /// interrupted run can be resumed. Ends soon after `stop` becomes true; messages already on disk stay.
    ///
    /// # Errors
    /// [`Error::Messages`] if the name of the table is not allowed, or the log accepts no more messages. An
    /// error of a source goes to [`KeptWatch::failed`] first.
    pub fn run(
        &self,
        kept: &DataFolder,
        sources: &Sources,
        opener: &Opener,
        stop: &Arc<AtomicBool>,
        watch: &mut dyn KeptWatch,
    ) -> Result<KeptLoaded> {
        sources.refuse_overwriting(self.rejects.as_deref())?;
        let cost = opener.remote_cost();
        let sources = sources.listed(opener);
        let started = Instant::now();
        let workers = quarrier_core::parallel::planned_workers(self.workers);
        let conditions = self.conditions.clone();
        let mut loaded = KeptLoaded { workers, conditions, ..KeptLoaded::default() };
        if let Some(retention) = self.retention {
            kept.create(&self.table, &Definition::default())?;
            kept.set_retention(&self.table, retention)?;
        }
        let mut list = self.rejects.as_deref().map(List::create).transpose()?;
        for named in sources.iter() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            match self.one(kept, (named, opener), stop, (&mut list, &mut *watch)) {
                Ok(source) => loaded.sources.push(source),
                // The log accepts no more messages of any source.
                Err(error) if is_of_log(&error) => return Err(error),
                Err(error) => watch.failed(error)?,
            }
        }
        if let Some(list) = list {
            list.finish()?;
        }
        loaded.is_stopped = stop.load(Ordering::Relaxed);
        loaded.elapsed = started.elapsed();
        loaded.remote = opener.remote_cost().and_then(|now| now.since(cost));
        Ok(loaded)
    }

    /// Appends the messages of a source that the caller supplies, such as bytes in memory. Such a load does
    /// not resume an earlier one.
    ///
    /// # Errors
    /// Those of [`KeptLoad::run`].
    pub fn source(
        &self,
        kept: &DataFolder,
        source: &dyn Source,
        stop: &Arc<AtomicBool>,
        watch: &mut dyn KeptWatch,
    ) -> Result<LoadedSource> {
        let format = match &self.format {
            Some(format) => format.clone(),
            None => Format::of(source)?,
        };
        let origin = Origin::Source { source, identity: None };
        let name = source.name().to_string();
        let end = source.length();
        let (stored, counts, _, elapsed) =
            self.stored(kept, (origin, format), end, stop, (&mut None, watch))?;
        Ok(LoadedSource { name, stored, elapsed, counts })
    }

    fn one(
        &self,
        kept: &DataFolder,
        (named, opener): (&Named, &Opener),
        stop: &Arc<AtomicBool>,
        (list, watch): (&mut Option<List>, &mut dyn KeptWatch),
    ) -> Result<LoadedSource> {
        let opened = opener.open_messages(named)?;
        if let Some(notice) = opened.notice_line() {
            watch.notice(&notice);
        }
        opened.damages().iter().for_each(|damage| watch.damaged(damage));
        let identity = identity(named);
        let name = opened.name().to_string();
        let (stored, counts, (first, failed), elapsed) = match opened {
            Opened::Stream { name, reader } => {
                let patient = Box::new(Patient::new(reader, stop));
                let plain = quarrier_messages::decompressed_stream(&name, patient, stop)?;
                let (format, mut reader) = match &self.format {
                    Some(format) => (format.clone(), plain),
                    None => detect_stream_format(&name, plain),
                };
                let origin = Origin::Stream { name: &name, reader: &mut reader };
                self.stored(kept, (origin, format), u64::MAX, stop, (list, &mut *watch))?
            }
            opened => {
                let format = self.format.clone().or_else(|| opened.format().cloned());
                let source = opened.at_offsets()?;
                let format = match format {
                    Some(format) => format,
                    None => Format::of(&*source)?,
                };
                let is_plain = quarrier_messages::decompressed(&*source)?.is_none();
                let end = if is_plain { source.length() } else { u64::MAX };
                let origin = Origin::Source { source: &*source, identity: identity.as_deref() };
                self.stored(kept, (origin, format), end, stop, (list, &mut *watch))?
            }
        };
        let loaded = LoadedSource { name, stored, elapsed, counts };
        watch.done(&loaded, first.as_ref());
        match failed {
            Some(error) => Err(error),
            None => Ok(loaded),
        }
    }

    fn stored(
        &self,
        kept: &DataFolder,
        (origin, format): (Origin<'_>, Format),
        end: u64,
        stop: &AtomicBool,
        (list, watch): (&mut Option<List>, &mut dyn KeptWatch),
    ) -> Result<(Stored, Option<Counts>, Left, Duration)> {
        let mut options = LoadOptions::new(format);
        options.workers = self.workers;
        options.limits = self.limits.clone();
        options.compression = self.compression;
        options.is_again = self.is_again;
        let name = match &origin {
            Origin::Source { source, .. } => source.name().to_string(),
            Origin::Stream { name, .. } => (*name).to_string(),
        };
        watch.begin(&name, end);
        let started = Instant::now();
        let mut listing = Listing { list, watch, first: None, failed: None };
        let (store, table) = (kept.store(), self.table.as_str());
        let (stored, counts) = match &self.conditions {
            None => (store.load(table, origin, &options, stop, &mut listing)?, None),
            Some(conditions) => {
                let counting = Counting::new(Arc::clone(conditions));
                let to: (&mut dyn LoadWatch, _) = (&mut listing, &counting);
                let stored = store.load_observed(table, origin, &options, stop, to)?;
                let counts = counting.finish(stored.messages);
                (stored, counts)
            }
        };
        Ok((stored, counts, (listing.first, listing.failed), started.elapsed()))
    }
}

/// The first rejected message, and the error that ended the list of rejects, if any.
type Left = (Option<Reject>, Option<Error>);

/// Returns whether the log failed rather than the source.
fn is_of_log(error: &Error) -> bool {
    use quarrier_messages::Error as Messages;
    matches!(
        error,
        Error::Messages(Messages::Log(_) | Messages::Store { .. }) | Error::Rejects { .. }
    )
}

/// Returns the permanent name of a source that can be read again.
fn identity(named: &Named) -> Option<String> {
    match named {
        Named::Path(path) if named.is_seekable() => {
            let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
            Some(name::of_path(path))
        }
        Named::Url(url) => Some(crate::source::shown(url)),
        _ => None,
    }
}

/// Lists rejects, and forwards all calls.
struct Listing<'l> {
    list: &'l mut Option<List>,
    watch: &'l mut dyn KeptWatch,
    first: Option<Reject>,
    failed: Option<Error>,
}

impl LoadWatch for Listing<'_> {
    fn rejected(&mut self, reject: &Reject) {
        self.first.get_or_insert_with(|| reject.clone());
        if let Some(list) = self.list
            && self.failed.is_none()
            && let Err(error) = list.add(reject)
        {
            self.failed = Some(error);
        }
    }

    fn progressed(&mut self, progress: &Progress) {
        self.watch.progressed(progress);
    }
}

/// The file that lists rejected messages.
struct List {
    path: PathBuf,
    file: BufWriter<File>,
}

impl List {
    fn create(path: &Path) -> Result<Self> {
        let path = path.to_path_buf();
        match File::create(&path) {
            Ok(file) => Ok(List { path, file: BufWriter::new(file) }),
            Err(error) => Err(Error::Rejects { path, error }),
        }
    }

    fn failed(&self, error: std::io::Error) -> Error {
        Error::Rejects { path: self.path.clone(), error }
    }

    fn add(&mut self, reject: &Reject) -> Result<()> {
        let place = (reject.line, reject.offset);
        let row = reject_row(&reject.source, place, &reject.fault.to_string(), &reject.bytes);
        writeln!(self.file, "{row}").map_err(|error| self.failed(error))
    }

    fn finish(mut self) -> Result<()> {
        self.file.flush().map_err(|error| self.failed(error))
    }
}

impl KeptLoaded {
    /// Returns the number of messages appended.
    pub fn messages(&self) -> u64 {
        self.sources.iter().map(|source| source.stored.messages).sum()
    }

    /// Returns the number of messages rejected.
    pub fn rejected(&self) -> u64 {
        self.sources.iter().map(|source| source.stored.rejected).sum()
    }

    /// Returns the number of bytes read, after decompression.
    pub fn bytes(&self) -> u64 {
        self.sources.iter().map(|source| source.stored.bytes).sum()
    }

    /// Counts, for each condition, the appended messages that satisfy it. Takes no time if these are the
    /// conditions of [`KeptLoad::counting`], unless a value of another type than the earlier ones, or a message
    /// for which a condition has no value, requires reading the messages again.
    ///
    /// # Errors
    /// Those of [`Filter::run`].
    pub fn filter(
        &self,
        kept: &DataFolder,
        table: &str,
        conditions: Conditions,
        opener: &Opener,
        stop: &Arc<AtomicBool>,
    ) -> Result<Filtered> {
        if let Some(filtered) = self.counted(&conditions) {
            return Ok(filtered);
        }
        let marks = self.sources.iter().map(|source| source.stored.marks.clone());
        let sources = Sources::kept(kept.store().runs_of(table, marks)?);
        let filter = Filter::new(conditions).form(Form::Count).workers(self.workers);
        filter.run(&sources, opener, stop, &mut |_: &Rows<'_>| Ok(()))
    }

    /// Returns the counts of the load, if it counted all messages by these conditions.
    fn counted(&self, conditions: &Conditions) -> Option<Filtered> {
        let counted = self.conditions.as_ref()?;
        if !counted.strings().eq(conditions.strings()) {
            return None;
        }
        let mut all: Option<Counts> = None;
        for source in &self.sources {
            let counts = source.counts.as_ref()?;
            all = Some(match all {
                Some(all) => all.and(counts)?,
                None => counts.clone(),
            });
        }
        Some(Filtered::counted(counted, all?.counts, self.messages()))
    }

    /// Returns statistics. All time counts as reading, since parsing and writing run concurrently.
    pub fn stats(&self) -> Stats {
        let seconds = self.elapsed.as_secs_f64();
        let mut stages = Stages::default();
        stages.read.busy_seconds = seconds;
        Stats {
            command: "load",
            bytes: self.bytes(),
            seconds,
            bytes_per_second: rate(self.bytes(), seconds),
            workers: self.workers,
            device: "cpu".to_string(),
            stages,
            limited_by: "work",
            remote: self.remote,
            messages: Some((self.messages(), self.rejected())),
            ..Stats::default()
        }
    }
}
