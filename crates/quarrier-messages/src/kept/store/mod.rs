//! A data folder: its tables by name.

mod changes;
mod checkpoint;
mod keyed;
mod open;
mod retain;
mod steps;
mod tend;

pub use retain::RetainResult;
pub use tend::Tended;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use quarrier_core::sync::lock;

use super::catalog::{Catalog, DEFINITIONS, NAME_BYTES_MAX};
use super::columns::{self, ColumnFiles};
use super::copy::{CopyStore, LogCopier};
use super::definition::Definition;
use super::files::Files;
use super::history::History;
use super::index::{Extent, Index, KeptTable, Listed};
use super::intake::{self, Intake, IntakeOptions, PendingAppend};
use super::keyed::{Keyed, is_removal};
use super::load::{self, LoadOptions, LoadWatch, Origin, Stored};
use super::observe::{Nobody, Observer};
use super::retained::Retained;
use super::run::Run;
use super::snapshot::{Making, Snapshot, runs};
use super::spool::Spool;
use crate::log::disk::Disk;
use crate::log::{LOG_FOLDER, Log, Publication, Recovered, segment};
use crate::{Error, Result, Table};
use checkpoint::Indexing;
use steps::Steps;

/// An open data folder: for writing, by one process at a time, which holds its lock; or for reading.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use quarrier_messages::Format;
/// use quarrier_messages::kept::{LoadOptions, Origin, Store};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let store = Store::open(folder.path())?;
/// let stop = AtomicBool::new(false);
/// let mut lines = "{\"qty\":7}\n{\"qty\":8}\n".as_bytes();
/// let origin = Origin::Stream { name: "lines", reader: &mut lines };
/// let stored = store.load("orders", origin, &LoadOptions::new(Format::Json), &stop, &mut ())?;
/// assert_eq!(stored.messages, 2); // on the disk now
/// let table = store.table("orders", 0, &stop)?;
/// assert_eq!(table.rows(), 2);
/// store.close()?;
/// # Ok(())
/// # }
/// ```
pub struct Store {
    /// The folder's path, for display.
    place: String,
    /// The folder where incomplete messages are spooled.
    folder: PathBuf,
    /// The data folder, if this process may write to it.
    disk: Option<Arc<dyn Disk>>,
    logs: Arc<dyn Disk>,
    files: Arc<Files>,
    /// Checkpoints of columns; None for a single segment.
    columns: Option<ColumnFiles>,
    /// Number of bytes of new messages at which columns are stored.
    checkpoint_bytes: u64,
    log: Option<Log>,
    recovered: Recovered,
    state: Mutex<State>,
    /// Deaths of rows, found by reading the log again, and the mark up to which they are complete; by table
    /// with a key.
    past: Mutex<HashMap<u32, (History, u64)>>,
    /// Changes that readers share.
    steps: Steps,
    notices: Mutex<Vec<String>>,
    /// One thread at a time removes messages.
    retaining: Mutex<()>,
    /// Whether a thread merges small segments in the background.
    is_tended: AtomicBool,
}

/// The rows of a table with a key, once requested.
type KeyedCell = Arc<Mutex<Option<Keyed>>>;

#[derive(Default)]
struct State {
    catalog: Catalog,
    definitions: Catalog,
    /// Definitions that were parsed, with their text.
    parsed: HashMap<u32, (String, Option<Arc<Definition>>)>,
    index: Index,
    snapshots: HashMap<u32, Snapshot>,
    /// The rows of tables with a key; one thread at a time applies messages to each.
    keyed: HashMap<u32, KeyedCell>,
    /// Bytes of the batches in the index file.
    indexed_bytes: u64,
    retained: Retained,
    /// Bytes of batches appended since the folder was opened, and their number when retention was applied last.
    appended_bytes: u64,
    retained_at: u64,
}

/// Returns whether `path` is a segment of a log, or a data folder.
pub fn is_log(path: &Path) -> bool {
    if path.is_dir() {
        return path.join(LOG_FOLDER).is_dir();
    }
    let mut head = [0; 8];
    let is_file = fs::metadata(path).is_ok_and(|meta| meta.is_file());
    let mut read = || fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    let is_named = path.extension().is_some_and(|ending| ending == "qlog");
    is_file && (is_named || (read().is_ok() && head == *segment::MAGIC))
}

/// Returns the batches that have messages.
fn messages(extents: &[Extent]) -> Vec<Extent> {
    extents.iter().filter(|extent| !is_removal(extent)).cloned().collect()
}

impl Store {
    /// Returns the result of recovery: damage, and a torn end.
    pub fn found(&self) -> &Recovered {
        &self.recovered
    }

