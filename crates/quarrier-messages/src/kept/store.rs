//! A data folder: its tables, by their names.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quarrier_core::sync::lock;

use super::catalog::{Catalog, DEFINITIONS, NAME_BYTES_MAX};
use super::definition::Definition;
use super::files::Files;
use super::index::{Extent, Index, KeptTable};
use super::intake::{self, Intake, IntakeOptions, Sent};
use super::load::{self, LoadOptions, LoadWatch, Origin, Stored};
use super::run::Run;
use super::segment::OneSegment;
use super::snapshot::{Making, Snapshot, runs};
use super::spool::Spool;
use crate::log::disk::{Disk, RealDisk};
use crate::log::{
    DAMAGES_MAX, Damage, Event, Follower, LOG_FOLDER, Log, Opener, Options, Publication, Reader,
    Recovered, segment, skim,
};
use crate::{Error, Result, Table};

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
    log: Option<Log>,
    recovered: Recovered,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    catalog: Catalog,
    definitions: Catalog,
    index: Index,
    snapshots: HashMap<u32, Snapshot>,
    follower: Option<Follower>,
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

impl Store {
    /// Opens a data folder for writing, which is made where it is not there: takes the lock, reads all
    /// of the log, and cuts off what a crash tore.
    ///
    /// # Errors
    /// [`Error::Log`] where another process has the lock, or the system refuses.
    pub fn open(folder: &Path) -> Result<Store> {
        Store::open_with(folder, Options::default())
    }

