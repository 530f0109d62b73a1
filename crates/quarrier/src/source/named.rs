//! Resolves names to sources that can be opened: globs, parts of images, types.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use quarrier_core::name;
use quarrier_images::ewf::{files, parts_from};
use quarrier_messages::kept::{Run, is_log};
use quarrier_remote::is_remote;

use super::folder::{Met, files_below};
use super::objects::is_listing;
use super::{Opened, Opener, Packed, shown};
use crate::{Error, Result};

/// A source by its name, not opened yet, since thousands of files are opened one at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Named {
    /// Standard input.
    Stdin,
    /// A file, a device, or the first part of an image.
    Path(PathBuf),
    /// A remote object.
    Url(String),
    /// All objects of a bucket whose names match a glob, or that are below a prefix. They are not
    /// listed yet: [`Sources::listed`] does it.
    Objects(String),
    /// A partition of a file, a device, an image or a remote object.
    Partition {
        /// The source that holds the partitions.
        of: Box<Named>,
        /// The number of the partition, from 1.
        number: u32,
    },
    /// Messages of a table in a data folder.
    Stored(Run),
    /// A glob that matches no file, or no object of a bucket.
    Missing(String),
    /// Objects of a bucket that cannot be listed.
    Unlisted(quarrier_remote::Error),
    /// A name without a source.
    Refused {
        /// The name as shown to people.
        name: String,
        /// The reason, and what to try.
        reason: String,
    },
}

impl Named {
    /// The file or the remote object with exactly this name, in which no character has a special meaning.
    /// Use it with [`Opener::open_raw`].
    pub fn exactly(name: impl Into<OsString>) -> Self {
        let name = name.into();
        match name.to_str().filter(|name| is_remote(name)) {
            Some(url) => Named::Url(url.to_string()),
            None => Named::Path(name.into()),
        }
    }

    /// Whether the source can be opened twice: a pipe passes its bytes to the first reader only.
    pub fn is_seekable(&self) -> bool {
        let path = match self {
            Named::Path(path) => path,
            Named::Partition { of, .. } => return of.is_seekable(),
            _ => return matches!(self, Named::Stored(_)),
        };
        std::fs::metadata(path)
            .is_ok_and(|meta| meta.is_file() || meta.file_type().is_block_device())
    }

    /// The name by which [`Sources::of`] finds the source; `None` if it has no such name.
    pub fn name(&self) -> Option<OsString> {
        match self {
            Named::Stdin => Some("-".into()),
            Named::Path(path) => Some(path.clone().into_os_string()),
            Named::Url(url) | Named::Objects(url) => Some(url.into()),
            Named::Partition { of, number } => {
                let mut name = of.name()?;
                name.push(format!("#{number}"));
                Some(name)
            }
            Named::Stored(_) | Named::Missing(_) | Named::Unlisted(_) | Named::Refused { .. } => {
                None
            }
        }
    }

    /// The files of the source, all parts of an image; empty if it is not a file.
    pub fn paths(&self) -> Vec<PathBuf> {
        match self {
            Named::Path(path) => parts_from(path).unwrap_or_else(|| vec![path.clone()]),
            Named::Partition { of, .. } => of.paths(),
            _ => Vec::new(),
        }
    }
}

/// The sources that names resolve to, in the order of the names.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Sources {
    named: Vec<Named>,
    are_found: bool,
}

impl Sources {
    /// Resolves `names` to sources. A glob that the shell did not expand resolves to all matching
    /// files; a folder to all regular files below it, in the order of their paths (links are not
    /// followed), unless it holds a log. The first part of a split image represents all its parts,
    /// however many are named.
    ///
    /// Only folders are opened, and errors are reported by [`Sources::open`]. Buckets are listed by
    /// [`Sources::listed`].
    pub fn of<N: Into<OsString>>(names: impl IntoIterator<Item = N>) -> Self {
        Self::of_until(names, &AtomicBool::new(false))
    }

    /// Like [`Sources::of`], but returns the sources found so far soon after `stop` becomes true, since
    /// walking a large folder takes a while.
    pub fn of_until<N: Into<OsString>>(
        names: impl IntoIterator<Item = N>,
        stop: &AtomicBool,
    ) -> Self {
        let mut sources = Sources::default();
        // Parts that an image has already claimed: a shell expands image.0* to all of them.
        let mut taken: HashSet<PathBuf> = HashSet::new();
        for name in names {
            sources.add(&name.into(), &mut taken, stop);
        }
        sources
    }