    /// Returns whether the names, declarations or bounds of tables are damaged. One intact copy of them is
    /// enough; without any, tables are called by their numbers, infer their columns from their messages, and
    /// keep all messages.
    pub fn is_catalog_damaged(&self) -> bool {
        let state = lock(&self.state);
        state.catalog.is_damaged || state.definitions.is_damaged || state.retained.is_damaged
    }

    /// Returns whether the folder was opened for writing.
    pub fn is_writable(&self) -> bool {
        self.log.is_some()
    }

    /// Returns the path of the folder.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Returns all tables, in the order of their creation.
    ///
    /// # Errors
    /// [`Error::Log`] if newly appended messages cannot be read.
    pub fn tables(&self) -> Result<Vec<KeptTable>> {
        self.refresh();
        let state = lock(&self.state);
        let numbers: BTreeSet<u32> = state.catalog.numbers().chain(state.index.numbers()).collect();
        let table = |number| state.index.table(number, state.catalog.name(number));
        Ok(numbers.into_iter().map(table).collect())
    }

    /// Creates a table with declared columns; without any, the table infers its columns from its messages,
    /// like a table that a load creates. Returns false if a table with this name exists.
    ///
    /// # Errors
    /// [`Error::Store`] for an invalid name; [`Error::Log`] if the disk is full or fails.
    pub fn create(&self, name: &str, definition: &Definition) -> Result<bool> {
        self.writer()?;
        let mut state = lock(&self.state);
        if self.number(&state, name).is_ok() {
            return Ok(false);
        }
        self.add(&mut state, name, Some(definition)).map(|_| true)
    }

    /// Returns the definition of a table; None if it infers its columns from its messages.
    ///
    /// # Errors
    /// [`Error::Store`] if no table has this name.
    pub fn definition(&self, name: &str) -> Result<Option<Arc<Definition>>> {
        let number = self.number(&lock(&self.state), name)?;
        Ok(self.definition_of(number))
    }

    pub(super) fn definition_of(&self, number: u32) -> Option<Arc<Definition>> {
        let mut state = lock(&self.state);
        let State { definitions, parsed, .. } = &mut *state;
        let text = definitions.text(number)?;
        match parsed.get(&number) {
            Some((known, definition)) if known == text => definition.clone(),
            // Statements ask for it several times each.
            _ => {
                let definition = Definition::of_text(text);
                let definition = definition.filter(|it| !it.columns().is_empty()).map(Arc::new);
                parsed.insert(number, (text.to_string(), definition.clone()));
                definition
            }
        }
    }

    /// Begins to gather messages for an existing table, which arrive piece by piece; see [`Store::take_in`].
    ///
    /// # Errors
    /// [`Error::Store`] if no table has this name, or the folder was opened for reading.
    pub fn intake(&self, table: &str, options: IntakeOptions) -> Result<Intake> {
        let number = self.number(&lock(&self.state), table)?;
        Intake::new(self, (number, self.definition_of(number)), options)
    }

    pub(super) fn spool(&self) -> Spool {
        Spool::new(&self.folder)
    }

    /// Appends gathered messages to their table: all of them or none.
    ///
    /// # Errors
    /// [`Error::Store`] if the messages are compressed, or the log does not store their format; [`Error::Log`]
    /// if the disk is full or fails; [`Error::Cancelled`], also after a failed [`Intake::push`].
    pub fn take_in(&self, intake: Intake, stop: &AtomicBool) -> Result<PendingAppend> {
        intake::take(self.writer()?, intake, stop)
    }

    /// Like [`Store::take_in`], but does not block: returns the messages, for `take_in`, if they are many, or if
    /// the log's queue is full.
    ///
    /// # Errors
    /// As [`Store::take_in`].
    pub fn take_in_now(
        &self,
        intake: Box<Intake>,
    ) -> Result<std::result::Result<PendingAppend, Box<Intake>>> {
        intake::take_now(self.writer()?, intake)
    }

    /// Appends the messages of a source to a table, which it creates if none exists. The progress that it
    /// reports to `watch` is on the disk. A source that was loaded before resumes where that load ended: see
    /// [`Origin`].
    ///
    /// # Errors
    /// [`Error::Store`] for an invalid name, and for columnar formats; [`Error::Log`] if the disk is full or
    /// fails; and errors of reading the source. Messages appended before an error remain.
    ///
    /// # Panics
    /// If a worker panics.
    pub fn load(
        &self,
        table: &str,
        origin: Origin<'_>,
        options: &LoadOptions,
        stop: &AtomicBool,
        watch: &mut dyn LoadWatch,
    ) -> Result<Stored> {
        self.load_observed(table, origin, options, stop, (watch, &Nobody))
    }

