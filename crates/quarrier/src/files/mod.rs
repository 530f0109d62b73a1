//! Files: the entries of the file systems in a source, as rows, and their bytes in a folder.
//!
//! ```text
//!  Files ──run(place)──→ partitions ──→ file systems ──→ rows of requested entries ──→ watch
//!                                                          └──→ bytes, into a folder
//! ```

mod row;
mod running;
mod unallocated;
mod wanted;

pub use row::{COLUMNS, Row, RowBatch, RowView};
pub use running::Listed;
pub use unallocated::Unallocated;
pub(crate) use unallocated::within;
use wanted::Wanted;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use quarrier_files::{HashKinds, Places};

use crate::case::Notes;
use crate::source::only_in_order;
use crate::{Place, Result};

/// A request: the files to list, and whether to write their bytes to a folder.
///
/// ```
/// use quarrier::{Error, Files, Place};
/// use quarrier_core::source::Memory;
///
/// let image = Memory::new("image", vec![0; 4096]);
/// let stop = false.into();
/// let listed = Files::new().run(Place::Local(&image), &stop, &mut |_| Ok(()));
/// assert!(matches!(listed, Err(Error::Files(_))));
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Files {
    wanted: Wanted,
    deleted: bool,
    folder: Option<PathBuf>,
    hashes: HashKinds,
    notes: Notes,
}

/// Reads the file systems of a source, deleted files included, to map each byte to its file. If no file
/// system is found, all bytes are outside, and a notice reports it. Unreadable parts of a file system
/// are [damage](Places::damages), as in a listing.
///
/// # Errors
/// [`Error::Unsupported`](crate::Error::Unsupported) for a stream,
/// [`Error::Files`](crate::Error::Files) if a file system cannot be read.
pub fn places(place: &Place<'_>, stop: &AtomicBool) -> Result<Places> {
    let source = place.source().ok_or_else(|| only_in_order(place.name().to_string()))?;
    Ok(Places::read(source, stop)?)
}

impl Files {
    /// Creates a request for all allocated files, as rows only.
    pub fn new() -> Self {
        Files::default()
    }

    /// Selects the entry with this path and, for a folder, everything below it; or entries whose path
    /// (or name, if there is no slash) matches as a glob. `#2/Users` is a path of the second partition.
    ///
    /// # Errors
    /// [`Error::Request`](crate::Error::Request) for an invalid glob.
    pub fn only(mut self, path: Option<&str>) -> Result<Self> {
        self.wanted = path.map_or(Ok(Wanted::default()), Wanted::new)?;
        Ok(self)
    }

    /// Lists deleted files, too.
    pub fn deleted(mut self, deleted: bool) -> Self {
        self.deleted = deleted;
        self
    }

    /// Writes the bytes of the files into this folder, which must be new or empty, with harmless names
    /// and their times.
    pub fn extract(mut self, folder: Option<PathBuf>) -> Self {
        self.folder = folder;
        self
    }

    /// Adds hashes of written files, besides SHA-256, to rows and to the case file.
    pub fn hashes(mut self, hashes: HashKinds) -> Self {
        self.hashes = hashes;
        self
    }

    /// Adds notes to the case file in the folder, besides the facts that this crate knows.
    pub fn notes(mut self, notes: Notes) -> Self {
        self.notes = notes;
        self
    }
}
