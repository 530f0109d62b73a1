//! Runs a listing.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use quarrier_core::source::Source;
use quarrier_files::{
    Entry, Error as FilesError, Folder, Kind, Piece, Reach, System, Systems, WrittenFile, find,
};

use serde_json::json;

use super::{Files, Row};
use crate::case::{self, CASE, Facts, Output, while_hashing};
use crate::source::{only_in_order, refuse_folder_on_source};
use crate::{Error, Place, Result};

/// Maximum number of failed files that are named; the rest are only counted.
const NAMED_MAX: usize = 100;

/// The outcome of a listing.
#[derive(Debug, Default)]
pub struct Listed {
    /// The file systems.
    pub systems: Systems,
    /// The number of rows.
    pub rows: u64,
    /// The size of the written files in bytes.
    pub written_bytes: u64,
    /// Damaged entries, and files that could not be written: a line each.
    pub damages: Vec<String>,
    /// Ranges of the source, within written files, that could not be read.
    pub unreadable: Vec<Range<u64>>,
    /// Whether it was stopped before its end.
    pub stopped: bool,
    /// The duration of the run.
    pub elapsed: Duration,
    /// The number of files that could not be written.
    failed: usize,
}

impl Files {
    /// Lists the files of a source, and extracts them if requested. Ends soon after `stop` becomes
    /// true.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a stream; [`Error::Files`] if there is no file system, or none can be
    /// read; [`Error::Folder`] if files cannot be written; [`Error::Output`] with the error that
    /// `watch` returned.
    pub fn run(
        &self,
        place: Place<'_>,
        stop: &AtomicBool,
        watch: &mut dyn FnMut(&Row) -> io::Result<()>,
    ) -> Result<Listed> {
        let (started, began) = (Instant::now(), SystemTime::now());
        let Some(source) = place.source() else {
            return Err(only_in_order(place.name().to_string()));
        };
        let systems = find(source)?;
        let mut folder = None;
        if let Some(path) = &self.folder {
            refuse_folder_on_source(path, source)?;
            let made = Folder::create(path);
            let mut made = made.map_err(|error| Error::Folder { folder: path.clone(), error })?;
            made.keep_free(CASE);
            folder = Some(made);
        }
        let mut listing = Listing {
            files: self,
            source,
            reach: self.reach(&place),
            name: source.name().into(),
            are_several: systems.are_several(),
            folder,
            listed: Listed::default(),
            watch,
            failure: None,
            outputs: Vec::new(),
        };
        let all = systems.systems.iter().filter(|one| self.wanted.has_partition(one.partition));
        // An extraction of all files reads most of the source anyway.
        let is_hashed = self.folder.is_some() && self.wanted.is_all();
        let local = if let Place::Local(source) = place { Some(source) } else { None };
        let list = || -> Result<()> {
            for system in all {
                if !listing.system(system, systems.are_several(), stop)? {
                    break;
                }
            }
            Ok(())
        };
        let (hashes, local) = (self.hashes, local.filter(|_| is_hashed));
        let (done, source_digests) = while_hashing(local, hashes, stop, list);
        done?;
        let Listing { folder, mut listed, outputs, .. } = listing;
        if let (Some(folder), Some(path)) = (folder, &self.folder) {
            let options = json!({
                "only": self.wanted.text,
                "deleted": self.deleted,
                "hash": hashes.names().collect::<Vec<_>>(),
            });
            let facts = Facts {
                run: case::Run { verb: "files", notes: &self.notes, options, started: began },
                source_name: source.name(),
                source_bytes: source.length(),
                source_digests,
                hashes,
                range: 0..source.length(),
                unreadable: &listed.unreadable,
            };
            let outputs = outputs.into_iter().map(Ok);
            let finished = case::write(path, &facts, outputs).and_then(|()| folder.finish());
            finished.map_err(|error| Error::Folder { folder: path.clone(), error })?;
        }
        if let Some(more) = listed.failed.checked_sub(NAMED_MAX).filter(|more| *more > 0) {
            listed.damages.push(format!("{more} more files could not be written"));
        }
        listed.systems = systems;
        listed.stopped = stop.load(Ordering::Relaxed);
        listed.elapsed = started.elapsed();
        Ok(listed)
    }
}

