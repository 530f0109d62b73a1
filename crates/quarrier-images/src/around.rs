//! The files around an image: the parts of a split image, and the parents of a differencing disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_core::source::{self, Source};
use quarrier_core::{Error, Result, name};

use crate::fault::refused;
use crate::scratch::{PART_BYTES_MAX, ScratchFolder};

/// Maximum length of a chain of differencing disks.
const CHAIN_MAX: usize = 128;
/// Maximum number of files in a folder to examine for one that is identified by its content alone.
const NAMES_MAX: usize = 10_000;

/// The location of an image's sibling files: a folder, or the part of a URL before its last slash.
pub trait Siblings: Send + Sync {
    /// Opens the file of this [name in text](name). Images may be hostile, so the name contains no folder, and no
    /// implementation may follow one.
    ///
    /// # Errors
    /// The reason why it cannot be opened; [`Error::Io`] with the kind `NotFound` if it does not exist.
    fn open(&self, name: &str) -> Result<Box<dyn Source>>;

    /// Returns the names of the files, if they can be listed.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns whether every random access costs a request, so that callers should not probe the end of
    /// a file without reason.
    fn is_far(&self) -> bool {
        false
    }

    /// Returns whether indexes are cached: then compressed images are indexed so that [`keep_index`]
    /// can store the index.
    ///
    /// [`keep_index`]: Self::keep_index
    fn keeps_indexes(&self) -> bool {
        false
    }

    /// Returns the cached index of the image itself, if an earlier run stored one and the image is
    /// unchanged.
    fn kept_index(&self) -> Option<Vec<u8>> {
        None
    }

    /// Caches an index of the image itself. An implementation may do nothing, since an index can be
    /// rebuilt.
    fn keep_index(&self, index: &[u8]) {
        let _ = index;
    }

    /// Returns the folder in which to unpack images in compressed files that allow only sequential
    /// reading; `None` to refuse such images.
    fn scratch(&self) -> Option<&ScratchFolder> {
        None
    }

    /// Returns the path of the image itself, if it is a file.
    fn path(&self) -> Option<&Path> {
        None
    }

    /// Returns the name in this location of the image itself, or of a file that [`open`](Self::open)
    /// returned.
    fn name_of(&self, file: &dyn Source) -> String {
        file.name().rsplit('/').next().unwrap_or_default().to_string()
    }
}

/// The folder of an image on this machine.
#[derive(Debug, Clone)]
pub struct FolderSiblings {
    path: PathBuf,
    direct: bool,
    scratch: Option<ScratchFolder>,
}

impl FolderSiblings {
    /// Creates the folder of the image `path`. With `direct`, files are read with direct I/O, which
    /// bypasses the page cache.
    pub fn new(path: &Path, direct: bool) -> Self {
        FolderSiblings { path: path.to_path_buf(), direct, scratch: None }
    }

    /// Unpacks images in `folder` where necessary.
    #[must_use]
    pub fn unpacking_in(mut self, folder: ScratchFolder) -> Self {
        self.scratch = Some(folder);
        self
    }

    /// Returns the path of a file of the folder, by its [name in text](name).
    pub fn path_of(&self, name: &str) -> PathBuf {
        name::path_below(self.path.parent().unwrap_or(Path::new("")), name)
    }

    fn folder(&self) -> &Path {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        folder.unwrap_or(Path::new("."))
    }
}

impl Siblings for FolderSiblings {
    fn open(&self, name: &str) -> Result<Box<dyn Source>> {
        let path = self.path_of(name);
        if self.direct { source::open_direct(&path) } else { source::open(&path) }
    }

    fn names(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.folder()) else { return Vec::new() };
        let entries = entries.take(NAMES_MAX).flatten();
        let mut names: Vec<String> =
            entries.map(|entry| name::of_path(entry.file_name())).collect();
        names.sort_unstable();
        names
    }

    fn scratch(&self) -> Option<&ScratchFolder> {
        self.scratch.as_ref()
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }
}

/// An image without sibling files.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSiblings;

impl Siblings for NoSiblings {
    fn open(&self, name: &str) -> Result<Box<dyn Source>> {
        Err(Error::io(name, "open", std::io::ErrorKind::NotFound.into()))
    }
}

