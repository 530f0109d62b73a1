//! Indexes of compressed images, kept in the cache folder between runs.
//!
//! ```text
//! FOLDER/indexes/KEY.index     KEY: the hash of the file's path, size, time, device and inode,
//!                              or of the object's name and version
//! ```
//!
//! Errors of the folder of indexes are ignored: the index is built again.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use quarrier_carve::folder::fingerprint;
use quarrier_core::source::Source;
use quarrier_remote::RemoteSource;

/// Maximum size of an index; a larger one is neither read nor written.
const INDEX_BYTES_MAX: u64 = 256 << 20;
/// Maximum size of all indexes together; beyond it, the least recently used ones are removed.
const FOLDER_BYTES_MAX: u64 = 2 << 30;

/// The total size of all indexes in a cache folder, in bytes.
pub fn index_bytes(folder: &Path) -> u64 {
    all_in(&folder.join("indexes")).iter().map(|(_, bytes, _)| bytes).sum()
}

/// Removes all indexes from a cache folder; returns their total size in bytes.
pub fn clear_indexes(folder: &Path) -> u64 {
    let all = all_in(&folder.join("indexes")).into_iter();
    all.filter(|(.., path)| fs::remove_file(path).is_ok()).map(|(_, bytes, _)| bytes).sum()
}

/// The location of the index of one file.
#[derive(Debug, Clone)]
pub(super) struct IndexFile {
    path: PathBuf,
}

impl IndexFile {
    /// The index of a file, in the cache `folder`; `None` unless it is a regular file.
    pub(super) fn of_file(folder: Option<&Path>, path: &Path) -> Option<Self> {
        let (folder, whole) = (folder?, path.canonicalize().ok()?);
        let meta = fs::metadata(&whole).ok().filter(fs::Metadata::is_file)?;
        let numbers =
            [meta.len(), meta.mtime() as u64, meta.mtime_nsec() as u64, meta.dev(), meta.ino()];
        let numbers: Vec<u8> = numbers.into_iter().flat_map(u64::to_le_bytes).collect();
        let key = [&b"file\0"[..], &numbers, whole.as_os_str().as_bytes()].concat();
        Some(IndexFile::new(folder, &key))
    }

    /// The index of a remote object; `None` if its server reports no version.
    pub(super) fn of_object(folder: Option<&Path>, object: &RemoteSource) -> Option<Self> {
        let mark = object.etag().or(object.last_modified())?;
        let key = format!("object\0{}\0{mark}\0{}", object.length(), object.name());
        Some(IndexFile::new(folder?, key.as_bytes()))
    }

    fn new(folder: &Path, key: &[u8]) -> Self {
        IndexFile { path: folder.join("indexes").join(format!("{}.index", fingerprint(key))) }
    }

    pub(super) fn read(&self) -> Option<Vec<u8>> {
        let file = File::open(&self.path).ok()?;
        let meta = file.metadata().ok()?;
        let is_ours = meta.is_file() && meta.len() <= INDEX_BYTES_MAX;
        let mut bytes = Vec::new();
        (&file).take(if is_ours { INDEX_BYTES_MAX } else { 0 }).read_to_end(&mut bytes).ok()?;
        // The modification time records the last use.
        let _ = file.set_modified(SystemTime::now());
        Some(bytes)
    }

    pub(super) fn write(&self, bytes: &[u8]) {
        if bytes.len() as u64 <= INDEX_BYTES_MAX && self.written(bytes).is_err() {
            let _ = fs::remove_file(self.part());
        }
    }

    fn part(&self) -> PathBuf {
        self.path.with_extension(format!("part-{}", std::process::id()))
    }

    fn written(&self, bytes: &[u8]) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        options.open(self.part())?.write_all(bytes)?;
        fs::rename(self.part(), &self.path)?;
        make_room(folder, &self.path);
        Ok(())
    }
}

/// The last use, size and path of each index in a folder.
fn all_in(folder: &Path) -> Vec<(SystemTime, u64, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let indexes = entries.filter_map(|entry| {
        let (path, meta) = (entry.path(), entry.metadata().ok()?);
        let is_index = meta.is_file() && path.extension().is_some_and(|ending| ending == "index");
        is_index.then_some((meta.modified().ok()?, meta.len(), path))
    });
    indexes.collect()
}

/// Removes the least recently used indexes until the rest fits, but never `new`.
fn make_room(folder: &Path, new: &Path) {
    let mut all = all_in(folder);
    let mut bytes: u64 = all.iter().map(|(_, bytes, _)| bytes).sum();
    all.sort_unstable();
    for (_, one, path) in all {
        if bytes <= FOLDER_BYTES_MAX {
            break;
        }
        if path != new && fs::remove_file(&path).is_ok() {
            bytes -= one;
        }
    }
}
