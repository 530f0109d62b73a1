//! Completes rows of carved files: which file system entry their bytes belong to, and whether they are
//! known.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use quarrier_carve::folder::{Annotate, Bytes, Row, RowPlace};
use quarrier_files::{Hasher, Known, Places, time_in_words};

use super::Carve;
use super::ground::Ground;
use crate::{Error, Result};

/// The data by which rows are completed.
pub(super) struct Annotation {
    places: Option<Arc<Places>>,
    known: Option<Arc<Known>>,
}

impl Annotation {
    /// The annotations that `carve` requests, `None` for none.
    pub(super) fn of(carve: &Carve, ground: &Ground) -> Option<Arc<Self>> {
        let places = ground.places.clone().filter(|_| carve.locates);
        let known = carve.known.clone();
        let has_any = places.is_some() || known.is_some();
        has_any.then(|| Arc::new(Annotation { places, known }))
    }

    /// Whether a file with these bytes is known.
    pub(super) fn is_known(&self, bytes: &mut Bytes<'_>) -> Option<bool> {
        let known = self.known.as_ref()?;
        let mut hasher = Hasher::new(known.needs_old());
        bytes(&mut |piece| hasher.update(piece));
        Some(known.has(&hasher.finish()))
    }
}

impl Annotate for Annotation {
    fn annotate(&self, row: &mut Row, bytes: &mut Bytes<'_>) {
        if let Some(places) = &self.places {
            let extents: Vec<_> = row.extents.iter().map(extent).collect();
            let place = places.with_extents(&extents).unwrap_or_else(|| places.at(row.offset));
            row.place = Some(RowPlace {
                file: place.file.map(str::to_string),
                inode: place.inode,
                state: place.state.name().to_string(),
                modified: place.modified.map(time_in_words),
            });
        }
        row.known = self.is_known(bytes);
    }
}

fn extent(one: &quarrier_carve::Extent) -> quarrier_files::Extent {
    quarrier_files::Extent { offset: one.offset, length: one.length }
}

/// Reads sets of known files: `hashdeep`, and lists of MD5, SHA-1 and SHA-256.
///
/// # Errors
/// [`Error::Request`] for a file without hashes, [`Error::Source`] where one cannot be read.
pub fn read_known(paths: &[PathBuf]) -> Result<Known> {
    let mut known = Known::default();
    for path in paths {
        let name = || path.display().to_string();
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::InvalidData => Error::Request(format!("{}: {error}", name())),
            _ => Error::Source(quarrier_core::Error::io(name(), "read", error)),
        };
        let file = std::fs::File::open(path).map_err(failed)?;
        known.read(file).map_err(failed)?;
    }
    known.sort();
    Ok(known)
}
