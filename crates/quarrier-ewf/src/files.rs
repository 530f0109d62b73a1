//! The files that a name stands for.

use std::path::{Path, PathBuf};

use quarrier_core::source::SplitSource;

use crate::names::{is_ewf, segments_from};

/// The files that a name stands for: itself, or all that it matches as a glob, in order, none where
/// there are none. Where all of them are the parts of one image, that is the first of them.
///
/// # Errors
/// In words, where it names no file and is no glob either.
pub fn files(name: &Path) -> Result<Vec<PathBuf>, String> {
    let pattern = name.to_str().filter(|text| text.contains(['*', '?', '[']) && !name.exists());
    let Some(pattern) = pattern else { return Ok(vec![name.to_path_buf()]) };
    let paths = glob::glob(pattern).map_err(|error| format!("is not a glob: {error}"))?;
    let paths: Vec<PathBuf> = paths.filter_map(|path| path.ok()).filter(|p| p.is_file()).collect();
    let mut parts = paths.iter().filter_map(|path| Some((path, parts_from(path)?.len())));
    match parts.next() {
        Some((first, count)) if count == paths.len() => Ok(vec![first.clone()]),
        _ => Ok(paths),
    }
}

/// The files of an image in several parts of which `path` is the first, or `None` if it is none.
pub fn parts_from(path: &Path) -> Option<Vec<PathBuf>> {
    if is_ewf(path) {
        return Some(segments_from(path));
    }
    SplitSource::is_first_part(path).then(|| SplitSource::parts_from(path))
}