/// A function that opens a file as a disk, as [`crate::open`] does.
pub(crate) type OpenDisk<'a> =
    dyn Fn(Arc<dyn Source>, &Around<'_>) -> Result<Arc<dyn Source>> + Sync + 'a;

/// Access to the other files that an image may need.
#[derive(Clone)]
pub(crate) struct Around<'a> {
    pub(crate) beside: &'a dyn Siblings,
    pub(crate) open_disk: &'a OpenDisk<'a>,
    /// Long reads stop once this is true.
    pub(crate) stop: &'a AtomicBool,
    /// The names of the images that referred to this one, directly or not.
    pub(crate) chain: Vec<String>,
    /// The number of layers of compression around the file.
    pub(crate) depth: usize,
}

impl<'a> Around<'a> {
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The cache for the image's index, if there is one and the image is the outermost file.
    pub(crate) fn keeper(&self) -> Option<&'a dyn Siblings> {
        let is_first = self.chain.is_empty() && self.depth <= 1;
        Some(self.beside).filter(|beside| is_first && beside.keeps_indexes())
    }

    /// Maximum size of a part of a compressed file to hold in memory.
    pub(crate) fn part_bytes_max(&self) -> u64 {
        self.beside.scratch().map_or(PART_BYTES_MAX, ScratchFolder::longest_part_bytes)
    }

    /// Opens the file that `image` refers to, beside it. A folder in the name is ignored: it was on
    /// another machine, or must not be followed.
    ///
    /// # Errors
    /// An error that names the file if it is missing.
    pub(crate) fn file(
        &self,
        image: &dyn Source,
        named: &str,
        what: &str,
    ) -> Result<Arc<dyn Source>> {
        let name = last_of(named);
        if name.is_empty() || name == ".." || name == "." || name.contains('\0') {
            return Err(refused(image, format!("names '{}' as its {what}", shown(named))));
        }
        let is_missing = |error: &Error| matches!(error, Error::Io { error, .. } if error.kind() == std::io::ErrorKind::NotFound);
        let opened = self.beside.open(name).or_else(|error| match last_of_unix(named) {
            // The backslash may be that of a byte that is not UTF-8.
            whole if whole != name && whole.contains("\\x") && is_missing(&error) => {
                self.beside.open(whole).map_err(|_| error)
            }
            _ => Err(error),
        });
        let file = opened.map_err(|error| match error {
            error if is_missing(&error) => refused(
                image,
                format!(
                    "needs its {what} '{}', and there is no {} beside it; put it there",
                    shown(named),
                    shown(name)
                ),
            ),
            other => other,
        })?;
        Ok(Arc::from(file))
    }

    /// Opens the parent of the disk `image`, whatever its format.
    ///
    /// # Errors
    /// As [`file`](Self::file), and if the chain has a cycle or is too long.
    pub(crate) fn parent(
        &self,
        image: &dyn Source,
        named: &str,
        what: &str,
    ) -> Result<Arc<dyn Source>> {
        let file = self.file(image, named, what)?;
        self.disk(image, file)
    }

    /// As [`parent`](Self::parent), for an open file.
    pub(crate) fn disk(
        &self,
        image: &dyn Source,
        file: Arc<dyn Source>,
    ) -> Result<Arc<dyn Source>> {
        let mut around = self.clone();
        around.chain.push(image.name().to_string());
        if around.chain.iter().any(|name| name == file.name()) {
            let reason = format!("is based on {}, which is based on this image again", file.name());
            return Err(refused(image, reason));
        }
        if around.chain.len() > CHAIN_MAX {
            return Err(refused(
                image,
                format!("is based on a chain of more than {CHAIN_MAX} images"),
            ));
        }
        (around.open_disk)(file, &around)
    }
}

/// Returns the last component of a Unix or Windows path.
fn last_of(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or_default()
}

/// Returns the last component of a Unix path.
fn last_of_unix(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Formats a name from an image for display: short, and without control sequences.
pub(crate) fn shown(name: &str) -> String {
    let turns = |c| matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    let plain = |c: char| if c.is_control() || turns(c) { '\u{FFFD}' } else { c };
    let mut shown: String = name.chars().take(200).map(plain).collect();
    if name.chars().nth(200).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_by_the_last_part_of_its_path() {
        assert_eq!(last_of("a/b/c.vmdk"), "c.vmdk");
        assert_eq!(last_of(r".\base\c.vhd"), "c.vhd");
        assert_eq!(last_of("c"), "c");
        assert_eq!(last_of("/"), "");
    }
}
