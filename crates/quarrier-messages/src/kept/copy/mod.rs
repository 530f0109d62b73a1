//! A copy of a data folder's log in an object store, and a data folder restored from it.
//!
//! ```text
//!  identity                                            the log that is copied here; one for each place
//!  tables/NUMBER-SUM                                   names, declarations and bounds of the tables
//!  log/FIRST-NEXT-SALT-SUM.qlog                        a segment that is complete, as on disk
//!  tail/FIRST-SALT-START-END-SUM                       bytes of the last segment
//!  publishers/NUMBER-SUM                               the last publication of each publisher
//! ```
//!
//! Every object is written once and never changed, and its name has the CRC-64/NVME of its bytes. Objects are
//! written in an order such that those that exist at any moment restore to a prefix of the log: the tables before
//! the messages that need them; the bytes of the log in their order; a complete segment before the removal of its
//! parts; a merged part before the removal of those that it replaces; the bounds and the publishers before the
//! removal of a segment that retention has removed.

mod copier;
mod metadata;
mod name;
mod plan;
mod restore;

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;

use quarrier_core::source::Source;

use crate::log::LOG_FOLDER;
use crate::{Error, Result};
use name::Name;

pub use copier::{CopyLag, CopyProgress, LogCopier};
pub(super) use restore::refuse_unrestored;
pub use restore::{Restored, restore};

/// The object that names the log.
const IDENTITY: &str = "identity";
/// Maximum length of a complete segment in bytes; it is in memory while it is sent.
pub(crate) const SEGMENT_BYTES_MAX: u64 = 512 << 20;
/// Maximum length of a part of the last segment.
const PART_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of objects in a folder.
const OBJECTS_MAX: usize = 1 << 22;

/// A place for copies: a folder, or one of a bucket. Names have at most one slash.
pub trait CopyStore: Send + Sync {
    /// Returns the path or URL, without secrets, for display.
    fn name(&self) -> String;

    /// Passes on the names of the objects in a folder of the place, in any order, until it returns false.
    ///
    /// # Errors
    /// The reason, as for all methods here.
    fn list(&self, folder: &str, take: &mut dyn FnMut(&str) -> bool) -> io::Result<()>;

    /// Opens an object; None if it does not exist.
    ///
    /// # Errors
    /// The reason.
    fn open(&self, name: &str) -> io::Result<Option<Box<dyn Source>>>;

    /// Writes a new object durably: all of it or nothing. Returns false, and writes nothing, if an object of this
    /// name exists.
    ///
    /// # Errors
    /// The reason. The object may exist even then.
    fn put_new(&self, name: &str, bytes: Vec<u8>) -> io::Result<bool>;

    /// Removes an object, which need not exist.
    ///
    /// # Errors
    /// The reason.
    fn remove(&self, name: &str) -> io::Result<()>;
}

/// Why copying failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyError {
    /// Another attempt may succeed.
    Again(String),
    /// Another attempt would fail, too: the place has the copy of another log.
    Final(String),
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (CopyError::Again(reason) | CopyError::Final(reason)) = self;
        f.write_str(reason)
    }
}

impl std::error::Error for CopyError {}

impl From<crate::log::Error> for CopyError {
    fn from(error: crate::log::Error) -> Self {
        CopyError::Again(error.to_string())
    }
}

/// Returns the marks of the messages in a copied segment whose object has this name, without folders; None for any
/// other name.
pub(super) fn copied_marks(file: &str) -> Option<Range<u64>> {
    match Name::of(name::SEGMENTS, file)? {
        Name::Segment { first, next, .. } => Some(first..next),
        _ => None,
    }
}

/// Refuses a folder with the copy of a log, which resembles a data folder.
pub(super) fn refuse_copy(folder: &Path) -> Result<()> {
    let names = std::fs::read_dir(folder.join(LOG_FOLDER)).into_iter().flatten().flatten();
    let mut names = names.filter_map(|entry| entry.file_name().into_string().ok());
    if !names.any(|name| copied_marks(&name).is_some()) {
        return Ok(());
    }
    let reason = "is the copy of a log, not a data folder: 'quarrier reindex --restore' makes one of it, and its \
                  folder 'log' has messages";
    Err(Error::Store { place: folder.display().to_string(), reason: reason.to_string() })
}

/// Reads an object as a whole; None if it does not exist.
fn read(store: &dyn CopyStore, name: &str, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    let Some(object) = store.open(name)? else { return Ok(None) };
    let length = object.length();
    if length > bytes_max {
        let what = format!("it has {length} bytes, and at most {bytes_max} are possible");
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    let mut bytes = vec![0; length as usize];
    let mut filled = 0;
    while filled < bytes.len() {
        match object.read_at(filled as u64, &mut bytes[filled..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => filled += count,
        }
    }
    Ok(Some(bytes))
}
