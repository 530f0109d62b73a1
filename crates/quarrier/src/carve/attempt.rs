//! Carving by several processes into one output folder. A process may end, or be taken for dead, and another
//! one then carves the same source. So each attempt at a source has a folder of its own, and one complete
//! attempt takes the place where a single process would have written.
//!
//! ```text
//! FOLDER/.disk.img-0c1f….ATTEMPT    an attempt at one of several sources
//! FOLDER/.only.ATTEMPT              an attempt at the only source
//! ```

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::Carve;
use super::several::{part_name, refuse_full};
use crate::case::CASE;
use crate::{Error, Result};

/// The name of the only source in the names of its attempts.
const ONLY: &str = "only";

impl Carve {
    /// The request for an attempt at a source, whose files [`adopt`] moves to their place later.
    /// `attempt` is unique, without dots. `is_single` means that the source is the only one, whose files
    /// have no subfolder.
    pub fn attempt(&self, source: &OsStr, is_single: bool, attempt: &str) -> Carve {
        let mut request = self.clone();
        request.part = (!is_single).then(|| part_name(source));
        let name = prefix(request.part.as_deref()) + attempt;
        request.folder = self.folder.as_ref().map(|folder| folder.join(name));
        request.resume = false;
        request
    }
}

/// The beginning of the names of all attempts at a source.
fn prefix(part: Option<&str>) -> String {
    format!(".{}.", part.unwrap_or(ONLY))
}

/// Creates the output folder for attempts at a single source, unless it is there.
///
/// # Errors
/// [`Error::Request`] if it is not empty, [`Error::Folder`] if it cannot be created.
pub fn create_folder(folder: &Path) -> Result<()> {
    let failed = |error: io::Error| Error::Folder { folder: folder.to_path_buf(), error };
    if !folder.is_dir() {
        fs::create_dir(folder).map_err(failed)?;
    }
    match fs::read_dir(folder).map_err(failed)?.next().transpose().map_err(failed)? {
        Some(entry) => refuse_full(folder, &entry),
        None => Ok(()),
    }
}

/// Moves the files of a complete [attempt](Carve::attempt) at a source to their place in `folder`, and removes
/// all other attempts at it. Without `is_wanted`, removes all of them. `source` is `None` for the only one.
/// Returns whether files were moved.
///
/// # Errors
/// [`Error::Folder`] with the system's error.
pub fn adopt(folder: &Path, source: Option<&OsStr>, is_wanted: bool) -> Result<bool> {
    let part = source.map(part_name);
    let adopted = adopt_part(folder, part.as_deref(), is_wanted);
    adopted.map_err(|error| Error::Folder { folder: folder.to_path_buf(), error })
}

fn adopt_part(folder: &Path, part: Option<&str>, is_wanted: bool) -> io::Result<bool> {
    let prefix = prefix(part);
    let mut is_adopted = false;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let attempt = name.as_bytes().strip_prefix(prefix.as_bytes());
        if attempt.is_none_or(|attempt| attempt.is_empty() || attempt.contains(&b'.')) {
            continue;
        }
        if is_wanted && !is_adopted && is_complete(&entry.path()) {
            move_up(folder, part, &entry.path())?;
            is_adopted = true;
        } else {
            // A process that was taken for dead may still write there, or remove it, too.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(is_adopted)
}

/// Whether an attempt wrote all its files. The case file is the last one.
fn is_complete(attempt: &Path) -> bool {
    let case = fs::read(attempt.join(CASE)).ok();
    case.is_some_and(|case| serde_json::from_slice::<serde_json::Value>(&case).is_ok())
}

/// Moves an attempt to the place of its source.
fn move_up(folder: &Path, part: Option<&str>, attempt: &Path) -> io::Result<()> {
    if let Some(part) = part {
        return match folder.join(part) {
            // The same source was named twice.
            place if place.exists() => fs::remove_dir_all(attempt),
            place => fs::rename(attempt, place),
        };
    }
    for entry in fs::read_dir(attempt)? {
        let entry = entry?;
        fs::rename(entry.path(), folder.join(entry.file_name()))?;
    }
    fs::remove_dir(attempt)
}