    /// Creates sources for messages of a data folder.
    pub(crate) fn kept(runs: Vec<Run>) -> Self {
        Sources { named: runs.into_iter().map(Named::Stored).collect(), are_found: false }
    }

    fn add(&mut self, name: &OsString, taken: &mut HashSet<PathBuf>, stop: &AtomicBool) {
        // A name that was copied from output may have `\xNN`.
        let path = &name::path_of(name);
        let text = name::of_path(name);
        let refused = |reason: String| Named::Refused { name: shown(&text), reason };
        if text == "-" {
            self.named.push(Named::Stdin);
        } else if let Some((disk, number)) = partition_of(path) {
            let mut disks = Sources::of([disk]);
            match (disks.named.pop(), disks.is_empty()) {
                (Some(of), true) => {
                    self.named.push(Named::Partition { of: Box::new(of), number });
                }
                _ => self.named.push(refused("names partitions of several disks".to_string())),
            }
        } else if let Some(reason) = not_read(&text) {
            self.named.push(refused(reason.to_string()));
        } else if is_listing(&text) {
            self.are_found = true;
            self.named.push(Named::Objects(text));
        } else if is_remote(&text) {
            self.named.push(Named::Url(text));
        } else if !path.exists() && text.contains(['*', '?', '[']) {
            self.are_found = true;
            match files(path) {
                Ok(paths) if paths.is_empty() => self.named.push(Named::Missing(shown(&text))),
                Ok(paths) => paths.into_iter().for_each(|path| self.add_path(path, taken)),
                Err(reason) => self.named.push(refused(reason)),
            }
        } else if path.is_dir() && !is_log(path) {
            self.are_found = true;
            for met in files_below(path, stop) {
                match met {
                    Met::File(path) => self.add_path(path, taken),
                    Met::Unreadable(path, reason) => {
                        self.named.push(Named::Refused { name: name::of_path(path), reason });
                    }
                }
            }
        } else {
            self.add_path(path.clone(), taken);
        }
    }

    /// Adds a file, unless it is part of an image that was already added.
    fn add_path(&mut self, path: PathBuf, taken: &mut HashSet<PathBuf>) {
        if !taken.contains(&path) {
            taken.extend(parts_from(&path).into_iter().flatten());
            self.named.push(Named::Path(path));
        }
    }

    /// Whether some sources were found by a glob or in a folder, so that their number may change.
    pub fn are_found(&self) -> bool {
        self.are_found
    }

    /// The number of sources.
    pub fn len(&self) -> usize {
        self.named.len()
    }

    /// Whether there are no sources.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// All sources, in order.
    pub fn as_slice(&self) -> &[Named] {
        &self.named
    }

