//! An output folder for extracted files, with their names and times.
//!
//! Everything in it is opened relative to directory descriptors, no symbolic link in it is followed,
//! names are sanitized, and existing names are never written to. So nothing can be written outside of
//! it.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use quarrier_core::source::Source;
use rustix::fs::{
    AtFlags, CWD, Dir, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, futimens, mkdirat, openat,
    unlinkat,
};
use rustix::io::Errno;

use crate::bytes::{self, Piece};
use crate::digests::{Digests, HashKinds, Hasher};
use crate::entry::{Entry, Times};
use crate::error::{Error, Result};

const FOLDER: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::RDONLY);
/// Maximum length of a file name in bytes, with room for a suffix that makes it unique.
const NAME_BYTES_MAX: usize = 200;
/// Alternative names to try if one is taken.
const TRIES_MAX: u32 = 1000;
/// Maximum number of folders whose times are restored at the end; the times of others are left as
/// written.
const TIMED_FOLDERS_MAX: usize = 1 << 20;

/// An output folder for extracted files.
pub struct Folder {
    root: OwnedFd,
    /// The folder written to last.
    last: Option<(Vec<String>, OwnedFd)>,
    timed: Vec<(Vec<String>, Times)>,
    kept_free: Option<&'static str>,
}

/// A file written to the folder.
#[derive(Debug, Clone)]
pub struct WrittenFile {
    /// The path relative to the folder.
    pub path: String,
    /// The hashes of its bytes.
    pub digests: Digests,
    /// Ranges of the source that could not be read: they are zeros in the file.
    pub unreadable: Vec<Range<u64>>,
}

impl Folder {
    /// Opens the folder at `path`, which must be empty or not exist yet.
    ///
    /// # Errors
    /// [`io::ErrorKind::DirectoryNotEmpty`] if it contains a file already, and errors of the operating
    /// system.
    pub fn create(path: &Path) -> io::Result<Self> {
        let open = || openat(CWD, path, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty());
        let root = match open() {
            Err(Errno::NOENT) => {
                std::fs::create_dir(path)?;
                open()?
            }
            opened => opened?,
        };
        for entry in Dir::read_from(&root)? {
            let name = entry?;
            let name = name.file_name().to_string_lossy();
            if name != "." && name != ".." {
                let reason = format!("is not empty: it has '{name}'; name a new folder");
                return Err(io::Error::new(io::ErrorKind::DirectoryNotEmpty, reason));
            }
        }
        Ok(Folder { root, last: None, timed: Vec::new(), kept_free: None })
    }

    /// Reserves a name at the top of the folder for the caller's own file.
    pub fn keep_free(&mut self, name: &'static str) {
        self.kept_free = Some(name);
    }

    /// Writes an entry's file or folder, below `top` unless that is empty, and hashes the bytes.
    ///
    /// # Errors
    /// [`Error::Taken`] where the file cannot be written, and the errors of [`read`](bytes::read); a
    /// partial file is removed.
    pub fn write(
        &mut self,
        source: &dyn Source,
        top: &str,
        entry: &Entry,
        hashes: HashKinds,
    ) -> Result<WrittenFile> {
        let names = entry.path.split('/').filter(|name| !name.is_empty());
        let tops = (!top.is_empty()).then(|| top.to_string());
        let mut names: Vec<String> = tops.into_iter().chain(names.map(harmless)).collect();
        if entry.kind == crate::Kind::Folder {
            let place = self.folder(&names).map_err(Error::Taken)?;
            if self.timed.len() < TIMED_FOLDERS_MAX {
                self.timed.push((place.clone(), entry.times));
            }
            let digests = Hasher::new(hashes).finish();
            return Ok(WrittenFile { path: place.join("/"), digests, unreadable: Vec::new() });
        }
        let mut name = names.pop().unwrap_or_else(|| harmless(""));
        if names.is_empty() && self.kept_free == Some(&name) {
            name.push_str(&format!("~{}", entry.inode));
        }
        let mut place = self.folder(&names).map_err(Error::Taken)?;
        let folder = self.last.as_ref().map_or(self.root.as_fd(), |(_, folder)| folder.as_fd());
        let (name, mut file) = create(folder, &name, entry.inode).map_err(Error::Taken)?;
        match fill(&mut file, source, entry, hashes) {
            Ok((digests, unreadable)) => {
                place.push(name);
                Ok(WrittenFile { path: place.join("/"), digests, unreadable })
            }
            Err(error) => {
                let _ = unlinkat(folder, &name, AtFlags::empty());
                Err(error)
            }
        }
    }

