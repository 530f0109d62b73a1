//! Opens a data folder, for writing or for reading, and reads its log from where the checkpoint ends.

use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use quarrier_core::sync::lock;

use super::checkpoint::CHECKPOINT_BYTES;
use super::steps::Steps;
use super::{State, Store};
use crate::kept::catalog::{Catalog, DEFINITIONS};
use crate::kept::columns::ColumnFiles;
use crate::kept::copy::{refuse_copy, refuse_unrestored};
use crate::kept::files::Files;
use crate::kept::index::Index;
use crate::kept::index_file::{self, IndexState};
use crate::kept::retained::Retained;
use crate::kept::segment::{FolderOf, SegmentFolder, SegmentObject, Segments};
use crate::kept::whole::Unused;
use crate::log::disk::{Disk, RealDisk};
use crate::log::{
    Cut, DAMAGES_MAX, Damage, Entry, Event, LOG_FOLDER, Log, Opener, Options, Reader, Recovered,
    segment, skim,
};
use crate::{Error, Result};

/// Maximum number of attempts to read a log whose segments disappear.
const ATTEMPTS_MAX: usize = 16;
/// Maximum number of segments in which the end of a chain is sought.
const CHAINED_SEGMENTS_MAX: usize = 16;

/// The state of a log that is known before it is read.
#[derive(Default)]
struct Start {
    known: Option<IndexState>,
    notices: Vec<String>,
}

impl Store {
    /// Opens a data folder for writing, and creates it if it does not exist: takes the lock, reads the log
    /// after the checkpoint, and cuts off a torn end.
    ///
    /// # Errors
    /// [`Error::Log`] if another process holds the lock, or if the system reports an error.
    pub fn open(folder: &Path) -> Result<Store> {
        Store::open_with(folder, Options::default())
    }

    /// Like [`Store::open`], with other sizes of the log.
    ///
    /// # Errors
    /// As for [`Store::open`].
    pub fn open_with(folder: &Path, options: Options) -> Result<Store> {
        refuse_unrestored(folder)?;
        refuse_copy(folder)?;
        let logs = folder.join(LOG_FOLDER);
        let start = match logs.is_dir() {
            true => Start::of(self::disk(folder)?.as_ref(), self::disk(&logs)?.as_ref()),
            false => Start::default(),
        };
        let open = |opener: Opener, replay: &mut dyn FnMut(Entry)| opener.open(folder, replay);
        let (log, index) = opened(&start, options, open)?;
        let (disk, logs) = (disk(folder)?, self::disk(&logs)?);
        let place = folder.display().to_string();
        Store::over(place, (Some(disk), logs), Some(log), index)?.started(start)
    }

    /// Like [`Store::open_with`], on any disks and without a lock: `disk` for the data folder, `logs` for the
    /// log in it.
    ///
    /// # Errors
    /// As for [`Store::open`].
    pub fn open_on(disk: Arc<dyn Disk>, logs: Arc<dyn Disk>, options: Options) -> Result<Store> {
        let start = Start::of(disk.as_ref(), logs.as_ref());
        let open = |opener: Opener, replay: &mut dyn FnMut(Entry)| {
            opener.open_on(Arc::clone(&logs), replay)
        };
        let (log, index) = opened(&start, options, open)?;
        Store::over(disk.path(""), (Some(disk), logs), Some(log), index)?.started(start)
    }

    /// Adds the state of the log that was known before it was opened.
    fn started(mut self, start: Start) -> Result<Store> {
        if let Some(known) = start.known {
            self.recovered.oldest_mark = known.oldest_mark;
            lock(&self.state).indexed_bytes = known.index.stored_bytes;
        }
        *lock(&self.notices) = start.notices;
        Ok(self)
    }