    /// Iterates over all sources, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Named> {
        self.named.iter()
    }

    /// The sources, with the objects of buckets listed: a glob resolves to all objects that it matches,
    /// in the order of a local glob; a URL that ends with a slash to all objects below it, in the order
    /// of their names. Objects without bytes are left out, since most of them represent folders.
    ///
    /// Errors are reported by [`Sources::open`].
    pub fn listed<'s>(&'s self, opener: &Opener) -> Cow<'s, Sources> {
        if !self.named.iter().any(|named| matches!(named, Named::Objects(_))) {
            return Cow::Borrowed(self);
        }
        let named = self.named.iter().flat_map(|named| opener.listed(named));
        let named = named.map(Cow::into_owned).collect();
        Cow::Owned(Sources { named, are_found: self.are_found })
    }

    /// Opens the sources in order; lists the objects of buckets.
    ///
    /// # Errors
    /// An error takes the place of a source that cannot be opened.
    pub fn open<'s>(&'s self, opener: &'s Opener) -> impl Iterator<Item = Result<Opened>> + 's {
        let named = self.named.iter().flat_map(move |named| opener.listed(named));
        named.map(move |named| opener.open(&named))
    }

    /// Opens the sources in order, compressed files as `packed` says: see [`Opener::open_packed`].
    ///
    /// # Errors
    /// An error takes the place of a source that cannot be opened.
    pub fn open_packed<'s>(
        &'s self,
        opener: &'s Opener,
        packed: Packed,
    ) -> impl Iterator<Item = Result<Opened>> + 's {
        let named = self.named.iter().flat_map(move |named| opener.listed(named));
        named.map(move |named| opener.open_packed(&named, packed))
    }

    /// Opens the sources in order to read messages: see [`Opener::open_messages`].
    ///
    /// # Errors
    /// An error takes the place of a source that cannot be opened.
    pub fn open_messages<'s>(
        &'s self,
        opener: &'s Opener,
    ) -> impl Iterator<Item = Result<Opened>> + 's {
        let named = self.named.iter().flat_map(move |named| opener.listed(named));
        named.map(move |named| opener.open_messages(&named))
    }

    /// Resolves `name` to one source, for requests that take only one. A folder resolves to itself,
    /// which cannot be opened unless it holds a log.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the name resolves to several sources.
    pub fn only(name: impl Into<OsString>) -> Result<Named> {
        let name = name.into();
        let path = name::path_of(&name);
        if path.is_dir() {
            // Opening it reports what to try.
            return Ok(Named::Path(path));
        }
        let shown = shown(&name::of_path(&name));
        let mut sources = Sources::of([name]);
        match (sources.named.pop(), sources.len()) {
            (Some(one), 0) => Ok(one),
            (_, more) => {
                let count = more + 1;
                let reason = format!("names {count} sources; use them one at a time");
                Err(Error::Unsupported { name: shown, reason })
            }
        }
    }

    /// Refuses output files that are sources: sources may be evidence.
    ///
    /// # Errors
    /// [`Error::Request`] for the first such file, and for a file whose folder does not exist, so that
    /// a long run does not end with that error.
    pub fn refuse_overwriting<'w>(
        &self,
        written: impl IntoIterator<Item = &'w Path>,
    ) -> Result<()> {
        let identity = |path: &Path| {
            std::fs::metadata(path).ok().filter(|meta| meta.is_file()).map(|m| (m.dev(), m.ino()))
        };
        let mut written = written.into_iter().peekable();
        if written.peek().is_none() {
            return Ok(());
        }
        let paths = self.named.iter().flat_map(Named::paths);
        let read: HashSet<_> = paths.filter_map(|path| identity(&path)).collect();
        for path in written {
            if identity(path).is_some_and(|id| read.contains(&id)) {
                let path = name::of_path(path);
                return Err(Error::Request(format!(
                    "{path}: is searched and would be overwritten"
                )));
            }
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            if let Some(folder) = folder.filter(|folder| !folder.exists()) {
                return Err(Error::Request(format!(
                    "{}: there is no folder {}",
                    name::of_path(path),
                    name::of_path(folder)
                )));
            }
        }
        Ok(())
    }
}

/// Whether the name of a file is that of an image or a part of one, so that its own bytes are not the
/// source.
pub(crate) fn is_part_of_image(path: &Path) -> bool {
    parts_from(path).is_some()
}

/// Why a known type of source is not supported.
fn not_read(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let is_remote = is_remote(name);
    if lower.starts_with("file://") {
        return Some("name a file by its path, without file://");
    }
    if !is_remote && has_scheme(&lower) && !Path::new(name).exists() {
        return Some(
            "is neither a file nor a URL that can be read: https://, http://, s3://, gs:// or az://",
        );
    }
    None
}

/// Splits `disk.img#2` into the name of the disk and the number, unless a file has that name.
fn partition_of(name: &Path) -> Option<(OsString, u32)> {
    let text = name.as_os_str().as_bytes();
    let at = text.iter().rposition(|&byte| byte == b'#').filter(|&at| at > 0)?;
    let digits = std::str::from_utf8(&text[at + 1..]).ok()?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse().ok().filter(|_| is_number && !name.exists())?;
    Some((OsStr::from_bytes(&text[..at]).to_os_string(), number))
}

/// Whether a name begins like a URL.
fn has_scheme(name: &str) -> bool {
    let scheme = name.split_once("://").map_or("", |(scheme, _)| scheme);
    !scheme.is_empty()
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}
