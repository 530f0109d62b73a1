//! A data folder: its tables, by their names.

mod changes;
mod checkpoint;
mod keyed;
mod open;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use quarrier_core::sync::lock;

use super::catalog::{Catalog, DEFINITIONS, NAME_BYTES_MAX};
use super::columns::{self, ColumnFiles};
use super::definition::Definition;
use super::files::Files;
use super::history::History;
use super::index::{Extent, Index, KeptTable};
use super::intake::{self, Intake, IntakeOptions, Sent};
use super::keyed::{Keyed, is_removal};
use super::load::{self, LoadOptions, LoadWatch, Origin, Stored};
use super::run::Run;
use super::snapshot::{Making, Snapshot, runs};
use super::spool::Spool;
use crate::log::disk::Disk;
use crate::log::{LOG_FOLDER, Log, Publication, Recovered, segment};
use crate::{Error, Result, Table};
use checkpoint::Indexing;

/// A data folder that is open: for writing with its lock, by one process at a time, or for reading.
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
    /// Where the folder is, for people.
    place: String,
    /// Where messages are put aside that are not all there yet.
    folder: PathBuf,
    /// The data folder, where it may be written to.
    disk: Option<Arc<dyn Disk>>,
    logs: Arc<dyn Disk>,
    files: Arc<Files>,
    /// Columns that were stored; None of one segment alone.
    columns: Option<ColumnFiles>,
    /// Columns are stored when so many bytes of messages have come.
    checkpoint_bytes: u64,
    log: Option<Log>,
    recovered: Recovered,
    state: Mutex<State>,
    /// Of tables with a key, deaths of rows that were read from the log once more, and the mark up to which
    /// they are all.
    past: Mutex<HashMap<u32, (History, u64)>>,
    notices: Mutex<Vec<String>>,
}

/// A table with a key, when it was asked for.
type KeyedCell = Arc<Mutex<Option<Keyed>>>;

#[derive(Default)]
struct State {
    catalog: Catalog,
    definitions: Catalog,
    index: Index,
    snapshots: HashMap<u32, Snapshot>,
    /// The rows of tables with a key, which one thread at a time moves on.
    keyed: HashMap<u32, KeyedCell>,
    /// Bytes of the batches that the file of the index has.
    indexed_bytes: u64,
}

/// Whether there is a segment of a log at `path`, or a data folder.
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

/// The batches that have messages.
fn messages(extents: &[Extent]) -> Vec<Extent> {
    extents.iter().filter(|extent| !is_removal(extent)).cloned().collect()
}

impl Store {
    /// What opening it found: damage, and the end that a crash tore.
    pub fn found(&self) -> &Recovered {
        &self.recovered
    }

    /// Whether the names of tables, or what they are declared to hold, are damaged. One whole copy of them
    /// is enough; without it, a table is called by its number, and has the columns that its messages
    /// show.
    pub fn is_catalog_damaged(&self) -> bool {
        let state = lock(&self.state);
        state.catalog.is_damaged || state.definitions.is_damaged
    }

    /// Whether it was opened for writing.
    pub fn is_writable(&self) -> bool {
        self.log.is_some()
    }

    /// Where the folder is.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// All tables, in the order in which they were made.
    ///
    /// # Errors
    /// [`Error::Log`] where what was appended since cannot be read.
    pub fn tables(&self) -> Result<Vec<KeptTable>> {
        self.refresh();
        let state = lock(&self.state);
        let numbers: BTreeSet<u32> = state.catalog.numbers().chain(state.index.numbers()).collect();
        let table = |number| state.index.table(number, state.catalog.name(number));
        Ok(numbers.into_iter().map(table).collect())
    }

    /// Makes a table of columns that are declared; without any, it has those that its messages show, as a
    /// table that a load makes. Returns whether it was made: not where there is one of this name.
    ///
    /// # Errors
    /// [`Error::Kept`] for a name that no table may have; [`Error::Log`] where the disk is full or fails.
    pub fn create(&self, name: &str, definition: &Definition) -> Result<bool> {
        self.writer()?;
        let mut state = lock(&self.state);
        if self.number(&state, name).is_ok() {
            return Ok(false);
        }
        self.add(&mut state, name, Some(definition)).map(|_| true)
    }

    /// What a table was declared to hold; None where its columns are those that its messages show.
    ///
    /// # Errors
    /// [`Error::Kept`] where there is none of this name.
    pub fn definition(&self, name: &str) -> Result<Option<Arc<Definition>>> {
        let number = self.number(&lock(&self.state), name)?;
        Ok(self.definition_of(number))
    }

    pub(super) fn definition_of(&self, number: u32) -> Option<Arc<Definition>> {
        let state = lock(&self.state);
        let definition = state.definitions.text(number).and_then(Definition::of_text);
        definition.filter(|it| !it.columns().is_empty()).map(Arc::new)
    }

    /// Begins to gather messages that come piece by piece.
    pub fn intake(&self) -> Intake {
        Intake::new(self.spool())
    }

