//! A folder of carved files: the files themselves, a report of them, and the state to resume after a
//! crash.
//!
//! ```text
//! FOLDER/jpg/00000001a000.jpg    a file: its type, its offset in the source
//! FOLDER/report.jsonl            a row for each, in the order of the source
//! FOLDER/report.dfxml            the same for forensic tools
//! FOLDER/.carving/               while it is not finished: journal, parts of files, a reserve
//! ```
//!
//! A file appears under its name once all of it is written. All writes go through descriptors of
//! the folder and follow no symbolic link in it, so that nothing is written elsewhere.

mod annotate;
mod begin;
mod dfxml;
mod file;
mod identity;
mod index;
mod inside;
mod journal;
mod place;
mod reserve;
mod row;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use quarrier_core::sync::lock;

pub use annotate::{Annotate, Annotating, annotated};
pub use begin::Resumed;
pub use file::{described, described_inside, described_with, fingerprint, path_of};
pub use inside::{Skipped, UnpackSettings};
pub use place::write_new;
pub use row::{Row, RowHashes, RowPlace};

use crate::carved::Carved;
use crate::carver::{Keep, Stride};
use crate::view::View;
use index::Index;
use journal::Journal;
use place::Place;
use reserve::Reserve;

/// Name of the report with one JSON object per line.
pub const REPORT: &str = "report.jsonl";
/// Name of the report as DFXML.
pub const REPORT_DFXML: &str = "report.dfxml";

/// A folder for carved files, into which many threads write at once.
pub struct Folder {
    place: Place,
    source_name: String,
    inner: Mutex<Inner>,
    annotate: Option<Arc<dyn Annotate>>,
}

struct Inner {
    journal: Journal,
    reserve: Reserve,
    index: Index,
    /// The places in the journal of the rows of an earlier run, by path. This run has not reached
    /// their files yet.
    known: HashMap<String, journal::Line>,
}

impl Folder {
    /// Sets the annotations that complete rows before the journal records them.
    #[must_use]
    pub fn annotate(mut self, annotate: Option<Arc<dyn Annotate>>) -> Self {
        self.annotate = annotate;
        self
    }

    /// Writes the file unless an earlier run has written it, and returns its row.
    ///
    /// # Errors
    /// The operating system's error; the file is removed then.
    pub fn write(&self, carved: &Carved, view: &mut View<'_>) -> io::Result<Row> {
        let path = file::path_of(carved);
        if !self.lock().index.claim(carved) {
            return described_with(&self.source_name, carved, view, self.annotate.as_deref());
        }
        let is_same = |row: &Row| {
            row.extents == carved.extents
                && row.status == carved.status
                && row.reason == carved.reason
        };
        if let Some(row) = self.already(&path, is_same)? {
            return Ok(row);
        }
        let (kind, name) = path.split_once('/').unwrap_or(("", &path));
        let mut annotating = self.annotate.as_ref().map(|annotate| annotate.begin());
        let (length, sha256) = self.place.write(kind, name, |out| {
            file::copy(view, carved.length(), Some(out), annotating.as_mut())
        })?;
        let mut row = file::row(&self.source_name, carved, view, length, sha256, path.clone());
        if let Some(annotating) = annotating
            && let Err(error) = annotating.finish(&mut row)
        {
            self.place.remove(kind, name);
            return Err(error);
        }
        self.add(&row).map(|()| row)
    }

    /// Writes a member of an archive; `row` comes from [`described_inside`].
    ///
    /// # Errors
    /// As [`write`](Folder::write).
    pub fn write_inside(&self, mut row: Row, bytes: &[u8]) -> io::Result<Row> {
        if let Some(annotate) = &self.annotate {
            let mut annotating = annotate.begin();
            if annotate.takes_bytes() {
                annotating.update(bytes);
            }
            annotating.finish(&mut row)?;
        }
        if let Some(row) = self.already(&row.path, |before| *before == row)? {
            return Ok(row);
        }
        let (kind, name) = row.path.split_once('/').unwrap_or(("", &row.path));
        self.place.write(kind, name, |out| io::Write::write_all(out, bytes))?;
        self.add(&row).map(|()| row)
    }

    /// Returns the row of a file that an earlier run wrote, if it is unchanged.
    fn already(&self, path: &str, is_same: impl Fn(&Row) -> bool) -> io::Result<Option<Row>> {
        let Some(line) = self.lock().known.remove(path) else { return Ok(None) };
        let row = self.lock().journal.row(line)?;
        if !is_same(&row) || !self.place.holds(&row) {
            return Ok(None);
        }
        self.lock().index.add(&row, line);
        Ok(Some(row))
    }

    /// Records a file that was written. If that fails, removes the file.
    fn add(&self, row: &Row) -> io::Result<()> {
        let added = self.lock().add(row);
        if let (Err(_), Some((kind, name))) = (&added, row.path.split_once('/')) {
            self.place.remove(kind, name);
        }
        added
    }

    /// Returns the name of the source, as in rows.
    pub fn source_name(&self) -> &str {
        &self.source_name
    }

    /// Records a stride, so that another run can resume after it.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn note(&self, stride: &Stride<'_>) -> io::Result<()> {
        self.lock().journal.stride(stride)
    }

    /// Writes the reports. With `is_complete`, removes the state for resuming; else another run can
    /// [`resume`](Folder::resume).
    ///
    /// # Errors
    /// The operating system's error; existing reports are complete.
    pub fn finish(&self, is_complete: bool) -> io::Result<()> {
        let inner = &mut *self.lock();
        for (path, line) in inner.known.drain() {
            let row = inner.journal.row(line)?;
            if !is_complete && self.place.holds(&row) {
                inner.index.add(&row, line);
            } else if let Some((kind, name)) = path.split_once('/') {
                // An earlier run wrote it as broken before it was stopped, which is no longer
                // right.
                self.place.remove(kind, name);
            }
        }
        inner.reserve.release(&self.place);
        let lines = inner.index.sorted();
        let journal = &inner.journal;
        self.place.write_report(REPORT, |out| {
            for line in &lines {
                out.write_all(&journal.text(*line)?)?;
                out.write_all(b"\n")?;
            }
            Ok(())
        })?;
        self.place.write_report(REPORT_DFXML, |out| {
            let rows = lines.iter().map(|line| journal.row(*line));
            dfxml::write(out, &self.source_name, rows)
        })?;
        if is_complete {
            self.place.remove_state();
        }
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        lock(&self.inner)
    }
}

impl Inner {
    /// Adds a file to the journal and the index.
    fn add(&mut self, row: &Row) -> io::Result<()> {
        let text = row.to_json();
        self.reserve.grow(dfxml::BYTES_AROUND + 3 * text.len() as u64)?;
        let line = self.journal.file(&text)?;
        self.index.add(row, line);
        Ok(())
    }
}

impl Keep for Folder {
    fn keep(&self, carved: &Carved, view: &mut View<'_>) -> io::Result<()> {
        self.write(carved, view).map(drop)
    }

    fn stride(&self, stride: &Stride<'_>) -> io::Result<()> {
        self.note(stride)
    }
}
