//! Makes a data folder of a copy.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_core::region::AlignedBuffer;
use quarrier_core::source::Source;

use super::copier::{checked, damaged, list, newest_tables};
use super::metadata::{METADATA_BYTES_MAX, Tables, publishers_of_bytes};
use super::name::Name;
use super::plan::{Plan, PlannedSegment, PlannedTail, plan};
use super::{CopyError, CopyStore, IDENTITY, PART_BYTES_MAX, SEGMENT_BYTES_MAX, read};
use crate::kept::catalog::{DEFINITIONS, NAME as CATALOG};
use crate::kept::index::Index;
use crate::kept::{index_file, retained};
use crate::log::disk::{Disk, DiskFile, RealDisk};
use crate::log::segment::{HEAD_BYTES, Head, mark_of, name as segment_name};
use crate::log::{
    Error as LogError, FolderLock, LOG_FOLDER, Options, Output, Publishers, Reader, Recovered,
    SumOfPieces, is_full,
};
use crate::{Error, Result};

/// The file that a folder has until it is restored.
const RESTORING: &str = "restoring";
/// Bytes to read at once.
const PIECE_BYTES: usize = 4 << 20;

/// A restored data folder.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Restored {
    /// Number of tables.
    pub tables: u64,
    /// Number of messages in the log.
    pub messages: u64,
    /// The mark of the last message; 0 without any.
    pub last_mark: u64,
    /// Number of segments.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Damage that the log had when it was copied, as lines. All other messages are intact.
    pub damages: Vec<String>,
}

/// Makes a data folder of a copy: fetches the tables and the log, and verifies all checksums. The folder must not
/// exist, or be empty, or be one whose restoration was interrupted. After an error, it is empty again.
///
/// # Errors
/// [`Error::Store`] if the folder is not empty, or the copy is damaged, incomplete or cannot be read;
/// [`Error::Log`] if the disk is full or fails; [`Error::Cancelled`].
pub fn restore(store: &dyn CopyStore, folder: &Path, stop: &AtomicBool) -> Result<Restored> {
    let existed = prepare(folder)?;
    let lock = FolderLock::take(folder)?;
    let restored = Restoring::begin(store, folder, stop).and_then(Restoring::run);
    if restored.is_err() {
        // Whatever remains is marked as incomplete.
        undo(folder);
        drop(lock);
        if !existed {
            let _ = fs::remove_dir(folder);
        }
    }
    restored
}

/// Refuses a folder whose restoration was interrupted.
pub(in crate::kept) fn refuse_unrestored(folder: &Path) -> Result<()> {
    match folder.join(RESTORING).exists() {
        true => Err(refused(folder, "its restoration was interrupted: restore it again")),
        false => Ok(()),
    }
}

fn refused(folder: &Path, reason: &str) -> Error {
    Error::Store { place: folder.display().to_string(), reason: reason.to_string() }
}

fn failed(path: &Path, what: &str, error: io::Error) -> Error {
    let path = path.display().to_string();
    Error::Log(match is_full(&error) {
        true => LogError::Full { path, error: Arc::new(error) },
        false => LogError::io(path, what, error),
    })
}

/// Creates the folder, or empties one whose restoration was interrupted. Returns whether it existed.
fn prepare(folder: &Path) -> Result<bool> {
    let names = match fs::read_dir(folder) {
        Ok(entries) => entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let made = fs::create_dir_all(folder);
            made.map_err(|error| failed(folder, "create it", error))?;
            return mark(folder).map(|()| false);
        }
        Err(error) => return Err(failed(folder, "list it", error)),
    };
    let names: Vec<String> = names.collect();
    if names.iter().any(|name| name == RESTORING) {
        // No other process may be restoring it now.
        let lock = FolderLock::take(folder)?;
        undo(folder);
        drop(lock);
    } else if let Some(name) = names.iter().find(|name| *name != "lost+found") {
        let reason = format!("is not empty (it has '{name}'): restore into a new folder");
        return Err(refused(folder, &reason));
    }
    mark(folder).map(|()| true)
}

fn mark(folder: &Path) -> Result<()> {
    let path = folder.join(RESTORING);
    let write = || {
        fs::File::create(&path)?.sync_all()?;
        fs::File::open(folder)?.sync_all()
    };
    write().map_err(|error| failed(&path, "write it", error))
}