    pub(super) fn spool(&self) -> Spool {
        Spool::new(&self.folder)
    }

    /// Appends what was gathered to a table that is there: all of it or nothing.
    ///
    /// # Errors
    /// [`Error::Kept`] where there is none of this name, and for messages of a format that is not kept;
    /// [`Error::Log`] where the disk is full or fails; [`Error::Cancelled`].
    pub fn take_in(
        &self,
        table: &str,
        intake: &Intake,
        options: &IntakeOptions,
        stop: &AtomicBool,
    ) -> Result<Sent> {
        let log = self.writer()?;
        let number = self.number(&lock(&self.state), table)?;
        let definition = self.definition_of(number);
        intake::take((self, log), (number, definition), intake, options, stop)
    }

    /// Appends the messages of a source to a table, which is made where it is not there. What is
    /// told to `watch` as progress is on the disk. A source that was loaded before goes on where it
    /// was: see [`Origin`].
    ///
    /// # Errors
    /// [`Error::Kept`] for a name that no table may have, and for files of columns; [`Error::Log`]
    /// where the disk is full or fails; and where the source cannot be read. What was appended
    /// before stays.
    ///
    /// # Panics
    /// When a worker panics.
    pub fn load(
        &self,
        table: &str,
        origin: Origin<'_>,
        options: &LoadOptions,
        stop: &AtomicBool,
        watch: &mut dyn LoadWatch,
    ) -> Result<Stored> {
        let number = self.made(table)?;
        let mut watch = Indexing { store: self, watch };
        load::load(self, number, origin, options, stop, &mut watch)
    }

    /// A table as it is now. Cheap where nothing was appended since it was asked for last; where its columns
    /// were stored, only what came since is parsed.
    ///
    /// # Errors
    /// [`Error::Kept`] where there is none of this name; [`Error::Log`] and [`Error::Source`] where it
    /// cannot be read; [`Error::Cancelled`].
    ///
    /// # Panics
    /// When a worker panics.
    pub fn table(&self, name: &str, workers: usize, stop: &AtomicBool) -> Result<Arc<Table>> {
        self.made_of(name, (workers, stop), self.columns.as_ref())
    }

    /// A table as it was asked for last, where nothing was appended since. Takes no time.
    pub fn known(&self, name: &str) -> Option<Arc<Table>> {
        let state = lock(&self.state);
        let is_read =
            self.log.as_ref().is_none_or(|log| log.next_mark() <= state.index.next_mark.max(1));
        let number = self.number(&state, name).ok().filter(|_| is_read)?;
        let snapshot = state.snapshots.get(&number)?;
        let is_newest = snapshot.batches == state.index.extents(number).len();
        is_newest.then(|| Arc::clone(&snapshot.table))
    }

    /// As [`Store::table`], made from all of its messages in the log once more.
    ///
    /// # Errors
    /// As [`Store::table`].
    ///
    /// # Panics
    /// When a worker panics.
    pub fn anew(&self, name: &str, workers: usize, stop: &AtomicBool) -> Result<Arc<Table>> {
        {
            let mut state = lock(&self.state);
            let number = self.number(&state, name)?;
            state.snapshots.remove(&number);
            state.keyed.remove(&number);
        }
        self.made_of(name, (workers, stop), None)
    }

    /// A table, made of the one that was made last, or else of what is stored, and of what came since.
    fn made_of(
        &self,
        name: &str,
        (workers, stop): (usize, &AtomicBool),
        stored: Option<&ColumnFiles>,
    ) -> Result<Arc<Table>> {
        self.refresh();
        let (number, extents, known) = {
            let state = lock(&self.state);
            let number = self.number(&state, name)?;
            let known = state.snapshots.get(&number).cloned();
            let extents = state.index.extents(number);
            if let Some(known) = known.as_ref().filter(|it| it.batches == extents.len()) {
                return Ok(Arc::clone(&known.table));
            }
            (number, extents.to_vec(), known)
        };
        let definition = self.definition_of(number);
        let schema = definition.as_ref().map(|definition| definition.schema());
        let (name, files) = (&self.named(name), &self.files);
        let making = Making { name, files, workers, stop, schema: schema.as_ref() };
        let keyed = definition.filter(|definition| !definition.key().is_empty());
        let read = |stored: &ColumnFiles| stored.read(number, &extents, self.is_writable());
        let snapshot = match keyed {
            Some(definition) => {
                let read = || stored.and_then(|stored| Some((read(stored)?, stored)));
                self.keyed_snapshot((number, &definition), &making, &extents, read)?
            }
            None => {
                let known = known.or_else(|| stored.and_then(read));
                making.table(known.as_ref(), &extents)?
            }
        };
        {
            let mut state = lock(&self.state);
            let newest = state.snapshots.entry(number).or_insert_with(|| snapshot.clone());
            if newest.batches < snapshot.batches {
                *newest = snapshot.clone();
            }
        }
        // A table is none the worse for columns that could not be stored.
        let _ = self.store(number, &snapshot, &extents, Some(self.checkpoint_bytes));
        Ok(snapshot.table)
    }

