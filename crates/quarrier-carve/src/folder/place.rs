//! The folder in the operating system: descriptors, and names without separators.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use quarrier_core::hex;
use quarrier_core::sync::lock;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, mkdirat, openat, renameat, unlinkat,
};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::Row;

/// The subfolder that exists until the run is finished.
pub(super) const STATE: &str = ".carving";
/// Names of files in it.
pub(super) const JOURNAL: &str = "journal";
pub(super) const RESERVE: &str = "reserve";

const FOLDER: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::RDONLY);

/// The folder; everything in it is reached from its descriptors.
pub(super) struct Place {
    root: OwnedFd,
    state: OwnedFd,
    /// The folder of each type, opened at its first use.
    kinds: Mutex<HashMap<String, Arc<OwnedFd>>>,
    parts: AtomicU64,
}

impl Place {
    /// Opens the folder at `path`, and creates it if it is missing. The path itself is the user's,
    /// and may contain symbolic links.
    pub(super) fn root(path: &Path) -> io::Result<OwnedFd> {
        let open = || openat(CWD, path, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty());
        match open() {
            Err(Errno::NOENT) => {
                std::fs::create_dir(path)?;
                Ok(open()?)
            }
            opened => Ok(opened?),
        }
    }

    /// Lists the names in an open folder.
    pub(super) fn names(folder: impl AsFd) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Opens the place in `root`, and creates [`STATE`] if it is missing.
    pub(super) fn new(root: OwnedFd) -> io::Result<Self> {
        let state = open_or_make(&root, STATE)?;
        Ok(Place { root, state, kinds: Mutex::default(), parts: AtomicU64::new(0) })
    }

    /// Opens an existing file of [`STATE`].
    pub(super) fn open_in_state(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = openat(&self.state, name, flags, Mode::empty())?;
        check_is_file(&file, name)?;
        Ok(File::from(file))
    }