/// Removes what a restoration wrote.
fn undo(folder: &Path) {
    let logs = folder.join(LOG_FOLDER);
    let names = fs::read_dir(&logs).into_iter().flatten();
    for name in names.filter_map(|entry| entry.ok()?.file_name().into_string().ok()) {
        if mark_of(&name).is_some() {
            let _ = fs::remove_file(logs.join(name));
        }
    }
    let _ = fs::remove_dir(&logs);
    for name in [CATALOG, DEFINITIONS, retained::NAME, index_file::NAME] {
        let _ = fs::remove_file(folder.join(name));
        let _ = fs::remove_file(folder.join(format!("{name}.new")));
    }
    let _ = fs::remove_file(folder.join("lock"));
    let _ = fs::remove_file(folder.join(RESTORING));
}

struct Restoring<'r> {
    store: &'r dyn CopyStore,
    stop: &'r AtomicBool,
    folder: PathBuf,
    disk: Arc<dyn Disk>,
    logs: Arc<dyn Disk>,
    buffer: AlignedBuffer,
    restored: Restored,
}

impl<'r> Restoring<'r> {
    fn begin(store: &'r dyn CopyStore, folder: &Path, stop: &'r AtomicBool) -> Result<Self> {
        let open = |folder: &Path| {
            let opened = RealDisk::open_or_create(folder);
            opened.map_err(|error| failed(folder, "open or create it", error))
        };
        Ok(Restoring {
            store,
            stop,
            folder: folder.to_path_buf(),
            disk: Arc::new(open(folder)?),
            logs: Arc::new(open(&folder.join(LOG_FOLDER))?),
            buffer: AlignedBuffer::new(PIECE_BYTES),
            restored: Restored::default(),
        })
    }

    fn run(mut self) -> Result<Restored> {
        let (mut tables, plan, publishers) = self.planned()?;
        self.fetch(&plan)?;
        let (recovered, index, found) = self.verified()?;
        tables.retained.limit(recovered.next_mark);
        tables.write(self.disk.as_ref())?;
        if !recovered.is_damaged() {
            let publishers = joined(publishers, found, recovered.next_mark);
            index_file::write((self.disk.as_ref(), self.logs.as_ref()), &index, &publishers)?;
        }
        let path = self.folder.join(RESTORING);
        let remove = || {
            self.disk.sync_folder()?;
            fs::remove_file(&path)?;
            self.disk.sync_folder()
        };
        remove().map_err(|error| failed(&path, "remove it", error))?;
        self.restored.tables = tables.names.numbers().count() as u64;
        self.restored.messages = recovered.messages;
        self.restored.last_mark = recovered.next_mark.saturating_sub(1);
        self.restored.damages = recovered.damages.iter().map(ToString::to_string).collect();
        let more = recovered.damages_found - recovered.damages.len() as u64;
        if more > 0 {
            self.restored.damages.push(format!("{more} more places are damaged"));
        }
        Ok(self.restored)
    }

    /// The error for an object that cannot be used.
    fn of_copy(&self, error: &CopyError) -> Error {
        let (text, place) = (error.to_string(), self.store.name());
        self.wrong(text.strip_prefix(&place).unwrap_or(&text))
    }

    fn wrong(&self, reason: impl Into<String>) -> Error {
        Error::Store { place: self.store.name(), reason: reason.into() }
    }

    /// Lists the copy, and reads what is not the log.
    fn planned(&self) -> Result<(Tables, Plan, Publishers)> {
        let identity = read(self.store, IDENTITY, PIECE_BYTES as u64);
        let identity = identity.map_err(|error| self.wrong(format!("cannot be read: {error}")))?;
        if identity.is_none() {
            return Err(self.wrong("has no copy of a log"));
        }
        let objects =
            list(self.store).map_err(|error| self.wrong(format!("cannot be listed: {error}")))?;
        let tables = newest_tables(self.store, &objects).map_err(|error| self.of_copy(&error))?;
        let tables = tables.ok_or_else(|| self.wrong("has no tables: nothing was copied yet"))?;
        let plan = plan(&objects, tables.retained.removed).map_err(|reason| {
            self.wrong(format!("{reason}; if a server copies to it now, try again"))
        })?;
        let is_of = |it: &&Name| matches!(it, Name::Publishers { .. });
        let mut publishers = Publishers::default();
        if let Some(name) = objects.iter().rev().find(is_of) {
            let bytes = checked(self.store, *name, METADATA_BYTES_MAX)
                .map_err(|error| self.of_copy(&error))?;
            let all = publishers_of_bytes(&bytes)
                .ok_or_else(|| self.of_copy(&damaged(self.store, name, "is damaged")))?;
            all.into_iter().for_each(|(publication, mark)| publishers.note(publication, mark));
        }
        Ok((tables, plan, publishers))
    }

