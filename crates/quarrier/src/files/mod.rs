//! Files: what the file systems in a source hold, as rows, and their bytes in a folder.
//!
//! ```text
//!  Files ──run(place)──→ partitions ──→ file systems ──→ rows of what is wanted ──→ watch
//!                                                          └──→ bytes, into a folder
//! ```

mod row;
mod running;
mod wanted;

pub use row::{COLUMNS, Row};
pub use running::Listed;
use wanted::Wanted;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use quarrier_files::Places;

use crate::case::Notes;
use crate::source::only_in_order;
use crate::{Place, Result};

/// A request: which files are listed, and whether their bytes are written somewhere.
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
    notes: Notes,
}

/// Whose the bytes of a source are: its file systems are read, deleted files too. Where there is none
/// that is known here, all bytes are outside, and a notice says so.
///
/// # Errors
/// [`Error::Unsupported`](crate::Error::Unsupported) for a stream,
/// [`Error::Files`](crate::Error::Files) where a file system cannot be read.
pub fn places(place: &Place<'_>, stop: &AtomicBool) -> Result<Places> {
    let source = place.source().ok_or_else(|| only_in_order(place.name().to_string()))?;
    Ok(Places::read(source, stop)?)
}

impl Files {
    /// A request for everything that is not deleted, as rows only.
    pub fn new() -> Self {
        Files::default()
    }

    /// Only what has this path, and all that is below it where it is a folder; or whose path, or name
    /// where there is no slash in it, matches as a glob. `#2/Users` is a path of the second partition.
    ///
    /// # Errors
    /// [`Error::Request`](crate::Error::Request) for a glob that is none.
    pub fn only(mut self, path: Option<&str>) -> Result<Self> {
        self.wanted = path.map_or(Ok(Wanted::default()), Wanted::new)?;
        Ok(self)
    }

    /// Deleted files, too.
    pub fn deleted(mut self, deleted: bool) -> Self {
        self.deleted = deleted;
        self
    }

    /// The bytes of the files are written into this folder, which is new or empty, with names made
    /// harmless and with their times.
    pub fn extract(mut self, folder: Option<PathBuf>) -> Self {
        self.folder = folder;
        self
    }

    /// What the case file in the folder says of the run, beside what is known here.
    pub fn notes(mut self, notes: Notes) -> Self {
        self.notes = notes;
        self
    }
}