    fn over(
        place: String,
        (disk, logs): (Option<Arc<dyn Disk>>, Arc<dyn Disk>),
        log: Option<Log>,
        index: Index,
    ) -> Result<Store> {
        // Read the catalog after the log, so that it has every table with a message.
        let (catalog, definitions, retained) = said(disk.as_deref())?;
        let recovered = log.as_ref().map(|log| log.recovered().clone()).unwrap_or_default();
        let recent = log.as_ref().map(Log::recent).unwrap_or_default();
        let files = Arc::new(Files::new(Arc::clone(&logs), recent));
        let mut state = State { catalog, definitions, index, retained, ..State::default() };
        state.apply_retained();
        let columns = disk.clone().map(ColumnFiles::new);
        let folder = PathBuf::from(&place);
        Ok(Store {
            place,
            folder,
            disk,
            logs,
            files,
            columns,
            checkpoint_bytes: CHECKPOINT_BYTES,
            log,
            recovered,
            state: Mutex::new(state),
            past: Mutex::default(),
            steps: Steps::default(),
            notices: Mutex::default(),
            retaining: Mutex::default(),
            is_tended: AtomicBool::new(false),
        })
    }

    /// Opens a data folder, or one segment of a log, for reading. Changes nothing, and another process may
    /// write at the same time.
    ///
    /// # Errors
    /// [`Error::Store`] if there is no log; [`Error::Log`] if the system reports an error.
    pub fn read(path: &Path) -> Result<Store> {
        let place = path.display().to_string();
        if path.is_file() {
            let segment = SegmentObject::of_file(path);
            let segment =
                segment.map_err(|e| crate::log::Error::io(&place, "open the segment", e))?;
            // The data folder around the segment, if it has one.
            let folder =
                path.parent().and_then(Path::parent).filter(|it| !it.as_os_str().is_empty());
            let disk = folder.and_then(|folder| self::disk(folder).ok());
            return Store::read_segment(segment, disk, &FolderOf(path));
        }
        refuse_unrestored(path)?;
        let (disk, logs) = disks(path)?;
        Store::read_from(&place, &disk, &logs)
    }

    /// Like [`Store::read`] for a segment, which is in an object of `folder`.
    ///
    /// # Errors
    /// [`Error::Log`] if the head of a segment cannot be read, or the folder cannot be listed. Bytes that cannot be
    /// read later on are damage, so the caller must know of errors of the source.
    pub fn read_object(object: SegmentObject, folder: &dyn SegmentFolder) -> Result<Store> {
        Store::read_segment(object, None, folder)
    }

    fn read_segment(
        segment: SegmentObject,
        disk: Option<Arc<dyn Disk>>,
        folder: &dyn SegmentFolder,
    ) -> Result<Store> {
        let place = segment.path();
        let fail = |error| crate::log::Error::io(&place, "read the segment", error);
        let mut segments = Segments::of(segment, folder).map_err(fail)?;
        let mark = segments.mark();
        loop {
            let logs = Arc::new(segments.clone());
            let mut store =
                Store::over(place.clone(), (disk.clone(), logs), None, Index::default())?;
            store.columns = None;
            let (store, unfinished) = store.recovered_from(Start::default(), Some(mark))?;
            let Some(marks) = unfinished else { return Ok(store) };
            let fail = |error| crate::log::Error::io(&place, "read the segment after it", error);
            let is_added = segments.len() < CHAINED_SEGMENTS_MAX
                && segments.add(marks.end, folder).map_err(fail)?;
            if is_added {
                continue;
            }
            // Otherwise, the log ends there, and the chain was never finished.
            if segments.is_followed() {
                let why = match segments.len() < CHAINED_SEGMENTS_MAX {
                    true => "of which the next segment was not found",
                    false => "whose end is not in the next segments",
                };
                let end = segments.next_mark().unwrap_or(marks.end);
                let (first, last) = (marks.start, end.saturating_sub(1));
                lock(&store.notices).push(format!(
                    "the messages of marks {first} to {last} are left out: they take effect together with \
                     later ones, {why}"
                ));
            }
            return Ok(store);
        }
    }

