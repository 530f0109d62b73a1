//! The cache on disk: a folder of objects, shared by processes.
//!
//! Each version of an object has three files, named by the hash of its identity (URL without
//! signatures and passwords, ETag, Last-Modified, length): `KEY.data`, a sparse file with each byte
//! at its own offset; `KEY.journal`, which claims blocks of it (see [`journal`](crate::journal));
//! and `KEY.about`, the description. A changed version gets another name.
//!
//! A process that uses an object holds a shared lock on its data file, which protects it from
//! eviction. Locks are never waited for indefinitely, so a process that was stopped while holding
//! one does not block others; bytes that could not be cached are fetched again later.

mod about;
mod entry;
mod list;

pub(crate) use about::About;
pub(crate) use entry::Entry;
pub use list::{Cache, CachedObject, Checked};

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use quarrier_core::sync::lock;
use ring::digest;

use crate::answer::Version;
use crate::journal::Key;
use crate::options::CacheOptions;

/// A folder of cached objects. Clones share state.
#[derive(Debug, Clone)]
pub(crate) struct Folder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    bytes_max: u64,
    /// The reason why it is no longer used.
    warning: Mutex<Option<String>>,
    /// Nothing more is cached: the cache is off, or full of objects in use.
    is_closed: AtomicBool,
    /// Bytes stored since the last check for room.
    new_bytes: AtomicU64,
}

impl Folder {
    /// Opens or creates the folder. If that fails, the cache is off, with a warning.
    pub(crate) fn open(options: CacheOptions) -> Self {
        let CacheOptions { folder, bytes_max } = options;
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        let cache = Folder(Arc::new(Inner {
            folder,
            bytes_max,
            warning: Mutex::default(),
            is_closed: AtomicBool::new(false),
            new_bytes: AtomicU64::new(0),
        }));
        // Report an unwritable folder before the first object needs it.
        if let Err(error) = made.and_then(|()| cache.file("lock").map(drop)) {
            cache.turn_off(&error);
        }
        cache
    }

    /// The cached part of an object; `None` if the cache is off, or the object has no validators.
    pub(crate) fn entry(&self, identity: &str, name: &str, version: &Version) -> Option<Entry> {
        let is_told = version.etag.is_some() || version.last_modified.is_some();
        if !is_told || self.is_closed() {
            return None;
        }
        let about = About::new(identity, name, version);
        let entry = Entry::open(self.clone(), key_of(identity, version), &about);
        match entry {
            Ok(entry) => {
                self.make_room();
                entry
            }
            Err(error) => {
                self.turn_off(&error);
                None
            }
        }
    }

    /// The most recently used version of an object.
    pub(crate) fn last_version(&self, identity: &str) -> Option<Version> {
        let identity = about::hashed(identity);
        let known = self.objects().into_iter().filter_map(|object| {
            let about = About::read(&object.data.with_extension("about"))?;
            (about.identity == identity).then_some((object.used, about.version))
        });
        known.max_by_key(|(used, _)| *used).map(|(_, version)| version)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0.folder
    }

    pub(crate) fn warning(&self) -> Option<String> {
        lock(&self.0.warning).clone()
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed.load(Ordering::Relaxed)
    }

    /// Stops caching in this run. The first reason is the one reported.
    fn turn_off(&self, error: &io::Error) {
        self.0.is_closed.store(true, Ordering::Relaxed);
        let mut warning = lock(&self.0.warning);
        let path = self.0.folder.display();
        warning.get_or_insert_with(|| {
            format!("{path}: cannot write the cache: {error}; continuing without it")
        });
    }

    /// Opens a file of the folder, or creates it with access for its owner only.
    fn file(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        options.open(self.0.folder.join(name))
    }

    /// Counts stored bytes, and makes room after many of them.
    fn count(&self, bytes: u64) {
        let new = self.0.new_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if new >= (self.0.bytes_max / 16).clamp(1 << 20, 1 << 30) {
            self.0.new_bytes.store(0, Ordering::Relaxed);
            self.make_room();
        }
    }

    /// Removes the least recently used objects until the rest fits. If even those in use do not
    /// fit, caching stops.
    fn make_room(&self) {
        let Ok(_lock) = self.file("lock").and_then(|file| locked(file, Patience::Some)) else {
            return;
        };
        let mut objects = self.objects();
        let mut bytes: u64 = objects.iter().map(|object| object.bytes).sum();
        if bytes <= self.0.bytes_max {
            return;
        }
        objects.sort_by_key(|object| object.used);
        for object in objects {
            if bytes <= self.0.bytes_max - self.0.bytes_max / 8 {
                return;
            }
            if object.remove() {
                bytes -= object.bytes;
            }
        }
        if bytes > self.0.bytes_max {
            self.0.is_closed.store(true, Ordering::Relaxed);
        }
    }

    fn objects(&self) -> Vec<Evictable> {
        let Ok(files) = fs::read_dir(&self.0.folder) else { return Vec::new() };
        let paths = files.filter_map(|file| file.ok().map(|file| file.path()));
        paths.filter_map(|path| Evictable::of(&path)).collect()
    }
}

/// An object in the cache folder, for eviction.
#[derive(Debug, Clone)]
struct Evictable {
    data: PathBuf,
    bytes: u64,
    used: SystemTime,
}

impl Evictable {
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let key = name.strip_suffix(".data")?;
        // The folder may contain files that are not ours.
        if key.len() != 64 || !key.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let meta = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
        let journal = fs::symlink_metadata(path.with_extension("journal"));
        let used = journal.and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        Some(Evictable { data: path.to_path_buf(), bytes: meta.blocks() * 512, used })
    }

    /// Removes the object, unless a process uses it. The journal goes first: claims without bytes
    /// would cost a lookup each, bytes without claims cost nothing.
    fn remove(&self) -> bool {
        let opened = File::open(&self.data).and_then(|file| locked(file, Patience::None));
        let Ok(_unused) = opened else { return false };
        for ending in ["journal", "about"] {
            let _ = fs::remove_file(self.data.with_extension(ending));
        }
        fs::remove_file(&self.data).is_ok()
    }
}

/// How long to try to get a lock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    None,
    /// Retries while other processes hold the lock briefly.
    Some,
}

/// Locks the file exclusively for this descriptor, until it is closed.
fn locked(file: File, patience: Patience) -> io::Result<File> {
    for _ in 0..200 {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if patience == Patience::None => break,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

fn key_of(identity: &str, version: &Version) -> Key {
    let mut context = digest::Context::new(&digest::SHA256);
    let etag = version.etag.as_deref().unwrap_or_default();
    let date = version.last_modified.as_deref().unwrap_or_default();
    for field in [identity, etag, date] {
        context.update(&(field.len() as u64).to_le_bytes());
        context.update(field.as_bytes());
    }
    context.update(&version.length.to_le_bytes());
    let mut key = Key::default();
    key.copy_from_slice(context.finish().as_ref());
    key
}