    /// Lets go of all tables that were made.
    pub fn forget(&self) {
        let mut state = lock(&self.state);
        state.snapshots.clear();
        state.keyed.clear();
        drop(state);
        lock(&self.past).clear();
    }

    /// The messages of a table as sources: one, unless they are written in several ways. Of a table with a key,
    /// those that are its rows now, after which its other messages are looked for.
    ///
    /// # Errors
    /// As [`Store::table`].
    ///
    /// # Panics
    /// When a worker panics.
    pub fn runs(&self, name: &str) -> Result<Vec<Run>> {
        self.refresh();
        let number = self.number(&lock(&self.state), name)?;
        if self.keyed_definition(number).is_some() {
            return self.alive_runs(name, number);
        }
        let state = lock(&self.state);
        runs(&self.named(name), &self.files, &messages(state.index.extents(number)))
    }

    /// The messages of a table with marks in one of these ranges, which batches begin and end with; of a table
    /// with a key, also those that were replaced or removed since.
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

    /// The messages of all tables as sources, in the order of the log; of tables with a key, also those that
    /// were replaced or removed since.
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

    /// Ends writing: stores the columns of tables that have grown, notes the end of the log, and gives back
    /// the room that it did not need.
    ///
    /// # Errors
    /// [`Error::Log`] where the end could not be noted. All is kept all the same.
    pub fn close(mut self) -> Result<()> {
        // The log has all that these columns have.
        let _ = self.store_all(Some(self.checkpoint_bytes.min(columns::BYTES_MIN)));
        let _ = self.store_index(Some(self.checkpoint_bytes));
        self.log.take().map_or(Ok(()), |log| Ok(log.close()?))
    }

    /// The log, where it may be written to.
    pub(super) fn writer(&self) -> Result<&Log> {
        self.log.as_ref().ok_or_else(|| Error::Kept {
            place: self.place.clone(),
            reason: "it is open for reading only".to_string(),
        })
    }

    /// The messages of a batch, by who sent it; None where there is none any more.
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

    /// Takes in what is durable since.
    fn refresh(&self) {
        let Some(log) = &self.log else { return };
        self.take_placed(log, &mut lock(&self.state));
    }

    fn take_placed(&self, log: &Log, state: &mut State) {
        for entry in log.take_placed() {
            // What cannot be read says so when it is asked for.
            let payload = || {
                let messages = self.files.messages(&entry.place());
                Cow::Owned(messages.map(|it| it.bytes().to_vec()).unwrap_or_default())
            };
            state.index.add_with(&entry, payload);
        }
    }

    fn number(&self, state: &State, name: &str) -> Result<u32> {
        let by_name = state.catalog.number(name);
        // One that no catalog names is called by its number.
        let unnamed = || state.index.numbers().find(|number| state.catalog.name(*number) == name);
        by_name.or_else(unnamed).ok_or_else(|| {
            let numbers = state.catalog.numbers().chain(state.index.numbers());
            let names: BTreeSet<String> = numbers.map(|it| state.catalog.name(it)).collect();
            let names: Vec<String> = names.into_iter().collect();
            let reason = match names.is_empty() {
                true => format!("has no table '{name}', nor any other"),
                false => format!("has no table '{name}'; there are: {}", names.join(", ")),
            };
            Error::Kept { place: self.place.clone(), reason }
        })
    }

    /// The number of a table, which is made where it is not there.
    fn made(&self, name: &str) -> Result<u32> {
        self.writer()?;
        let mut state = lock(&self.state);
        match self.number(&state, name) {
            Ok(number) => Ok(number),
            Err(_) => self.add(&mut state, name, None),
        }
    }

    /// Makes a table.
    fn add(&self, state: &mut State, name: &str, definition: Option<&Definition>) -> Result<u32> {
        let fail = |reason: String| Error::Kept { place: self.place.clone(), reason };
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains(char::is_control) {
            return Err(fail(format!(
                "'{}' cannot be the name of a table: 1 to {NAME_BYTES_MAX} bytes without control \
                 characters can",
                name.escape_debug()
            )));
        }
        let Some(disk) = &self.disk else { return Err(fail("it has no catalog".to_string())) };
        let used = state.index.numbers().max().unwrap_or(0);
        let Some((catalog, number)) = state.catalog.with(name, used) else {
            return Err(fail("it has as many tables as there may be".to_string()));
        };
        // Before the name: what was said of a table that never got one is said no longer.
        let text = definition.map(Definition::to_text);
        if text.is_some() || state.definitions.text(number).is_some() {
            let definitions = state.definitions.saying(number, text);
            let Some(definitions) = definitions else {
                return Err(fail("its tables have as many columns as there may be".to_string()));
            };
            definitions.write_to(disk.as_ref(), DEFINITIONS)?;
            state.definitions = definitions;
        }
        catalog.write(disk.as_ref())?;
        state.catalog = catalog;
        Ok(number)
    }

    /// What a table is called in errors.
    fn named(&self, name: &str) -> String {
        format!("{}/{name}", self.place)
    }
}
