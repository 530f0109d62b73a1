//! Data folders: messages in a durable log, on disk once they are acknowledged, as named tables.
//!
//! ```text
//!  Opened ─→ KeptLoad::run ─→ Store: log (acknowledged = on disk)
//!                               │
//!            Filter, Tables ←─ DataFolder::sources: tables as sources, by their names
//! ```

mod copy;
mod found;
mod load;
mod matching;
mod place;
mod retention;
mod subscribe;

pub use copy::{CopyLag, CopyState, Restored};
pub use found::Changed;
pub use load::{KeptLoad, KeptLoaded, KeptWatch, LoadedSource};
pub use matching::{ConditionTable, Matched};
pub use place::CopyPlace;
pub use quarrier_messages::kept::{
    AppendResult, DefinedColumn, Definition, Intake, IntakeOptions, KeptTable, Misfit,
    PendingAppend, Progress, RetainResult, Stored, Tended,
};
pub use quarrier_messages::log::Retention;
pub use retention::{retention_from, retention_text};
pub use subscribe::{Ready, Scout, Subscribe, Subscription};

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use quarrier_messages::kept::Store;
use quarrier_messages::log::Options;
pub use quarrier_messages::log::{Growth, LogState};
use quarrier_messages::{Table, Value};

use crate::account::{Stages, Stats, rate};
use crate::source::damages;
use crate::{Result, Sources};
use copy::Copying;

/// An open data folder.
pub struct DataFolder {
    store: Store,
    /// The time that opening took.
    opened_in: Duration,
    copying: OnceLock<Copying>,
}

impl std::fmt::Debug for DataFolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataFolder").field("place", &self.place()).finish_non_exhaustive()
    }
}

impl DataFolder {
    /// Opens a data folder for writing, and creates it if it does not exist. Only one process at a time may
    /// write.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) if another process, which the error names, writes to it,
    /// or if the system reports an error.
    pub fn open(folder: &Path) -> Result<DataFolder> {
        DataFolder::of(|| Store::open(folder))
    }

    /// Like [`DataFolder::open`], with log segments of `segment_bytes` bytes, allocated at once; the default
    /// is 256 MiB.
    ///
    /// # Errors
    /// Those of [`DataFolder::open`].
    pub fn open_with(folder: &Path, segment_bytes: u64) -> Result<DataFolder> {
        let mut options = Options::default();
        options.segment_bytes = segment_bytes;
        DataFolder::of(|| Store::open_with(folder, options))
    }

    /// Opens a data folder for reading, even while another process writes to it.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) if the folder is not a data folder or cannot be read.
    pub fn read(folder: &Path) -> Result<DataFolder> {
        DataFolder::of(|| Store::read(folder))
    }

    fn of(open: impl FnOnce() -> quarrier_messages::Result<Store>) -> Result<DataFolder> {
        let started = Instant::now();
        let store = open()?;
        Ok(DataFolder::over(store, started.elapsed()))
    }

    fn over(store: Store, opened_in: Duration) -> DataFolder {
        DataFolder { store, opened_in, copying: OnceLock::new() }
    }

    /// Returns the path of the folder.
    pub fn place(&self) -> &str {
        self.store.place()
    }

    /// Returns the damaged places, a line each, with the marks of the lost messages. All other messages are
    /// intact.
    pub fn damages(&self) -> Vec<String> {
        damages(&self.store)
    }

    /// Returns notices about the folder apart from damage: a torn end that was cut off when the folder was
    /// opened for writing, and, once, stored state that cannot be used.
    pub fn notices(&self) -> Vec<String> {
        // A reader beside a writer often sees such an end.
        let cut = self.store.found().cut.as_ref().filter(|_| self.store.is_writable());
        let mut notices: Vec<String> = cut.iter().map(ToString::to_string).collect();
        if self.store.is_catalog_damaged() {
            notices.push(format!(
                "{}/catalog: a copy of the names of tables is damaged; the next new table writes \
                 it again",
                self.place()
            ));
        }
        notices.extend(self.store.take_notices());
        notices
    }

    /// Returns all tables, in the order of their creation.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) if the log cannot be read.
    pub fn tables(&self) -> Result<Vec<KeptTable>> {
        Ok(self.store.tables()?)
    }