    /// Like [`Store::read`] for a folder, but reads the whole log and verifies all checksums, regardless of
    /// checkpoints. If anything is damaged, removes the checkpoint of the index, so that other processes read
    /// the whole log, too.
    ///
    /// # Errors
    /// As for [`Store::read`].
    pub fn read_whole(folder: &Path) -> Result<Store> {
        let place = folder.display().to_string();
        refuse_unrestored(folder)?;
        let (disk, logs) = disks(folder)?;
        let over = Store::over(place, (Some(Arc::clone(&disk)), logs), None, Index::default())?;
        let store = over.recovered(Start::default())?;
        if store.found().is_damaged() {
            index_file::remove(disk.as_ref());
        }
        Ok(store)
    }

    /// Like [`Store::read`] for a folder, on any disks: `disk` for the data folder, `logs` for the log in it.
    ///
    /// # Errors
    /// As for [`Store::read`].
    pub fn read_on(disk: Arc<dyn Disk>, logs: Arc<dyn Disk>) -> Result<Store> {
        Store::read_from(&disk.path(""), &disk, &logs)
    }

    fn read_from(place: &str, disk: &Arc<dyn Disk>, logs: &Arc<dyn Disk>) -> Result<Store> {
        let read = || {
            let start = Start::of(disk.as_ref(), logs.as_ref());
            let both = (Some(Arc::clone(disk)), Arc::clone(logs));
            Store::over(place.to_string(), both, None, Index::default())?.recovered(start)
        };
        let mut attempts = 1;
        loop {
            match read() {
                // Meanwhile, the writer's retention removed a segment.
                Err(error) if is_gone(&error) && attempts < ATTEMPTS_MAX => attempts += 1,
                read => return read,
            }
        }
    }

    /// Like [`Store::read`] for a folder, but reads only the headers of batches. Messages are parsed, and
    /// their checksums verified, on first use. None if anything about the log is unusual, so that the whole
    /// log must be read to report it.
    ///
    /// # Errors
    /// [`Error::Log`] if the system reports an error.
    pub fn skimmed(folder: &Path) -> Result<Option<Store>> {
        refuse_unrestored(folder)?;
        refuse_copy(folder)?;
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
            state.apply_retained();
        }
        Ok(Some(store))
    }

    /// Reads the part of the log that is not known.
    fn recovered(self, start: Start) -> Result<Store> {
        Ok(self.recovered_from(start, None)?.0)
    }

    /// Like `recovered`, or reads only the segment of this first mark. Also returns the marks of a chain that does not
    /// end in the log.
    fn recovered_from(
        mut self,
        start: Start,
        only: Option<u64>,
    ) -> Result<(Store, Option<Range<u64>>)> {
        let mut pass = self.pass((start.known.as_ref(), None), only)?;
        if start.known.as_ref().is_some_and(|known| !known.is_continued_by(&pass.recovered)) {
            pass = self.pass((None, None), only)?;
        }
        if pass.recovered.is_damaged() {
            // If another process writes meanwhile, a batch that was written after its place was read looks
            // damaged once.
            pass = self.pass((None, Some(&pass.recovered.damages)), only)?;
        }
        let Pass { recovered, index, unfinished } = pass;
        self.recovered = recovered;
        // Read the catalog again, for tables created meanwhile.
        let (catalog, definitions, retained) = said(self.disk.as_deref())?;
        let mut state = State { catalog, definitions, index, retained, ..State::default() };
        // Of a single segment, show whatever it has.
        if self.columns.is_some() {
            state.apply_retained();
        }
        *lock(&self.state) = state;
        *lock(&self.notices) = start.notices;
        Ok((self, unfinished))
    }

    /// Reads the log once, from the known part on, up to the first damage that was not reported before, or to the end
    /// of the segment `only`.
    fn pass(
        &self,
        (known, reported): (Option<&IndexState>, Option<&[Damage]>),
        only: Option<u64>,
    ) -> Result<Pass> {
        let mut index = known.map(|known| known.index.clone()).unwrap_or_default();
        let (mut recovered, mut unfinished) = (Recovered::default(), None);
        let mut reader = Reader::of(Arc::clone(&self.logs), index.next_mark)?;
        recovered.oldest_mark =
            known.map_or_else(|| reader.oldest_mark(), |known| known.oldest_mark);
        let path = only.map(|mark| self.logs.path(&segment::name(mark)));
        while let Some(event) = reader.next_event()? {
            let is_here = match &event {
                Event::Batch(entry) => only.is_none_or(|mark| entry.place().segment == mark),
                Event::Damage(Damage { path: at, .. }) | Event::Cut(Cut { path: at, .. }) => {
                    path.as_ref().is_none_or(|path| at == path)
                }
                Event::Unfinished { marks } => {
                    unfinished = Some(marks.clone());
                    true
                }
            };
            if !is_here {
                break;
            }
            if let (Event::Damage(damage), Some(reported)) = (&event, reported)
                && reported.len() < DAMAGES_MAX
                && !reported.iter().any(|reported| is_same_place(reported, damage))
            {
                break;
            }
            if let Some(entry) = recovered.note(event) {
                index.add(&entry);
            }
        }
        recovered.next_mark = reader.next_mark();
        let unfinished = unfinished.filter(|marks: &Range<u64>| marks.end == reader.next_mark());
        Ok(Pass { recovered, index, unfinished })
    }
}