    /// Like [`Store::load`], and passes every message to an observer when it is parsed: before it is in the log,
    /// so the observations of a load that fails, or appends fewer messages, are void.
    ///
    /// # Errors
    /// As [`Store::load`].
    ///
    /// # Panics
    /// If a worker panics.
    pub fn load_observed<O: Observer>(
        &self,
        table: &str,
        origin: Origin<'_>,
        options: &LoadOptions,
        stop: &AtomicBool,
        (watch, observer): (&mut dyn LoadWatch, &O),
    ) -> Result<Stored> {
        let number = self.made(table)?;
        let mut watch = Indexing { store: self, watch };
        load::load(self, number, origin, options, stop, (&mut watch, observer))
    }

    /// Returns the current table. Cheap if nothing was appended since the last request; if its columns were
    /// stored, it parses only newer messages.
    ///
    /// # Errors
    /// [`Error::Store`] if no table has this name; [`Error::Log`] and [`Error::Source`] if it cannot be read;
    /// [`Error::Cancelled`].
    ///
    /// # Panics
    /// If a worker panics.
    pub fn table(&self, name: &str, workers: usize, stop: &AtomicBool) -> Result<Arc<Table>> {
        self.made_of(name, (workers, stop), self.columns.as_ref())
    }

    /// Returns the table of the last request if nothing was appended since. Takes no time.
    pub fn known(&self, name: &str) -> Option<Arc<Table>> {
        let state = lock(&self.state);
        let is_read =
            self.log.as_ref().is_none_or(|log| log.next_mark() <= state.index.next_mark.max(1));
        let number = self.number(&state, name).ok().filter(|_| is_read)?;
        let snapshot = state.snapshots.get(&number)?;
        let is_newest = snapshot.is_of(&state.index.listed(number));
        is_newest.then(|| Arc::clone(&snapshot.table))
    }

    /// Like [`Store::table`], but rebuilds it from all of its messages in the log.
    ///
    /// # Errors
    /// As [`Store::table`].
    ///
    /// # Panics
    /// If a worker panics.
    pub fn rebuild(&self, name: &str, workers: usize, stop: &AtomicBool) -> Result<Arc<Table>> {
        {
            let mut state = lock(&self.state);
            let number = self.number(&state, name)?;
            state.snapshots.remove(&number);
            state.keyed.remove(&number);
            self.steps.forget(number);
        }
        self.made_of(name, (workers, stop), None)
    }

