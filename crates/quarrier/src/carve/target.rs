//! The destination of carved files: a folder, or rows only.

use std::io;
use std::sync::Arc;

use quarrier_carve::folder::{
    Annotate, Folder, Row, RowHashes, annotated, described_with, path_of,
};
use quarrier_carve::{Carved, Stride, View};

pub(super) enum Target {
    Folder(Box<Folder>),
    /// No destination for bytes: rows only.
    Rows {
        source_name: String,
        is_digested: bool,
        annotation: Option<Arc<dyn Annotate>>,
    },
}

impl Target {
    pub(super) fn take(&self, carved: &Carved, view: &mut View<'_>) -> io::Result<Row> {
        match self {
            Target::Folder(folder) => folder.write(carved, view),
            Target::Rows { source_name, is_digested, annotation } => {
                if *is_digested {
                    return described_with(source_name, carved, view, annotation.as_deref());
                }
                let mut row = undigested(source_name, carved);
                if let Some(annotation) = annotation {
                    annotated(&**annotation, &mut row, view)?;
                }
                Ok(row)
            }
        }
    }

    pub(super) fn take_inside(&self, mut row: Row, bytes: &[u8]) -> io::Result<Row> {
        match self {
            Target::Folder(folder) => folder.write_inside(row, bytes),
            Target::Rows { annotation, .. } => {
                if let Some(annotation) = annotation {
                    let mut annotating = annotation.begin();
                    annotating.update(bytes);
                    annotating.finish(&mut row)?;
                }
                Ok(row)
            }
        }
    }

    pub(super) fn source_name(&self) -> &str {
        match self {
            Target::Folder(folder) => folder.source_name(),
            Target::Rows { source_name, .. } => source_name,
        }
    }

    pub(super) fn note(&self, stride: &Stride<'_>) -> io::Result<()> {
        match self {
            Target::Folder(folder) => folder.note(stride),
            Target::Rows { .. } => Ok(()),
        }
    }

    pub(super) fn finish(&self, is_complete: bool) -> io::Result<()> {
        match self {
            Target::Folder(folder) => folder.finish(is_complete),
            Target::Rows { .. } => Ok(()),
        }
    }
}

/// A row without a digest, which would require reading all bytes.
fn undigested(source_name: &str, carved: &Carved) -> Row {
    Row {
        source: source_name.to_string(),
        kind: carved.kind.to_string(),
        offset: carved.offset(),
        length: carved.length(),
        extents: carved.extents.clone(),
        status: carved.status,
        reason: carved.reason.to_string(),
        sha256: String::new(),
        path: path_of(carved),
        container: None,
        place: None,
        known: None,
        hashes: RowHashes::default(),
    }
}