/// Maximum length of a link's target in bytes, as in Linux.
const TARGET_BYTES_MAX: u64 = 4096;

/// The target of a link, if it is one and can be read.
fn target(source: &dyn Source, entry: &Entry) -> Option<Vec<u8>> {
    if entry.kind != Kind::Link || entry.size > TARGET_BYTES_MAX {
        return None;
    }
    let mut target = Vec::new();
    let unreadable = quarrier_files::read(source, entry, &mut |piece| {
        match piece {
            Piece::Bytes(bytes) => target.extend_from_slice(bytes),
            Piece::Zeros(zeros) => target.resize(target.len() + zeros as usize, 0),
        }
        Ok(())
    });
    unreadable.is_ok_and(|ranges| ranges.is_empty()).then_some(target)
}

struct Listing<'l> {
    files: &'l Files,
    source: &'l dyn Source,
    reach: Reach,
    /// The name of the source, which all rows share.
    name: Arc<str>,
    are_several: bool,
    folder: Option<Folder>,
    listed: Listed,
    watch: &'l mut dyn FnMut(&Row) -> io::Result<()>,
    failure: Option<Error>,
    outputs: Vec<Output>,
}

impl Listing<'_> {
    /// Lists a file system; returns whether to continue with the next one.
    fn system(
        &mut self,
        system: &System,
        is_one_of_several: bool,
        stop: &AtomicBool,
    ) -> Result<bool> {
        let (source, reach) = (self.source, self.reach);
        let listed = system.list(source, reach, stop, &mut |entry| self.entry(system, entry));
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        match listed {
            Ok(damages) => self.listed.damages.extend(damages.describe()),
            Err(FilesError::Taken(_)) if stop.load(Ordering::Relaxed) => return Ok(false),
            Err(FilesError::Taken(error)) => return Err(Error::Output(error)),
            // List the other file systems nevertheless.
            Err(error) if is_one_of_several => self.listed.damages.push(error.to_string()),
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    fn entry(&mut self, system: &System, entry: Entry) -> io::Result<()> {
        if !self.files.wanted.has(&entry) {
            return Ok(());
        }
        let written = match self.write(system, &entry) {
            Ok(written) => written,
            Err(error) => {
                self.failure = Some(error);
                return Err(io::ErrorKind::Other.into());
            }
        };
        let target = if self.files.targets { target(self.source, &entry) } else { None };
        let source = Arc::clone(&self.name);
        let row = Row { source, partition: system.partition, entry, written, target };
        self.listed.rows += 1;
        (self.watch)(&row)
    }

    /// Writes an entry, if requested and possible.
    fn write(&mut self, system: &System, entry: &Entry) -> Result<Option<WrittenFile>> {
        let Some(folder) = &mut self.folder else { return Ok(None) };
        if entry.kind == Kind::Other || entry.path == "/" {
            return Ok(None);
        }
        let top = if self.are_several { format!("#{}", system.partition) } else { String::new() };
        let hashes = self.files.hashes;
        match folder.write(self.source, &top, entry, hashes) {
            Ok(written) => {
                self.listed.written_bytes += entry.size;
                self.listed.unreadable.extend(written.unreadable.iter().cloned());
                if entry.kind != Kind::Folder {
                    let (path, bytes) = (written.path.clone(), entry.size);
                    self.outputs.push(Output::new(path, bytes, &written.digests, hashes));
                }
                Ok(Some(written))
            }
            Err(FilesError::Taken(error)) => {
                let folder = self.files.folder.clone().unwrap_or_default();
                Err(Error::Folder { folder, error })
            }
            Err(error) => {
                self.listed.failed += 1;
                if self.listed.failed <= NAMED_MAX {
                    self.listed.damages.push(format!("{error}; it is not written"));
                }
                Ok(None)
            }
        }
    }
}
