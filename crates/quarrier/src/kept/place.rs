//! Places for copies of a log: a folder, or one of a bucket.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use quarrier_core::source::{FileSource, Source};
use quarrier_messages::kept::CopyStore;

use crate::source::{ObjectFolder, is_bucket, is_remote, shown};
use crate::{Error, Opener, Result};

/// A folder, or a folder of a bucket such as `s3://BUCKET/FOLDER`, for the copy of one log.
#[derive(Clone)]
pub struct CopyPlace {
    store: Arc<dyn CopyStore>,
    /// The local folder; `None` for a bucket.
    folder: Option<PathBuf>,
    stop: Arc<AtomicBool>,
}

impl std::fmt::Debug for CopyPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CopyPlace").field(&self.name()).finish()
    }
}

impl Opener {
    /// The place with this path or URL, which need not exist. Makes no request.
    ///
    /// # Errors
    /// [`Error::Request`] for URLs that are no buckets; [`Error::Remote`] if the settings of the bucket are invalid.
    pub fn copy_place(&self, to: &OsStr) -> Result<CopyPlace> {
        let text = to.to_string_lossy();
        let stop = Arc::clone(self.stop());
        if is_bucket(&text) {
            let store = Arc::new(Bucket(self.object_folder(&text)?));
            return Ok(CopyPlace { store, folder: None, stop });
        }
        if is_remote(&text) {
            let reason = "a log is copied to a folder or a bucket: s3://, gs:// or az://";
            return Err(Error::Request(format!("{}: {reason}", shown(&text))));
        }
        if to.is_empty() {
            return Err(Error::Request("the place for the copy of a log has no name".to_string()));
        }
        let path = PathBuf::from(to);
        Ok(CopyPlace { store: Arc::new(Folder(path.clone())), folder: Some(path), stop })
    }
}

impl CopyPlace {
    /// The path or URL, without secrets.
    pub fn name(&self) -> String {
        self.store.name()
    }

    pub(super) fn store(&self) -> Arc<dyn CopyStore> {
        Arc::clone(&self.store)
    }

    /// Ends reads and listings of a bucket.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns whether this is a folder in another one.
    pub(super) fn is_within(&self, folder: &Path) -> bool {
        let Some(own) = &self.folder else { return false };
        // The place may not exist yet.
        let there = own.ancestors().find_map(|path| {
            let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            path.canonicalize().ok()
        });
        let folder = folder.canonicalize();
        folder.is_ok_and(|folder| there.is_some_and(|there| there.starts_with(folder)))
    }
}

struct Bucket(ObjectFolder);

fn failed(error: Error) -> io::Error {
    io::Error::other(error)
}

impl CopyStore for Bucket {
    fn name(&self) -> String {
        self.0.name().to_string()
    }

    fn list(&self, folder: &str, take: &mut dyn FnMut(&str) -> bool) -> io::Result<()> {
        let mut take = |name: &str| match take(name) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        self.0.below(folder).and_then(|folder| folder.names(&mut take)).map_err(failed)
    }

    fn open(&self, name: &str) -> io::Result<Option<Box<dyn Source>>> {
        self.0.open(name).map_err(failed)
    }

    fn put_new(&self, name: &str, bytes: Vec<u8>) -> io::Result<bool> {
        self.0.put_new(name, bytes).map_err(failed)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name).map_err(failed)
    }
}

/// A local folder. An object is a file, which gets its name when it is complete and on disk.
struct Folder(PathBuf);

impl Folder {
    /// Returns the folder of an object, which is created.
    fn above(&self, path: &Path) -> io::Result<PathBuf> {
        let above = path.parent().unwrap_or(&self.0).to_path_buf();
        if !above.is_dir() {
            fs::create_dir_all(&above)?;
            if let Some(outer) = above.parent().filter(|outer| !outer.as_os_str().is_empty()) {
                File::open(outer)?.sync_all()?;
            }
        }
        Ok(above)
    }
}

impl CopyStore for Folder {
    fn name(&self) -> String {
        format!("{}/", self.0.display().to_string().trim_end_matches('/'))
    }

    fn list(&self, folder: &str, take: &mut dyn FnMut(&str) -> bool) -> io::Result<()> {
        let entries = match fs::read_dir(self.0.join(folder)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            // No object has a name that is not UTF-8.
            if entry?.file_name().to_str().is_some_and(|name| !take(name)) {
                break;
            }
        }
        Ok(())
    }

    fn open(&self, name: &str) -> io::Result<Option<Box<dyn Source>>> {
        let path = self.0.join(name);
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
            Ok(about) if !about.is_file() => Err(io::Error::other("it is not a regular file")),
            Ok(_) => Ok(Some(Box::new(FileSource::open(&path).map_err(io::Error::other)?))),
        }
    }

    fn put_new(&self, name: &str, bytes: Vec<u8>) -> io::Result<bool> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let path = self.0.join(name);
        let above = self.above(&path)?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let part = above.join(format!(".{}-{number}.part", std::process::id()));
        let write = || {
            let mut file = File::create(&part)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            let named = match fs::hard_link(&part, &path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
                // The file system has no hard links.
                Err(_) if !path.exists() => fs::rename(&part, &path).map(|()| true),
                linked => linked.map(|()| true),
            };
            File::open(&above)?.sync_all()?;
            named
        };
        let written = write();
        // After a rename, it is gone already.
        let _ = fs::remove_file(&part);
        written
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.0.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}
