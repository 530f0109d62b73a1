//! Where files go: into a folder, or nowhere.

use std::io;

use quarrier_carve::folder::{Folder, Row, described};
use quarrier_carve::{Carved, Stride, View};

pub(super) enum Target {
    Folder(Box<Folder>),
    /// Nowhere; the name of the source, for rows.
    Dry(String),
}

impl Target {
    pub(super) fn take(&self, carved: &Carved, view: &mut View<'_>) -> io::Result<Row> {
        match self {
            Target::Folder(folder) => folder.write(carved, view),
            Target::Dry(source_name) => described(source_name, carved, view),
        }
    }

    pub(super) fn take_inside(&self, row: Row, bytes: &[u8]) -> io::Result<Row> {
        match self {
            Target::Folder(folder) => folder.write_inside(row, bytes),
            Target::Dry(_) => Ok(row),
        }
    }

    pub(super) fn source_name(&self) -> &str {
        match self {
            Target::Folder(folder) => folder.source_name(),
            Target::Dry(source_name) => source_name,
        }
    }

    pub(super) fn note(&self, stride: &Stride<'_>) -> io::Result<()> {
        match self {
            Target::Folder(folder) => folder.note(stride),
            Target::Dry(_) => Ok(()),
        }
    }

    pub(super) fn finish(&self, is_complete: bool) -> io::Result<()> {
        match self {
            Target::Folder(folder) => folder.finish(is_complete),
            Target::Dry(_) => Ok(()),
        }
    }
}
