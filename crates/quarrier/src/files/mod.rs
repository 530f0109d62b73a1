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

use quarrier_files::{HashKinds, Places, Reach};

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
    lost_folders: LostFolders,
    folder: Option<PathBuf>,
    hashes: HashKinds,
    targets: bool,
    notes: Notes,
}

/// When a listing with deleted files searches the free clusters of FAT and exFAT for lost folders: those
/// whose own entry was overwritten. That reads most free bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LostFolders {
    /// In local sources; over the network it would fetch most of an image.
    #[default]
    Local,
    /// In all sources.
    Always,
    /// In none.
    Never,
}

impl LostFolders {
    /// The names on command lines and in Python, in the order of the variants.
    pub const NAMES: [&str; 3] = ["local", "always", "never"];

    /// The value with this name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [LostFolders::Local, LostFolders::Always, LostFolders::Never];
        Self::NAMES.iter().zip(all).find(|(one, _)| **one == name).map(|(_, when)| when)
    }
}

/// How far to look for files in the file systems at a place, with `deleted` ones or without.
pub(crate) fn reach_at(place: &Place<'_>, deleted: bool) -> Reach {
    match place {
        _ if !deleted => Reach::Allocated,
        Place::Local(_) => Reach::FreeClusters,
        Place::Remote(_) | Place::Stream { .. } => Reach::Deleted,
    }
}

/// Reads the file systems of a source, deleted files included, to map each byte to its file; the free
/// clusters of FAT and exFAT are read if the source is local. If no file system is found, all bytes are outside, and a notice reports it. Unreadable parts of a file system
/// are [damage](Places::damages), as in a listing.
///
/// # Errors
/// [`Error::Unsupported`](crate::Error::Unsupported) for a stream,
/// [`Error::Files`](crate::Error::Files) if a file system cannot be read.
pub fn places(place: &Place<'_>, stop: &AtomicBool) -> Result<Places> {
    let source = place.source().ok_or_else(|| only_in_order(place.name().to_string()))?;
    Ok(Places::read(source, reach_at(place, true), stop)?)
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

    /// When to search free clusters for lost folders, if deleted files are listed.
    pub fn lost_folders(mut self, when: LostFolders) -> Self {
        self.lost_folders = when;
        self
    }

    fn reach(&self, place: &Place<'_>) -> Reach {
        match self.lost_folders {
            _ if !self.deleted => Reach::Allocated,
            LostFolders::Local => reach_at(place, true),
            LostFolders::Always => Reach::FreeClusters,
            LostFolders::Never => Reach::Deleted,
        }
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

    /// Reads the targets of links into rows; up to 4,096 bytes of each.
    pub fn targets(mut self, targets: bool) -> Self {
        self.targets = targets;
        self
    }

    /// Adds notes to the case file in the folder, besides the facts that this crate knows.
    pub fn notes(mut self, notes: Notes) -> Self {
        self.notes = notes;
        self
    }
}