    /// Fetches the log.
    fn fetch(&mut self, plan: &Plan) -> Result<()> {
        let mut before: Option<(u64, u64)> = None;
        for (at, segment) in plan.segments.iter().enumerate() {
            let is_last = at + 1 == plan.segments.len() && plan.tail.is_none();
            before = Some(self.fetch_segment(segment, before, is_last)?);
        }
        if let Some(tail) = &plan.tail {
            self.fetch_tail(tail, before)?;
        }
        self.logs.sync_folder().map_err(|e| failed(&self.folder, "sync its folder", e))
    }

    /// Checks the head of a segment against its name and the segment before it, given by salt and length.
    fn check(
        &self,
        head: &[u8],
        (first, salt, name): (u64, u64, &Name),
        before: Option<(u64, u64)>,
    ) -> Result<Head> {
        let head = Head::from_bytes(head).map(|(head, _)| head);
        let goes_on = |head: &Head| {
            before.is_none_or(|(salt, end)| {
                head.before.is_some_and(|it| it.salt == salt && it.end == end)
            })
        };
        let is_own = |head: &Head| {
            head.first_mark == first
                && head.salt == salt
                && head.segment_bytes <= Options::SEGMENT_BYTES_MAX
                && goes_on(head)
        };
        head.filter(is_own).ok_or_else(|| {
            let what = "is damaged: its head contradicts its name or the segment before it";
            self.of_copy(&damaged(self.store, name, what))
        })
    }

    /// Fetches a complete segment. Returns its salt and length.
    fn fetch_segment(
        &mut self,
        segment: &PlannedSegment,
        before: Option<(u64, u64)>,
        is_last: bool,
    ) -> Result<(u64, u64)> {
        let name = segment.name;
        let again = |what: String| self.wrong(format!("{name}: {what}"));
        let object = self.store.open(&name.to_string());
        let object = object.map_err(|error| again(format!("cannot be read: {error}")))?;
        let object = object.ok_or_else(|| again("does not exist any longer: try again".into()))?;
        let length = object.length();
        if !(HEAD_BYTES..=SEGMENT_BYTES_MAX).contains(&length) {
            let what = format!("has {length} bytes, which no segment has");
            return Err(self.of_copy(&damaged(self.store, &name, &what)));
        }
        let mut head = vec![0; HEAD_BYTES as usize];
        self.read_exactly(object.as_ref(), 0, &mut head, &name)?;
        let head = self.check(&head, (segment.first, segment.salt, &name), before)?;
        let file = self.create(segment.first, length)?;
        let mut sum = SumOfPieces::default();
        let mut at = 0;
        while at < length {
            let mut piece = vec![0; (length - at).min(PIECE_BYTES as u64) as usize];
            self.read_exactly(object.as_ref(), at, &mut piece, &name)?;
            sum.update(&piece);
            self.write(file.as_ref(), (segment.first, at), &piece)?;
            at += piece.len() as u64;
        }
        if sum.finish() != name.sum() {
            let what = "is damaged: its bytes do not match its checksum";
            return Err(self.of_copy(&damaged(self.store, &name, what)));
        }
        self.end(file.as_ref(), (segment.first, length), is_last.then_some(head.segment_bytes))?;
        Ok((segment.salt, length))
    }

    /// Fetches the parts of the last segment.
    fn fetch_tail(&mut self, tail: &PlannedTail, before: Option<(u64, u64)>) -> Result<()> {
        let mut file = None;
        let (mut at, mut segment_bytes) = (0, 0);
        for part in &tail.parts {
            let bytes = checked(self.store, part.name, PART_BYTES_MAX)
                .map_err(|error| self.of_copy(&error))?;
            if bytes.len() as u64 != part.end - part.start {
                return Err(self.of_copy(&damaged(self.store, &part.name, "has another length")));
            }
            if file.is_none() {
                let head = self.check(&bytes, (tail.first, tail.salt, &part.name), before)?;
                segment_bytes = head.segment_bytes;
                file = Some(self.create(tail.first, tail.end())?);
            }
            if let Some(file) = &file {
                // Parts may overlap, and what they share is the same.
                let new = &bytes[(at - part.start) as usize..];
                self.write(file.as_ref(), (tail.first, at), new)?;
            }
            at = part.end;
        }
        match file {
            Some(file) => self.end(file.as_ref(), (tail.first, at), Some(segment_bytes)),
            None => Ok(()),
        }
    }

