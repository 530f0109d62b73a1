//! Resolves names and globs to files.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use quarrier_core::source::SplitSource;

use super::globbed::{globbed, is_glob};
use super::names::{is_ewf, segments_from};

/// The files for a name: the file itself, or all matches of a glob in order, which may be none. A split
/// image is represented by its first part.
///
/// # Errors
/// A message if the name is neither a file nor a valid glob.
pub fn files(name: &Path) -> Result<Vec<PathBuf>, String> {
    if !is_glob(name.as_os_str()) || name.exists() {
        return Ok(vec![name.to_path_buf()]);
    }
    let paths = globbed(name).map_err(|error| format!("is not a glob: {error}"))?;
    let mut taken: HashSet<PathBuf> = HashSet::new();
    let is_new = |path: &PathBuf| {
        let is_new = !taken.contains(path);
        taken.extend(parts_from(path).into_iter().flatten());
        is_new
    };
    Ok(paths.into_iter().filter(|path| path.is_file()).filter(is_new).collect())
}

/// The files of a split image that starts with `path`; `None` if it is not one.
pub fn parts_from(path: &Path) -> Option<Vec<PathBuf>> {
    if is_ewf(path) {
        return Some(segments_from(path));
    }
    SplitSource::is_first_part(path).then(|| SplitSource::parts_from(path))
}
