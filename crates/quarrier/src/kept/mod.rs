//! Kept: messages in a data folder, durable once they are acknowledged, as tables by their names.
//!
//! ```text
//!  Opened ─→ KeptLoad::run ─→ Store: log (acknowledged = on disk)
//!                               │
//!            Filter, Tables ←─ Kept::sources: tables as sources, by their names
//! ```

mod load;
mod subscribe;

pub use load::{KeptLoad, KeptLoaded, KeptWatch, LoadedSource};
pub use quarrier_messages::kept::{
    DefinedColumn, Definition, Intake, IntakeOptions, KeptTable, Misfit, Progress, Sent, Stored,
    Taken,
};
pub use subscribe::{Changed, Subscribe, Subscription};

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quarrier_messages::Table;
use quarrier_messages::kept::Store;
pub use quarrier_messages::log::Growth;
use quarrier_messages::log::Options;

use crate::account::{Stages, Stats, rate};
use crate::source::damages;
use crate::{Result, Sources};

/// A data folder that is open.
pub struct Kept {
    store: Store,
    /// The time that opening took.
    opened_in: Duration,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").field("place", &self.place()).finish_non_exhaustive()
    }
}

impl Kept {
    /// Opens a data folder for writing, and makes it where it is not there. One process at a time may.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) where another process writes to it, which the error
    /// names, or the system refuses.
    pub fn open(folder: &Path) -> Result<Kept> {
        Kept::of(|| Store::open(folder))
    }

    /// As [`Kept::open`], with segments of the log that take so many bytes of the disk at once; 256 MiB
    /// is usual.
    ///
    /// # Errors
    /// As [`Kept::open`].
    pub fn open_with(folder: &Path, segment_bytes: u64) -> Result<Kept> {
        let mut options = Options::default();
        options.segment_bytes = segment_bytes;
        Kept::of(|| Store::open_with(folder, options))
    }

    /// Opens a data folder for reading, also while another process writes to it.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) where it is none, or cannot be read.
    pub fn read(folder: &Path) -> Result<Kept> {
        Kept::of(|| Store::read(folder))
    }

    fn of(open: impl FnOnce() -> quarrier_messages::Result<Store>) -> Result<Kept> {
        let started = Instant::now();
        let store = open()?;
        Ok(Kept { store, opened_in: started.elapsed() })
    }

    /// Where the folder is.
    pub fn place(&self) -> &str {
        self.store.place()
    }

    /// What is damaged and left out, a line each, with the place and the marks. All else is there.
    pub fn damages(&self) -> Vec<String> {
        damages(&self.store)
    }

    /// What people should know of the folder that is no damage: the end that a crash tore, and that was
    /// cut off when the folder was opened for writing; and, once, what was stored and is not used.
    pub fn notices(&self) -> Vec<String> {
        // Who reads beside a writer sees such an end all the time.
        let cut = self.store.found().cut.as_ref().filter(|_| self.store.is_writable());
        let mut notices: Vec<String> = cut.iter().map(ToString::to_string).collect();
        if self.store.is_catalog_damaged() {
            notices.push(format!(
                "{}/catalog: a copy of the names of tables is damaged; the next new table writes it \
                 anew",
                self.place()
            ));
        }
        notices.extend(self.store.take_notices());
        notices
    }

    /// All tables, in the order in which they were made.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) where the log cannot be read.
    pub fn tables(&self) -> Result<Vec<KeptTable>> {
        Ok(self.store.tables()?)
    }

