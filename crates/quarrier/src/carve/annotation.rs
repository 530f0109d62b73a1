//! Completes rows of carved files: the file system entry that their bytes belong to, and whether their
//! hash is known.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use quarrier_carve::folder::{Annotate, Annotating, Row, RowHashes, RowPlace};
use quarrier_core::name;
use quarrier_files::{Digests, HashKinds, Hasher, KnownHashes, Places, format_time};

use super::Carve;
use super::ground::Ground;
use crate::{Error, Result};

/// Passes the bytes of a file, piece by piece, to the given function.
pub(super) type Pieces<'p> = dyn FnMut(&mut dyn FnMut(&[u8])) + 'p;

/// The data that completes rows.
pub(super) struct Annotation {
    places: Option<Arc<Places>>,
    known: Option<Arc<KnownHashes>>,
    /// The hashes that rows have.
    hashes: HashKinds,
}

impl Annotation {
    /// The annotations that `carve` requests, `None` for none.
    pub(super) fn of(carve: &Carve, ground: &Ground) -> Option<Arc<Self>> {
        let places = ground.places.clone().filter(|_| carve.locates);
        let (known, hashes) = (carve.known.clone(), carve.hashes);
        let has_any = places.is_some() || known.is_some() || hashes != HashKinds::default();
        has_any.then(|| Arc::new(Annotation { places, known, hashes }))
    }

    /// Whether a file with these bytes is known; false without known hashes.
    ///
    /// # Errors
    /// Those of [`KnownHashes::has`].
    pub(super) fn is_known(&self, bytes: &mut Pieces<'_>) -> io::Result<bool> {
        let Some(known) = &self.known else { return Ok(false) };
        let mut hasher = Hasher::new(known.needs());
        bytes(&mut |piece| hasher.update(piece));
        known.has(&hasher.finish())
    }

    fn add_to(&self, row: &mut Row, digests: Option<&Digests>) -> io::Result<()> {
        if let Some(places) = &self.places {
            let extents: Vec<_> = row.extents.iter().map(extent).collect();
            let place = places.with_extents(&extents).unwrap_or_else(|| places.at(row.offset));
            row.place = Some(RowPlace {
                file: place.file.map(str::to_string),
                inode: place.inode,
                state: place.state.name().to_string(),
                modified: place.modified.map(format_time),
            });
        }
        let Some(digests) = digests else { return Ok(()) };
        row.known = self.known.as_ref().map(|known| known.has(digests)).transpose()?;
        for (name, hash) in digests.named(self.hashes) {
            let RowHashes { md5, sha1, blake3 } = &mut row.hashes;
            let place = match name {
                "md5" => md5,
                "sha1" => sha1,
                _ => blake3,
            };
            *place = Some(hash);
        }
        Ok(())
    }
}

impl Annotate for Annotation {
    fn takes_bytes(&self) -> bool {
        self.known.is_some() || self.hashes != HashKinds::default()
    }

    fn begin(&self) -> Box<dyn Annotating + '_> {
        let of_known = self.known.as_ref().map_or_else(HashKinds::default, |known| known.needs());
        let hasher = self.takes_bytes().then(|| Hasher::new(of_known.or(self.hashes)));
        Box::new(OneFile { annotation: self, hasher })
    }
}

fn extent(one: &quarrier_carve::Extent) -> quarrier_files::Extent {
    quarrier_files::Extent { offset: one.offset, length: one.length }
}

/// A file whose bytes are being hashed.
struct OneFile<'a> {
    annotation: &'a Annotation,
    hasher: Option<Hasher>,
}

impl Annotating for OneFile<'_> {
    fn update(&mut self, bytes: &[u8]) {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
    }

    fn finish(self: Box<Self>, row: &mut Row) -> io::Result<()> {
        let digests = self.hasher.map(Hasher::finish);
        self.annotation.add_to(row, digests.as_ref())
    }
}

/// Reads sets of known files: `hashdeep`, lists of MD5, SHA-1 and SHA-256, and the SQLite databases of
/// NSRL, which stay open.
///
/// # Errors
/// [`Error::Request`] for a file without hashes or a damaged database, [`Error::Source`] if a file cannot
/// be read.
pub fn read_known(paths: &[PathBuf]) -> Result<KnownHashes> {
    let mut known = KnownHashes::default();
    for path in paths {
        let name = || name::of_path(path);
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::InvalidData => Error::Request(format!("{}: {error}", name())),
            _ => Error::Source(quarrier_core::Error::io(name(), "read", error)),
        };
        known.add(path).map_err(failed)?;
    }
    known.sort();
    Ok(known)
}