    /// Creates a file in [`STATE`], replacing an old one.
    pub(super) fn create_in_state(&self, name: &str) -> io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        let made = match openat(&self.state, name, flags, mode) {
            Err(Errno::EXIST) => {
                unlinkat(&self.state, name, AtFlags::empty())?;
                openat(&self.state, name, flags, mode)
            }
            made => made,
        };
        Ok(File::from(made?))
    }

    pub(super) fn remove_in_state(&self, name: &str) {
        // A leftover file does no harm.
        let _ = unlinkat(&self.state, name, AtFlags::empty());
    }

    /// Removes the remains of a killed run in [`STATE`], except the journal.
    pub(super) fn clear_state(&self) -> io::Result<()> {
        for name in Self::names(&self.state)? {
            if name != JOURNAL {
                self.remove_in_state(&name);
            }
        }
        Ok(())
    }

    /// Removes [`STATE`] with all its contents.
    pub(super) fn remove_state(&self) {
        let names = Self::names(&self.state).unwrap_or_default();
        for name in names.iter().filter(|name| *name != JOURNAL) {
            self.remove_in_state(name);
        }
        self.remove_in_state(JOURNAL);
        let _ = unlinkat(&self.root, STATE, AtFlags::REMOVEDIR);
    }

    /// Writes `kind/name`. The file appears, or is replaced, when `fill` has written all of it.
    pub(super) fn write<T>(
        &self,
        kind: &str,
        name: &str,
        fill: impl FnOnce(&mut File) -> io::Result<T>,
    ) -> io::Result<T> {
        let folder = self.kind(kind)?;
        check_is_name(name)?;
        self.write_to(folder.as_fd(), name, fill)
    }

    /// Writes a report next to the folders of types.
    pub(super) fn write_report(
        &self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        self.write_to(self.root.as_fd(), name, |file| {
            let mut out = BufWriter::with_capacity(256 << 10, &mut *file);
            fill(&mut out)?;
            out.flush()?;
            drop(out);
            file.sync_all()
        })
    }

    fn write_to<T>(
        &self,
        folder: impl AsFd,
        name: &str,
        fill: impl FnOnce(&mut File) -> io::Result<T>,
    ) -> io::Result<T> {
        let part = format!("part-{}", self.parts.fetch_add(1, Ordering::Relaxed));
        let mut file = self.create_in_state(&part)?;
        let written = fill(&mut file)
            .and_then(|value| Ok((value, renameat(&self.state, &*part, folder, name)?)));
        match written {
            Ok((value, ())) => Ok(value),
            Err(error) => {
                // Frees the disk space at once.
                let _ = file.set_len(0);
                self.remove_in_state(&part);
                Err(error)
            }
        }
    }

    /// Removes a file if it exists.
    pub(super) fn remove(&self, kind: &str, name: &str) {
        if let (Ok(folder), Ok(())) = (self.kind(kind), check_is_name(name)) {
            let _ = unlinkat(&*folder, name, AtFlags::empty());
        }
    }

    /// Returns whether the row's file exists with the row's length and hash.
    pub(super) fn holds(&self, row: &Row) -> bool {
        let found = row.path.split_once('/').and_then(|(kind, name)| self.read(kind, name).ok());
        found.is_some_and(|(length, sha256)| length == row.length && sha256 == row.sha256)
    }

    /// Returns the length and hash of a file.
    fn read(&self, kind: &str, name: &str) -> io::Result<(u64, String)> {
        let folder = self.kind(kind)?;
        check_is_name(name)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let opened = openat(&*folder, name, flags, Mode::empty())?;
        check_is_file(&opened, name)?;
        let mut file = File::from(opened);
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 256 << 10];
        let mut length = 0;
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok((length, hex::encode(&hash.finalize()))),
                bytes => {
                    hash.update(&buffer[..bytes]);
                    length += bytes as u64;
                }
            }
        }
    }

    /// Returns the folder of a type.
    fn kind(&self, kind: &str) -> io::Result<Arc<OwnedFd>> {
        let mut kinds = lock(&self.kinds);
        if let Some(folder) = kinds.get(kind) {
            return Ok(Arc::clone(folder));
        }
        check_is_name(kind)?;
        let folder = open_or_make(&self.root, kind)
            .map_err(|error| io::Error::new(error.kind(), format!("folder '{kind}': {error}")))?;
        let folder = Arc::new(folder);
        kinds.insert(kind.to_string(), Arc::clone(&folder));
        Ok(folder)
    }
}

/// Writes a new file, such as a case file, into a folder that a run has finished.
///
/// # Errors
/// The operating system's error, also if the file exists. The file is removed then.
pub fn write_new(
    folder: &Path,
    name: &str,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    check_is_name(name)?;
    let root = openat(CWD, folder, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty())?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(&root, name, flags, Mode::from_raw_mode(0o666))?);
    let mut out = BufWriter::with_capacity(256 << 10, &mut file);
    let written = fill(&mut out).and_then(|()| out.flush());
    drop(out);
    written.and_then(|()| file.sync_all()).inspect_err(|_| {
        let _ = unlinkat(&root, name, AtFlags::empty());
    })
}

fn open_or_make(root: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    match mkdirat(root, name, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => Ok(openat(root, name, FOLDER, Mode::empty())?),
        Err(error) => Err(error.into()),
    }
}

/// Rejects pipes, devices and folders.
fn check_is_file(file: impl AsFd, name: &str) -> io::Result<()> {
    match FileType::from_raw_mode(fstat(file)?.st_mode) {
        FileType::RegularFile => Ok(()),
        _ => Err(io::Error::other(format!("'{name}' is not a file"))),
    }
}

/// Rejects names that would lead elsewhere: types may come from a user's signatures.
fn check_is_name(name: &str) -> io::Result<()> {
    let is_name = !name.is_empty()
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
    match is_name {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{name:?} cannot be part of a file name"),
        )),
    }
}