    /// Builds a table from the previous one, or else from the checkpoint, and from newer messages.
    fn made_of(
        &self,
        name: &str,
        (workers, stop): (usize, &AtomicBool),
        stored: Option<&ColumnFiles>,
    ) -> Result<Arc<Table>> {
        loop {
            self.refresh();
            let (number, listed, known, from) = {
                let state = lock(&self.state);
                let number = self.number(&state, name)?;
                let known = state.snapshots.get(&number).cloned();
                let listed = state.index.listed(number);
                if let Some(known) = known.as_ref().filter(|it| it.is_of(&listed)) {
                    return Ok(Arc::clone(&known.table));
                }
                (number, listed, known, self.first_mark(&state, number))
            };
            let made =
                self.made_from((name, number, from), (listed, known), (workers, stop), stored);
            // Retention may have removed messages meanwhile, even their files.
            let is_cut = || self.first_mark(&lock(&self.state), number) > from;
            match made {
                Ok(Some(table)) => return Ok(table),
                Ok(None) => {}
                Err(_) if is_cut() && !stop.load(Ordering::Relaxed) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Builds a table of these batches; None if retention removed some of them meanwhile.
    fn made_from(
        &self,
        (name, number, from): (&str, u32, u64),
        (listed, known): (Listed, Option<Snapshot>),
        (workers, stop): (usize, &AtomicBool),
        stored: Option<&ColumnFiles>,
    ) -> Result<Option<Arc<Table>>> {
        let definition = self.definition_of(number);
        let schema = definition.as_ref().map(|definition| definition.schema());
        let (name, files) = (&self.named(name), &self.files);
        let is_tended = self.is_tended.load(Ordering::Relaxed);
        let making = Making { name, files, workers, stop, schema: schema.as_ref(), is_tended };
        let keyed = definition.as_deref().filter(|definition| !definition.key().is_empty());
        let about = (self.is_writable(), from > 1);
        let read = |stored: &ColumnFiles| stored.read((number, &listed), about);
        let snapshot = match keyed {
            Some(definition) => {
                let read = || stored.and_then(|stored| Some((read(stored)?, stored)));
                let made =
                    self.keyed_snapshot((number, definition, from), &making, &listed, read)?;
                let Some(made) = made else { return Ok(None) };
                made
            }
            None => {
                let trim = |it: Snapshot| it.trimmed(&listed, definition.as_deref(), workers);
                let known = known.and_then(trim).or_else(|| stored.and_then(read));
                making.table(known.as_ref(), &listed)?
            }
        };
        self.put_snapshot(number, &snapshot);
        // A failure to store its columns does not affect the table.
        let _ = self.store(number, &snapshot, &listed, Some(self.checkpoint_bytes));
        Ok(Some(snapshot.table))
    }

    /// Offers a snapshot to later requests, unless a newer one is there or retention has made it obsolete.
    fn put_snapshot(&self, number: u32, snapshot: &Snapshot) {
        let mut state = lock(&self.state);
        if state.index.listed(number).gone != snapshot.gone {
            return;
        }
        let newest = state.snapshots.entry(number).or_insert_with(|| snapshot.clone());
        if newest.gone != snapshot.gone || newest.end < snapshot.end {
            *newest = snapshot.clone();
        }
    }

    /// Returns the mark from which the log has all messages of a table.
    fn first_mark(&self, state: &State, number: u32) -> u64 {
        // Segments that retention did not remove are lost.
        let oldest = self.recovered.oldest_mark.filter(|oldest| *oldest > state.retained.removed);
        state.retained.bounds(number).from.max(oldest.unwrap_or(1))
    }

    /// Drops all tables built so far.
    pub fn forget(&self) {
        let mut state = lock(&self.state);
        state.snapshots.clear();
        state.keyed.clear();
        drop(state);
        self.steps.clear();
        lock(&self.past).clear();
    }

    /// Returns the messages of a table as sources: one, unless they have several formats. For a table with a
    /// key, only the messages that are its current rows.
    ///
    /// # Errors
    /// As [`Store::table`].
    ///
    /// # Panics
    /// If a worker panics.
    pub fn runs(&self, name: &str) -> Result<Vec<Run>> {
        self.refresh();
        let number = self.number(&lock(&self.state), name)?;
        if self.keyed_definition(number).is_some() {
            return self.alive_runs(name, number);
        }
        let state = lock(&self.state);
        runs(&self.named(name), &self.files, &messages(state.index.extents(number)))
    }

    /// Returns the messages of a table with marks in one of these ranges, which must begin and end with
    /// batches. For a table with a key, that includes messages whose rows were replaced or removed since.
    ///
    /// # Errors
    /// As [`Store::table`].
    pub fn runs_of(
        &self,
        name: &str,
        marks: impl IntoIterator<Item = Range<u64>>,
    ) -> Result<Vec<Run>> {
        self.refresh();
        let ranges: Vec<Range<u64>> = marks.into_iter().collect();
        let state = lock(&self.state);
        let number = self.number(&state, name)?;
        let is_in =
            |extent: &Extent| ranges.iter().any(|range| range.contains(&extent.marks.start));
        let mut extents = messages(state.index.extents(number));
        extents.retain(is_in);
        runs(&self.named(name), &self.files, &extents)
    }

    /// Returns the messages of all tables as sources, in the order of the log. For tables with a key, that
    /// includes messages whose rows were replaced or removed since.
    ///
    /// # Errors
    /// As [`Store::table`].
    pub fn all_runs(&self) -> Result<Vec<Run>> {
        self.refresh();
        let state = lock(&self.state);
        let numbers = state.index.numbers();
        let mut extents: Vec<Extent> =
            numbers.flat_map(|number| messages(state.index.extents(number))).collect();
        extents.sort_by_key(|extent| extent.marks.start);
        runs(&self.place, &self.files, &extents)
    }

    /// Returns a copier of the log to a place.
    ///
    /// # Errors
    /// [`Error::Store`] if the folder is open for reading only.
    pub fn copier(&self, to: Arc<dyn CopyStore>) -> Result<LogCopier> {
        let log = self.writer()?;
        // A folder that is open for writing has a catalog.
        let disk = self.disk.as_ref().unwrap_or(&self.logs);
        Ok(LogCopier::new((Arc::clone(disk), Arc::clone(&self.logs)), log.growth(), to))
    }

    /// Ends writing: [settles](Store::settle), records the end of the log, and frees the space that the log did
    /// not need.
    ///
    /// # Errors
    /// [`Error::Log`] if the end could not be recorded. No message is lost even then.
    pub fn close(mut self) -> Result<()> {
        self.settle();
        self.log.take().map_or(Ok(()), |log| Ok(log.close()?))
    }

    /// Applies retention and stores the columns of tables that have grown, so that the next opening takes less
    /// time. If the disk is full or fails, no message is lost, and the next opening takes longer.
    pub fn settle(&self) {
        let is_bounded = lock(&self.state).retained.tables().next().is_some();
        if is_bounded {
            let _ = self.retain();
        }
        let _ = self.store_all(Some(self.checkpoint_bytes.min(columns::BYTES_MIN)));
        let _ = self.store_index(Some(self.checkpoint_bytes));
    }

    /// Returns the log, if it may be written to.
    pub(super) fn writer(&self) -> Result<&Log> {
        self.log.as_ref().ok_or_else(|| Error::Store {
            place: self.place.clone(),
            reason: "it is open for reading only".to_string(),
        })
    }

    /// Returns the messages of the batch with this publication; None if it no longer exists.
    pub(super) fn payload(&self, table: u32, publication: &Publication) -> Result<Option<Vec<u8>>> {
        let find = || lock(&self.state).index.published(table, publication).map(|it| it.place);
        let mut place = find();
        if place.is_none() {
            self.refresh();
            place = find();
        }
        let read = |place| -> io::Result<Vec<u8>> {
            let messages = self.files.messages(&place)?;
            Ok(messages.bytes().to_vec())
        };
        let payload = place.map(read).transpose();
        let fail =
            |error| crate::log::Error::io(&self.place, "read the last batch of a load", error);
        Ok(payload.map_err(fail)?)
    }

    /// Adds the batches that became durable since the last call.
    fn refresh(&self) {
        let Some(log) = &self.log else { return };
        self.take_placed(log, &mut lock(&self.state));
    }

    fn take_placed(&self, log: &Log, state: &mut State) {
        for entry in log.take_placed() {
            // A payload that cannot be read yields an error when it is requested.
            let payload = || {
                let messages = self.files.messages(&entry.place());
                Cow::Owned(messages.map(|it| it.bytes().to_vec()).unwrap_or_default())
            };
            state.index.add_with(&entry, payload);
            state.appended_bytes += u64::from(entry.place().bytes);
        }
    }

    fn number(&self, state: &State, name: &str) -> Result<u32> {
        let by_name = state.catalog.number(name);
        // A table without a name in the catalog is called by its number.
        let unnamed = || state.index.numbers().find(|number| state.catalog.name(*number) == name);
        by_name.or_else(unnamed).ok_or_else(|| {
            let numbers = state.catalog.numbers().chain(state.index.numbers());
            let names: BTreeSet<String> = numbers.map(|it| state.catalog.name(it)).collect();
            let names: Vec<String> = names.into_iter().collect();
            let reason = match names.is_empty() {
                true => format!("has no table '{name}'; it has no tables"),
                false => format!("has no table '{name}'; there are: {}", names.join(", ")),
            };
            Error::Store { place: self.place.clone(), reason }
        })
    }

    /// Returns the number of a table, which it creates if none exists.
    fn made(&self, name: &str) -> Result<u32> {
        self.writer()?;
        let mut state = lock(&self.state);
        match self.number(&state, name) {
            Ok(number) => Ok(number),
            Err(_) => self.add(&mut state, name, None),
        }
    }

    /// Creates a table.
    fn add(&self, state: &mut State, name: &str, definition: Option<&Definition>) -> Result<u32> {
        let fail = |reason: String| Error::Store { place: self.place.clone(), reason };
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains(char::is_control) {
            return Err(fail(format!(
                "'{}' cannot be the name of a table: 1 to {NAME_BYTES_MAX} bytes without control \
                 characters can",
                name.escape_debug()
            )));
        }
        let Some(disk) = &self.disk else {
            return Err(fail("it has no catalog: open the data folder, not a segment".to_string()));
        };
        let used = state.index.numbers().max().unwrap_or(0);
        let Some((catalog, number)) = state.catalog.with(name, used) else {
            return Err(fail("it has the maximum number of tables".to_string()));
        };
        // Write the declaration before the name: it replaces that of a table that never got a name.
        let text = definition.map(Definition::to_text);
        if text.is_some() || state.definitions.text(number).is_some() {
            let definitions = state.definitions.with_text(number, text);
            let Some(definitions) = definitions else {
                return Err(fail("its tables have the maximum number of columns".to_string()));
            };
            definitions.write_to(disk.as_ref(), DEFINITIONS)?;
            state.definitions = definitions;
        }
        catalog.write(disk.as_ref())?;
        state.catalog = catalog;
        Ok(number)
    }

    /// Returns the folder and name of a table for errors.
    fn named(&self, name: &str) -> String {
        format!("{}/{name}", self.place)
    }
}