    fn read_exactly(
        &self,
        object: &dyn Source,
        offset: u64,
        bytes: &mut [u8],
        name: &Name,
    ) -> Result<()> {
        let mut filled = 0;
        while filled < bytes.len() {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            let read = object.read_at(offset + filled as u64, &mut bytes[filled..]);
            let read = read.and_then(|count| match count {
                0 => Err(io::ErrorKind::UnexpectedEof.into()),
                count => Ok(count),
            });
            let at = offset + filled as u64;
            filled += read.map_err(|error| {
                self.wrong(format!("{name}: cannot be read at byte {at}: {error}"))
            })?;
        }
        Ok(())
    }

    fn create(&mut self, first: u64, bytes: u64) -> Result<Box<dyn DiskFile>> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let name = segment_name(first);
        self.restored.segments += 1;
        self.restored.bytes += bytes;
        let path = self.folder.join(LOG_FOLDER).join(&name);
        let bytes = bytes.next_multiple_of(HEAD_BYTES);
        self.logs.create(&name, bytes).map_err(|error| failed(&path, "create it", error))
    }

    /// Writes bytes of a segment, at a multiple of the block.
    fn write(&mut self, file: &dyn DiskFile, (first, at): (u64, u64), bytes: &[u8]) -> Result<()> {
        let path = self.folder.join(LOG_FOLDER).join(segment_name(first));
        let is_aligned = at.is_multiple_of(file.block_bytes());
        let mut write = || {
            if !is_aligned {
                let mut done = 0;
                while done < bytes.len() {
                    done += match file.write_at(at + done as u64, &bytes[done..])? {
                        0 => return Err(io::ErrorKind::WriteZero.into()),
                        count => count,
                    };
                }
                return Ok(());
            }
            let mut output = Output::new(file, &mut self.buffer, at);
            output.put(bytes)?;
            output.pad(file.block_bytes())?;
            output.flush()
        };
        write().map_err(|error| failed(&path, "write it", error))
    }

    /// Ends a file: a complete segment ends here; the last one has free space after it.
    fn end(
        &self,
        file: &dyn DiskFile,
        (first, length): (u64, u64),
        segment_bytes: Option<u64>,
    ) -> Result<()> {
        let path = self.folder.join(LOG_FOLDER).join(segment_name(first));
        let end = || {
            file.truncate(length)?;
            if let Some(bytes) = segment_bytes.filter(|bytes| *bytes > length) {
                file.allocate(bytes)?;
            }
            file.sync()
        };
        end().map_err(|error| failed(&path, "write it", error))
    }

    /// Reads the log as a whole, and verifies it.
    fn verified(&self) -> Result<(Recovered, Index, Publishers)> {
        let mut reader = Reader::of(Arc::clone(&self.logs), 1)?;
        let (mut recovered, mut index, mut publishers) =
            (Recovered::default(), Index::default(), Publishers::default());
        while let Some(event) = reader.next_event()? {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            if let Some(entry) = recovered.note(event) {
                if let Some(publication) = entry.publication() {
                    publishers.note(publication, entry.marks().start);
                }
                index.add(&entry);
            }
        }
        recovered.next_mark = reader.next_mark();
        Ok((recovered, index, publishers))
    }
}

/// Adds the publications of the restored log to those of removed segments. Those that the log does not have count for
/// nothing: their batches are to be sent again.
fn joined(removed: Publishers, found: Publishers, next_mark: u64) -> Publishers {
    let mut all: Vec<_> = removed.noted().filter(|(_, mark)| *mark < next_mark).collect();
    all.extend(found.noted());
    all.sort_by_key(|(_, mark)| *mark);
    let mut joined = Publishers::default();
    all.into_iter().for_each(|(publication, mark)| joined.note(publication, mark));
    joined
}