    /// The messages of tables, one table after another, for [`Filter`](crate::Filter) and
    /// [`Tables`](crate::Tables).
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) where there is no such table.
    pub fn sources<N: AsRef<str>>(&self, tables: impl IntoIterator<Item = N>) -> Result<Sources> {
        let mut runs = Vec::new();
        for table in tables {
            runs.extend(self.store.runs(table.as_ref())?);
        }
        Ok(Sources::kept(runs))
    }

    /// A table as it is now, in memory: made anew only as far as messages were appended since it was
    /// asked for last, or its columns were stored.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) where there is no such table, it cannot be read, or
    /// `stop` became true.
    pub fn table(&self, name: &str, workers: usize, stop: &AtomicBool) -> Result<Arc<Table>> {
        Ok(self.store.table(name, workers, stop)?)
    }

    /// A table as it was asked for last, where nothing was appended since. Takes no time.
    pub fn known(&self, name: &str) -> Option<Arc<Table>> {
        self.store.known(name)
    }

    /// For whoever waits for messages to come, in whatever table; None where it is open for reading only.
    pub fn growth(&self) -> Option<Growth> {
        self.store.growth()
    }

    /// The table that a name stands for: of this name, or the only one that differs in case.
    pub(crate) fn named(&self, name: &str) -> Result<String> {
        let tables = self.store.tables()?;
        let mut alike = tables.iter().filter(|table| table.name.eq_ignore_ascii_case(name));
        let is_there = tables.iter().any(|table| table.name == name);
        let only = alike.next().filter(|_| !is_there && alike.next().is_none());
        Ok(only.map_or(name, |table| &table.name).to_string())
    }

    /// Makes a table of columns that are declared; without any, it has those that its messages show.
    /// Returns whether it was made: not where there is one of this name.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) where no table may have the name, or the disk is full
    /// or fails.
    pub fn create(&self, name: &str, definition: &Definition) -> Result<bool> {
        Ok(self.store.create(name, definition)?)
    }

    /// What a table was declared to hold; None where its columns are those that its messages show.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) where there is no such table.
    pub fn definition(&self, name: &str) -> Result<Option<Arc<Definition>>> {
        Ok(self.store.definition(name)?)
    }

    /// Begins to gather messages that come piece by piece.
    pub fn intake(&self) -> Intake {
        self.store.intake()
    }

    /// Appends what was gathered to a table that is there: all of it or nothing. May wait for the log's
    /// queue; [`Sent::durable`] waits for the disk.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) where there is no such table, messages have a format
    /// that is not kept, or the disk is full or fails.
    pub fn take_in(
        &self,
        table: &str,
        intake: &Intake,
        options: &IntakeOptions,
        stop: &AtomicBool,
    ) -> Result<Sent> {
        Ok(self.store.take_in(table, intake, options, stop)?)
    }

    /// Reads the log of a data folder, compares all checksums, and makes all tables anew. The time of each
    /// has its share of what it took to open the folder.
    ///
    /// # Errors
    /// As of [`Kept::read`] and [`Kept::table`].
    pub fn reindex(
        folder: &Path,
        workers: usize,
        stop: &AtomicBool,
    ) -> Result<(Kept, Vec<Reindexed>)> {
        let started = Instant::now();
        if let Some(store) = Store::skimmed(folder)? {
            let kept = Kept { store, opened_in: started.elapsed() };
            let made = kept.anew(workers, stop);
            if made.is_ok() || stop.load(Ordering::Relaxed) {
                return made.map(|made| (kept, made));
            }
        }
        // Whatever it is, all of the log is read to say it.
        let kept = Kept::of(|| Store::read_whole(folder))?;
        let made = kept.anew(workers, stop)?;
        Ok((kept, made))
    }

    fn anew(&self, workers: usize, stop: &AtomicBool) -> Result<Vec<Reindexed>> {
        let mut all = Vec::new();
        let tables = self.store.tables()?;
        let stored_bytes: u64 = tables.iter().map(|table| table.stored_bytes).sum();
        for table in tables {
            let started = Instant::now();
            let made = self.store.anew(&table.name, workers, stop)?;
            let share = table.stored_bytes as f64 / stored_bytes.max(1) as f64;
            let elapsed = started.elapsed() + self.opened_in.mul_f64(share);
            let memory_bytes = made.nbytes();
            all.push(Reindexed { table, messages: made.rows(), memory_bytes, elapsed });
            self.store.forget();
        }
        Ok(all)
    }

    /// Stores the columns of all tables that were asked for, and where messages lie, so that whoever opens the
    /// folder next reads and parses only what came after. [`Kept::close`] does so, too, where it is worth it.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) where there is no room, or the system refuses; what was
    /// stored before is still there.
    pub fn checkpoint(&self) -> Result<()> {
        Ok(self.store.checkpoint()?)
    }

    /// What people should know of what was stored and is not used, since the last call: the log was read, or
    /// columns were made anew.
    pub fn take_notices(&self) -> Vec<String> {
        self.store.take_notices()
    }

    /// Ends writing, and gives back the room that the log did not need.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) where the end could not be noted; all is kept.
    pub fn close(self) -> Result<()> {
        Ok(self.store.close()?)
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }
}

/// The account of tables that were made anew.
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

/// A table that was made anew.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Reindexed {
    /// The table, as the log has it.
    pub table: KeptTable,
    /// Messages in its columns.
    pub messages: u64,
    /// Bytes of memory that they take.
    pub memory_bytes: usize,
    /// The time it took.
    pub elapsed: Duration,
}
