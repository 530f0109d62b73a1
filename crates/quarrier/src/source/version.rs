//! The version of a source's bytes.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use quarrier_core::name;
use quarrier_core::source::Source;
use quarrier_remote::RemoteSource;

use super::{Named, Opened, only_in_order};
use crate::{Error, Result};

/// Distinguishes the bytes of a source from those at another time: by its length, and by the sizes and
/// times of its files, or the ETags of its objects. Equal versions have equal bytes as far as the file
/// system and the server are right; for a block device, only the length is known.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version {
    /// The length in bytes.
    pub length: u64,
    /// Everything else, as a string without secrets.
    pub mark: String,
}

impl Version {
    /// The version of a source that was opened by this name.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for streams, and for messages of a log; [`Error::Source`] if one of its
    /// files is gone.
    pub fn of(named: &Named, opened: &Opened) -> Result<Version> {
        let etag = |object: &RemoteSource| {
            let mark = object.etag().or(object.last_modified()).unwrap_or_default();
            format!("{} {mark}", object.length())
        };
        let (length, marks) = match opened {
            Opened::Local { source, beside, .. } => {
                if matches!(named, Named::Stored(_)) {
                    let reason = "messages of a log have no versions".to_string();
                    return Err(Error::Unsupported { name: source.name().to_string(), reason });
                }
                (source.length(), marks_of(named.paths().iter().chain(beside))?)
            }
            Opened::Remote(object) => (object.length(), vec![etag(object)]),
            Opened::FarImage { image, .. } => {
                (image.length(), image.objects().iter().map(etag).collect())
            }
            Opened::Stream { name, .. } => return Err(only_in_order(name.clone())),
        };
        Ok(Version { length, mark: marks.join(", ") })
    }
}

/// Size and time of each file, in the order of their paths.
fn marks_of<'p>(paths: impl Iterator<Item = &'p PathBuf>) -> Result<Vec<String>> {
    let mut paths: Vec<&Path> = paths.map(PathBuf::as_path).collect();
    paths.sort_unstable();
    paths.dedup();
    let mark = |path: &&Path| {
        let meta = std::fs::metadata(path)
            .map_err(|error| quarrier_core::Error::io(name::of_path(path), "open", error))?;
        // The time of a device node says nothing about its contents.
        Ok(match meta.file_type().is_block_device() {
            true => "device".to_string(),
            false => format!("{} {}.{:09}", meta.size(), meta.mtime(), meta.mtime_nsec()),
        })
    };
    paths.iter().map(mark).collect()
}