    /// Sets the times of folders at the end, since writing into a folder changes them.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn finish(mut self) -> io::Result<()> {
        for (place, times) in std::mem::take(&mut self.timed).into_iter().rev() {
            self.folder(&place)?;
            if let Some((_, folder)) = &self.last {
                set_times(folder, &times)?;
            }
        }
        Ok(())
    }

    /// Opens the folder with this path, and creates it if missing. Returns the names used: if a file
    /// has one of them, the folder gets another name.
    fn folder(&mut self, names: &[String]) -> io::Result<Vec<String>> {
        if let Some((last, _)) = self.last.as_ref().filter(|(last, _)| last == names) {
            return Ok(last.clone());
        }
        let mut place = Vec::new();
        let mut last: Option<OwnedFd> = None;
        for (depth, name) in names.iter().enumerate() {
            let is_taken = depth == 0 && self.kept_free == Some(name);
            let name = if is_taken { &format!("{name}~folder") } else { name };
            let parent = last.as_ref().map_or(self.root.as_fd(), |last| last.as_fd());
            let (name, folder) = open_or_make(parent, name)?;
            place.push(name);
            last = Some(folder);
        }
        self.last = last.map(|folder| (place.clone(), folder));
        Ok(place)
    }
}

fn new_file() -> OFlags {
    OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn open_or_make(parent: impl AsFd, name: &str) -> io::Result<(String, OwnedFd)> {
    let mut tried = name.to_string();
    for number in 0..TRIES_MAX {
        match mkdirat(&parent, &*tried, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        match openat(&parent, &*tried, FOLDER, Mode::empty()) {
            Ok(folder) => return Ok((tried, folder)),
            // A file has this name.
            Err(Errno::NOTDIR | Errno::LOOP) => tried = format!("{name}~folder{number}"),
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::EXIST.into())
}

/// Creates a file under a name that is not taken.
fn create(folder: impl AsFd, name: &str, inode: u64) -> io::Result<(String, File)> {
    let mut tried = name.to_string();
    for number in 0..TRIES_MAX {
        match openat(&folder, &*tried, new_file(), Mode::from_raw_mode(0o666)) {
            Ok(file) => return Ok((tried, File::from(file))),
            Err(Errno::EXIST) if number == 0 => tried = format!("{name}~{inode}"),
            Err(Errno::EXIST) => tried = format!("{name}~{inode}-{number}"),
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::EXIST.into())
}

/// Writes and hashes the bytes.
fn fill(
    file: &mut File,
    source: &dyn Source,
    entry: &Entry,
    hashes: HashKinds,
) -> Result<(Digests, Vec<Range<u64>>)> {
    let mut hasher = Hasher::new(hashes);
    let unreadable = bytes::read(source, entry, &mut |piece| match piece {
        Piece::Bytes(bytes) => {
            hasher.update(bytes);
            file.write_all(bytes)
        }
        Piece::Zeros(zeros) => {
            hasher.zeros(zeros);
            let zeros = i64::try_from(zeros).map_err(io::Error::other)?;
            file.seek(SeekFrom::Current(zeros)).map(|_| ())
        }
    })?;
    let end = file.stream_position().and_then(|end| file.set_len(end));
    end.and_then(|()| set_times(&*file, &entry.times)).map_err(Error::Taken)?;
    Ok((hasher.finish(), unreadable))
}

fn set_times(file: impl AsFd, times: &Times) -> io::Result<()> {
    let time = |time: Option<i64>| match time {
        Some(time) => Timespec {
            tv_sec: time.div_euclid(1_000_000_000),
            tv_nsec: time.rem_euclid(1_000_000_000) as _,
        },
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT as _ },
    };
    let times =
        Timestamps { last_access: time(times.accessed), last_modification: time(times.modified) };
    Ok(futimens(file, &times)?)
}

/// A file name without path separators, that terminals can show verbatim.
pub fn harmless(name: &str) -> String {
    let safe = |c: char| {
        if c.is_control() || matches!(c, '/' | '\u{202A}'..='\u{202E}') { '_' } else { c }
    };
    let mut name: String = name.chars().map(safe).collect();
    if name.len() > NAME_BYTES_MAX {
        let hash = name.bytes().fold(0xCBF2_9CE4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
        let end = name.floor_char_boundary(NAME_BYTES_MAX);
        name.truncate(end);
        name.push_str(&format!("~{hash:016x}"));
    }
    match name.as_str() {
        "" | "." | ".." => format!("_{}", name.replace('.', "_")),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn names_are_sanitized() {
        for (name, expected) in [
            ("..", "___"),
            (".", "__"),
            ("", "_"),
            ("a/b", "a_b"),
            ("\u{1b}[2J\n", "_[2J_"),
            ("Ümläut.txt", "Ümläut.txt"),
            ("\u{202E}gpj.exe", "_gpj.exe"),
        ] {
            assert_eq!(harmless(name), expected);
        }
        let long = harmless(&"ä".repeat(255));
        assert!(long.len() < 255 && long != harmless(&"ä".repeat(254)));
    }
}