    /// Returns the messages of tables, one table after another, for [`Filter`](crate::Filter) and
    /// [`Tables`](crate::Tables).
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) if there is no such table.
    pub fn sources<N: AsRef<str>>(&self, tables: impl IntoIterator<Item = N>) -> Result<Sources> {
        let mut runs = Vec::new();
        for table in tables {
            runs.extend(self.store.runs(table.as_ref())?);
        }
        Ok(Sources::kept(runs))
    }

    /// Returns a table as it is now, in memory: only messages appended since the last call, or since its
    /// columns were stored, are parsed.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) if there is no such table, it cannot be read, or
    /// `stop` became true.
    pub fn table(&self, name: &str, workers: usize, stop: &AtomicBool) -> Result<Arc<Table>> {
        Ok(self.store.table(name, workers, stop)?)
    }

    /// Returns the table of the last call, if nothing was appended since. Takes no time.
    pub fn known(&self, name: &str) -> Option<Arc<Table>> {
        self.store.known(name)
    }

    /// Returns a handle that waits for new messages in any table; `None` if the folder is open for reading
    /// only.
    pub fn growth(&self) -> Option<Growth> {
        self.store.growth()
    }

    /// Returns the mark of the last durable message; `None` if the folder is open for reading only.
    pub(crate) fn last_mark(&self) -> Option<u64> {
        self.growth()?.wait_beyond(0, Duration::ZERO)
    }

    /// Returns the state of the log; `None` if the folder is open for reading only.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) if the folder cannot be listed.
    pub fn log_state(&self) -> Result<Option<LogState>> {
        Ok(self.store.log_state()?)
    }

    /// Resolves the name of a table: an exact match, or the only table that differs in case alone.
    pub(crate) fn named(&self, name: &str) -> Result<String> {
        let tables = self.store.tables()?;
        let mut alike = tables.iter().filter(|table| table.name.eq_ignore_ascii_case(name));
        let is_there = tables.iter().any(|table| table.name == name);
        let only = alike.next().filter(|_| !is_there && alike.next().is_none());
        Ok(only.map_or(name, |table| &table.name).to_string())
    }

    /// Creates a table with declared columns; without any, it infers them from its messages. Returns whether
    /// it was created: false if one of this name exists.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) if the name is not allowed, or the disk is full or fails.
    pub fn create(&self, name: &str, definition: &Definition) -> Result<bool> {
        Ok(self.store.create(name, definition)?)
    }

    /// Returns the declared columns of a table; `None` if its columns are inferred from its messages.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) if there is no such table.
    pub fn definition(&self, name: &str) -> Result<Option<Arc<Definition>>> {
        Ok(self.store.definition(name)?)
    }

    /// Bounds the age or the size of a table: messages that exceed the bounds go away, the oldest first, and
    /// with them their rows. [`tend`](Self::tend), [`close`](Self::close) and long loads apply the bounds, in steps
    /// of a sixteenth. In a table with a key, a row goes away when its latest message does.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) if there is no such table, or the disk is full or fails.
    pub fn set_retention(&self, table: &str, retention: Retention) -> Result<()> {
        Ok(self.store.set_retention(table, retention)?)
    }

    /// Returns the bounds of a table.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) if there is no such table.
    pub fn retention(&self, table: &str) -> Result<Retention> {
        Ok(self.store.retention(table)?)
    }

    /// Does the work that keeps an open folder fast and small: merges tables that grew in small steps, removes
    /// messages that exceed the bounds of their tables, and stores checkpoints. To be called about once a second
    /// by one thread.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) if the disk is full or fails. Nothing is lost, and the next
    /// call tries again.
    pub fn tend(&self, workers: usize, stop: &AtomicBool) -> Result<Tended> {
        Ok(self.store.tend(workers, stop)?)
    }

    /// Begins to gather messages for an existing table, which arrive piece by piece.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) if there is no such table.
    pub fn intake(&self, table: &str, options: IntakeOptions) -> Result<Intake> {
        Ok(self.store.intake(table, options)?)
    }

    /// Appends the gathered messages to their table: all of them or none. May wait for the log's queue;
    /// [`PendingAppend::durable`] waits for the disk.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) if the messages are compressed or have a format that the
    /// log does not store, or the disk is full or fails.
    pub fn take_in(&self, intake: Intake, stop: &AtomicBool) -> Result<PendingAppend> {
        Ok(self.store.take_in(intake, stop)?)
    }

    /// Like [`DataFolder::take_in`], but does not block: returns the messages, for `take_in`, if they are many, or
    /// if the log's queue is full.
    ///
    /// # Errors
    /// Those of [`DataFolder::take_in`].
    pub fn take_in_now(
        &self,
        intake: Box<Intake>,
    ) -> Result<std::result::Result<PendingAppend, Box<Intake>>> {
        Ok(self.store.take_in_now(intake)?)
    }

    /// Removes the rows with these keys from a table with a key. Each key has a value for each column of the
    /// table's key, in its order. It removes rows that exist when the removal is on the disk. May wait for
    /// the log's queue; [`PendingAppend::durable`] waits for the disk, and returns the marks of the keys.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) if there is no such table, it has no key, the type of a
    /// value differs from that of its column, or the disk is full or fails.
    pub fn remove(&self, table: &str, keys: &[Vec<Value>]) -> Result<PendingAppend> {
        Ok(self.store.remove(table, keys)?)
    }

    /// Like [`DataFolder::remove`], for keys written as JSON lines: objects with a field for each column of
    /// the key.
    ///
    /// # Errors
    /// Those of [`DataFolder::remove`], and an error for an invalid line.
    pub fn remove_lines(
        &self,
        table: &str,
        lines: &[u8],
        stop: &AtomicBool,
    ) -> Result<PendingAppend> {
        Ok(self.store.remove_lines(table, lines, stop)?)
    }

    /// Counts the rows of a table with a key that the messages, or removed keys, with these marks replaced or
    /// removed.
    ///
    /// # Errors
    /// Those of [`DataFolder::table`].
    pub fn gone(&self, table: &str, marks: Range<u64>, stop: &AtomicBool) -> Result<u64> {
        Ok(self.store.gone(table, marks, stop)?)
    }

    /// Reads the log of a data folder, verifies all checksums, and rebuilds all tables. The time of each
    /// table includes a share of the time that opening the folder took.
    ///
    /// # Errors
    /// Those of [`DataFolder::read`] and [`DataFolder::table`].
    pub fn reindex(
        folder: &Path,
        workers: usize,
        stop: &AtomicBool,
    ) -> Result<(DataFolder, Vec<Reindexed>)> {
        let started = Instant::now();
        if let Some(store) = Store::skimmed(folder)? {
            let kept = DataFolder::over(store, started.elapsed());
            let made = kept.rebuild_tables(workers, stop);
            if made.is_ok() || stop.load(Ordering::Relaxed) {
                return made.map(|made| (kept, made));
            }
        }
        // Read the whole log in any case, to verify it.
        let kept = DataFolder::of(|| Store::read_whole(folder))?;
        let made = kept.rebuild_tables(workers, stop)?;
        Ok((kept, made))
    }

    fn rebuild_tables(&self, workers: usize, stop: &AtomicBool) -> Result<Vec<Reindexed>> {
        let mut all = Vec::new();
        let tables = self.store.tables()?;
        let stored_bytes: u64 = tables.iter().map(|table| table.stored_bytes).sum();
        for table in tables {
            let started = Instant::now();
            let made = self.store.rebuild(&table.name, workers, stop)?;
            let share = table.stored_bytes as f64 / stored_bytes.max(1) as f64;
            let elapsed = started.elapsed() + self.opened_in.mul_f64(share);
            let memory_bytes = made.nbytes();
            all.push(Reindexed { table, messages: made.rows(), memory_bytes, elapsed });
            self.store.forget();
        }
        Ok(all)
    }

    /// Stores the columns of all tables read so far and the index of the log, so that the next process that
    /// opens the folder parses only newer messages. [`DataFolder::close`] does so too, if it is worth it.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) if there is no space, or the system reports an error; the
    /// state stored before remains.
    pub fn checkpoint(&self) -> Result<()> {
        Ok(self.store.checkpoint()?)
    }

    /// Returns notices, since the last call, about stored state that could not be used: the log was read
    /// instead, or columns were rebuilt.
    pub fn take_notices(&self) -> Vec<String> {
        self.store.take_notices()
    }

    /// Applies retention and stores the columns of tables that have grown, so that the next opening takes less
    /// time: for a server that stops. If the disk is full or fails, no message is lost.
    pub fn settle(&self) {
        self.store.settle();
    }

    /// Ends writing, and frees the space that the log did not need.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) if the end of the log could not be recorded. No
    /// message is lost even then.
    pub fn close(self) -> Result<()> {
        Ok(self.store.close()?)
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }
}

/// Returns the statistics of rebuilt tables.
pub fn stats_of(tables: &[Reindexed]) -> Stats {
    let seconds = tables.iter().map(|made| made.elapsed.as_secs_f64()).sum();
    let bytes = tables.iter().map(|made| made.table.bytes).sum();
    let messages = tables.iter().map(|made| made.messages).sum();
    let mut stages = Stages::default();
    stages.work.busy_seconds = seconds;
    Stats {
        command: "reindex",
        bytes,
        seconds,
        bytes_per_second: rate(bytes, seconds),
        device: "cpu".to_string(),
        stages,
        limited_by: "work",
        messages: Some((messages, 0)),
        ..Stats::default()
    }
}

/// A rebuilt table.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Reindexed {
    /// The table, as in the log.
    pub table: KeptTable,
    /// The number of messages in its columns.
    pub messages: u64,
    /// Memory of the columns in bytes.
    pub memory_bytes: usize,
    /// The duration of the rebuild.
    pub elapsed: Duration,
}