/// What reading a log once found.
struct Pass {
    recovered: Recovered,
    index: Index,
    /// The marks of a chain that does not end in the log.
    unfinished: Option<Range<u64>>,
}

impl Start {
    /// Reads the checkpoint of the log.
    fn of(disk: &dyn Disk, logs: &dyn Disk) -> Start {
        match index_file::read(disk, logs) {
            Ok(known) => Start { known: Some(known), notices: Vec::new() },
            Err(Unused::Silently) => Start::default(),
            Err(Unused::For(reason)) => {
                let path = disk.path(index_file::NAME);
                let notice = format!("{path}: {reason}; the whole log was read instead");
                Start { known: None, notices: vec![notice] }
            }
        }
    }
}

/// Opens a log for writing, from the known part on, and builds the index of the whole log.
fn opened(
    start: &Start,
    options: Options,
    open: impl Fn(Opener, &mut dyn FnMut(Entry)) -> crate::log::Result<Log>,
) -> Result<(Log, Index)> {
    let opener = || Opener::new().options(options.clone()).noting_places();
    if let Some(known) = &start.known {
        let mut index = known.index.clone();
        let from = opener().from_checkpoint(index.next_mark, known.publishers.clone());
        let log = open(from, &mut |entry| index.add(&entry))?;
        if known.is_continued_by(log.recovered()) {
            return Ok((log, index));
        }
        log.close()?;
    }
    let mut index = Index::default();
    let log = open(opener(), &mut |entry| index.add(&entry))?;
    Ok((log, index))
}

/// Reads the names, the declarations and the retention of a data folder's tables.
fn said(disk: Option<&dyn Disk>) -> Result<(Catalog, Catalog, Retained)> {
    let Some(disk) = disk else { return Ok(Default::default()) };
    Ok((Catalog::read(disk)?, Catalog::read_from(disk, DEFINITIONS)?, Retained::read(disk)?))
}

/// Returns whether a file disappeared.
fn is_gone(error: &Error) -> bool {
    let Error::Log(crate::log::Error::Io { error, .. }) = error else { return false };
    error.kind() == io::ErrorKind::NotFound
}

fn is_same_place(one: &Damage, other: &Damage) -> bool {
    one.path == other.path && one.bytes.start == other.bytes.start
}

fn disk(folder: &Path) -> Result<Arc<dyn Disk>> {
    let opened = RealDisk::open(folder);
    let fail = |e| crate::log::Error::io(folder.display().to_string(), "open the folder", e);
    Ok(Arc::new(opened.map_err(fail)?))
}

/// Returns the disks of a data folder and of the log in it.
fn disks(folder: &Path) -> Result<(Arc<dyn Disk>, Arc<dyn Disk>)> {
    let logs = folder.join(LOG_FOLDER);
    if !logs.is_dir() {
        let reason = "is not a data folder: it has no log; 'quarrier load --data' creates one";
        let place = folder.display().to_string();
        return Err(Error::Store { place, reason: reason.to_string() });
    }
    refuse_copy(folder)?;
    Ok((disk(folder)?, disk(&logs)?))
}
