//! Where carved files go: into a folder, or nowhere.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use quarrier_carve::embedded::is_archive;
use quarrier_carve::folder::{Folder, Inside, Row, Skipped, described};
use quarrier_carve::{Carved, Keep, Stride, View};

/// Takes what is found, and what lies in it where that is asked for.
pub(super) struct Writer<'w> {
    folder: Option<&'w Folder>,
    source_name: &'w str,
    inside: Option<Inside>,
    told: Mutex<Told>,
}

/// What a run gave.
#[derive(Default)]
pub(super) struct Told {
    /// All rows, where no folder has them.
    pub(super) rows: Vec<Row>,
    /// Members of archives that were not looked at.
    pub(super) skipped: Option<Skipped>,
}

impl<'w> Writer<'w> {
    pub(super) fn new(
        folder: Option<&'w Folder>,
        source_name: &'w str,
        inside: Option<Inside>,
    ) -> Self {
        Writer { folder, source_name, inside, told: Mutex::default() }
    }

    /// The end: rows in the order of the source, each archive before what lies in it.
    pub(super) fn into_told(self) -> Told {
        let mut told = self.told.into_inner().unwrap_or_else(PoisonError::into_inner);
        told.rows.sort_by(|a, b| {
            let key = |row: &Row| (row.offset, row.number());
            key(a).cmp(&key(b)).then_with(|| a.kind.cmp(&b.kind))
        });
        told
    }

    fn take(&self, carved: &Carved, view: &mut View<'_>) -> io::Result<Row> {
        match self.folder {
            Some(folder) => folder.write(carved, view),
            None => described(self.source_name, carved, view),
        }
    }

    fn take_inside(&self, row: Row, bytes: &[u8]) -> io::Result<Row> {
        match self.folder {
            Some(folder) => folder.write_inside(row, bytes),
            None => Ok(row),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keep for Writer<'_> {
    fn keep(&self, carved: &Carved, view: &mut View<'_>) -> io::Result<()> {
        let mut rows = Vec::new();
        if self.inside.as_ref().is_none_or(|inside| inside.wants(&carved.kind)) {
            rows.push(self.take(carved, view)?);
        }
        let mut done = Ok(None);
        if let Some(inside) = &self.inside
            && carved.is_ended
            && is_archive(&carved.kind)
        {
            view.look_at(&carved.extents, u64::MAX);
            let mut write = |row, bytes: &[u8]| self.take_inside(row, bytes);
            done = inside.take(self.source_name, carved, view, &mut write, &mut rows);
        }
        let mut told = self.lock();
        if self.folder.is_none() {
            told.rows.append(&mut rows);
        }
        if let Some(skipped) = done? {
            Skipped::add(&mut told.skipped, skipped);
        }
        Ok(())
    }

    fn stride(&self, stride: &Stride<'_>) -> io::Result<()> {
        self.folder.map_or(Ok(()), |folder| folder.note(stride))
    }
}