    /// As [`Store::open`], with other sizes of the log.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_with(folder: &Path, options: Options) -> Result<Store> {
        let mut index = Index::default();
        let log = Opener::new().options(options).open(folder, |entry| index.add(&entry))?;
        let disk = disk(folder)?;
        let logs = self::disk(&folder.join(LOG_FOLDER))?;
        let place = folder.display().to_string();
        Store::over(place, (Some(disk), logs), Some(log), index)
    }

    /// As [`Store::open_with`], on any disks and without a lock: one for the data folder, one for
    /// the log in it.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on(disk: Arc<dyn Disk>, logs: Arc<dyn Disk>, options: Options) -> Result<Store> {
        let mut index = Index::default();
        let opener = Opener::new().options(options);
        let log = opener.open_on(Arc::clone(&logs), |entry| index.add(&entry))?;
        Store::over(disk.path(""), (Some(disk), logs), Some(log), index)
    }

    fn over(
        place: String,
        (disk, logs): (Option<Arc<dyn Disk>>, Arc<dyn Disk>),
        log: Option<Log>,
        index: Index,
    ) -> Result<Store> {
        // Read behind the log: whatever table has a message is in it.
        let (catalog, definitions) = said(disk.as_deref())?;
        let recovered = log.as_ref().map(|log| log.recovered().clone()).unwrap_or_default();
        let files = Arc::new(Files::new(Arc::clone(&logs)));
        let state = Mutex::new(State { catalog, definitions, index, ..State::default() });
        let folder = PathBuf::from(&place);
        Ok(Store { place, folder, disk, logs, files, log, recovered, state })
    }

    /// Opens a data folder for reading, or a segment of a log by its file. Nothing is changed, and
    /// another process may write meanwhile.
    ///
    /// # Errors
    /// [`Error::Kept`] where there is no log, [`Error::Log`] where the system refuses.
    pub fn read(path: &Path) -> Result<Store> {
        let place = path.display().to_string();
        if path.is_file() {
            let logs = OneSegment::open(path);
            let logs = logs.map_err(|e| crate::log::Error::io(&place, "open the segment", e))?;
            // In its own data folder, if it still lies there.
            let folder =
                path.parent().and_then(Path::parent).filter(|it| !it.as_os_str().is_empty());
            let disk = folder.and_then(|folder| self::disk(folder).ok());
            return Store::over(place, (disk, Arc::new(logs)), None, Index::default())?.recovered();
        }
        let logs = path.join(LOG_FOLDER);
        if !logs.is_dir() {
            let reason = "is no data folder: it has no log; 'quarrier load --data' makes one";
            return Err(Error::Kept { place, reason: reason.to_string() });
        }
        let (disk, logs) = (disk(path)?, self::disk(&logs)?);
        Store::over(place, (Some(disk), logs), None, Index::default())?.recovered()
    }

    /// As [`Store::read`] of a folder, by a look at the headers of batches: what messages are is seen, and
    /// compared with their checksums, when they are read. None where something about the log is out of
    /// the ordinary, so that all of it must be read to say what.
    ///
    /// # Errors
    /// [`Error::Log`] where the system refuses.
    pub fn skimmed(folder: &Path) -> Result<Option<Store>> {
        let logs = folder.join(LOG_FOLDER);
        if !logs.is_dir() {
            return Ok(None);
        }
        let (disk, logs) = (disk(folder)?, self::disk(&logs)?);
        let Some(entries) = skim(&logs)? else { return Ok(None) };
        let place = folder.display().to_string();
        let store = Store::over(place, (Some(disk), logs), None, Index::default())?;
        {
            let mut state = lock(&store.state);
            for entry in &entries {
                let payload = || {
                    let messages = store.files.messages(&entry.place());
                    Cow::Owned(messages.map(|it| it.bytes().to_vec()).unwrap_or_default())
                };
                state.index.add_with(entry, payload);
            }
        }
        Ok(Some(store))
    }

    /// Reads all of the log.
    fn recovered(mut self) -> Result<Store> {
        let (mut recovered, mut index) = self.pass(None)?;
        if recovered.is_damaged() {
            // Where another process writes meanwhile, a batch that was written after a look at its place
            // looks damaged, once.
            (recovered, index) = self.pass(Some(&recovered.damages))?;
        }
        self.recovered = recovered;
        // Once more, for the tables that were made meanwhile.
        let (catalog, definitions) = said(self.disk.as_deref())?;
        *lock(&self.state) = State { catalog, definitions, index, ..State::default() };
        Ok(self)
    }

    /// Goes through the log once, up to the first damage that is not `known`.
    fn pass(&self, known: Option<&[Damage]>) -> Result<(Recovered, Index)> {
        let (mut recovered, mut index) = (Recovered::default(), Index::default());
        let mut reader = Reader::of(Arc::clone(&self.logs), 0)?;
        recovered.oldest_mark = reader.oldest_mark();
        while let Some(event) = reader.next_event()? {
            if let (Event::Damage(damage), Some(known)) = (&event, known)
                && known.len() < DAMAGES_MAX
                && !known.iter().any(|known| is_same_place(known, damage))
            {
                break;
            }
            if let Some(entry) = recovered.note(event) {
                index.add(&entry);
            }
        }
        recovered.next_mark = reader.next_mark();
        Ok((recovered, index))
    }

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
        self.refresh()?;
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
        load::load(self, number, origin, options, stop, watch)
    }

    /// A table as it is now. Cheap where nothing was appended since it was asked for last.
    ///
    /// # Errors
    /// [`Error::Kept`] where there is none of this name; [`Error::Log`] and [`Error::Source`] where it
    /// cannot be read; [`Error::Cancelled`].
    ///
    /// # Panics
    /// When a worker panics.
    pub fn table(&self, name: &str, workers: usize, stop: &AtomicBool) -> Result<Arc<Table>> {
        self.refresh()?;
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
        let schema = self.definition_of(number).map(|definition| definition.schema());
        let (name, files) = (&self.named(name), &self.files);
        let making = Making { name, files, workers, stop, schema: schema.as_ref() };
        let snapshot = making.table(known.as_ref(), &extents)?;
        let mut state = lock(&self.state);
        let newest = state.snapshots.entry(number).or_insert_with(|| snapshot.clone());
        if newest.batches < snapshot.batches {
            *newest = snapshot.clone();
        }
        Ok(snapshot.table)
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
        }
        self.table(name, workers, stop)
    }

    /// Lets go of all tables that were made.
    pub fn forget(&self) {
        lock(&self.state).snapshots.clear();
    }

    /// The messages of a table as sources: one, unless they are written in several ways.
    ///
    /// # Errors
    /// As [`Store::table`].
    pub fn runs(&self, name: &str) -> Result<Vec<Run>> {
        self.refresh()?;
        let state = lock(&self.state);
        let number = self.number(&state, name)?;
        runs(&self.named(name), &self.files, state.index.extents(number))
    }

    /// The messages of a table with marks in one of these ranges, which batches begin and end with.
    ///
    /// # Errors
    /// As [`Store::table`].
    pub fn runs_of(
        &self,
        name: &str,
        marks: impl IntoIterator<Item = Range<u64>>,
    ) -> Result<Vec<Run>> {
        self.refresh()?;
        let ranges: Vec<Range<u64>> = marks.into_iter().collect();
        let state = lock(&self.state);
        let number = self.number(&state, name)?;
        let is_in =
            |extent: &Extent| ranges.iter().any(|range| range.contains(&extent.marks.start));
        let extents = state.index.extents(number).iter().filter(|extent| is_in(extent));
        runs(&self.named(name), &self.files, &extents.cloned().collect::<Vec<_>>())
    }

    /// The messages of all tables as sources, in the order of the log.
    ///
    /// # Errors
    /// As [`Store::table`].
    pub fn all_runs(&self) -> Result<Vec<Run>> {
        self.refresh()?;
        let state = lock(&self.state);
        let numbers = state.index.numbers();
        let mut extents: Vec<Extent> =
            numbers.flat_map(|number| state.index.extents(number).iter().cloned()).collect();
        extents.sort_by_key(|extent| extent.marks.start);
        runs(&self.place, &self.files, &extents)
    }

    /// Ends writing: notes the end of the log, and gives back the room that it did not need.
    ///
    /// # Errors
    /// [`Error::Log`] where that could not be written. All is kept all the same.
    pub fn close(mut self) -> Result<()> {
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
            self.refresh()?;
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
    fn refresh(&self) -> Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        let mut state = lock(&self.state);
        let mut follower = match state.follower.take() {
            Some(follower) => follower,
            None if log.next_mark() <= state.index.next_mark => return Ok(()),
            None => log.follow(state.index.next_mark.max(1))?,
        };
        while let Some(event) = follower.next_event(Duration::ZERO)? {
            if let Some(entry) = Recovered::default().note(event) {
                state.index.add(&entry);
            }
        }
        state.follower = Some(follower);
        Ok(())
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

/// What a data folder says of its tables: their names, and what they are declared to hold.
fn said(disk: Option<&dyn Disk>) -> Result<(Catalog, Catalog)> {
    let Some(disk) = disk else { return Ok(Default::default()) };
    Ok((Catalog::read(disk)?, Catalog::read_from(disk, DEFINITIONS)?))
}

fn is_same_place(one: &Damage, other: &Damage) -> bool {
    one.path == other.path && one.bytes.start == other.bytes.start
}

fn disk(folder: &Path) -> Result<Arc<dyn Disk>> {
    let opened = RealDisk::open(folder);
    let fail = |e| crate::log::Error::io(folder.display().to_string(), "open the folder", e);
    Ok(Arc::new(opened.map_err(fail)?))
}
