//! A folder of objects that all processes can reach.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use quarrier_core::source::Source;

use crate::error::{Error, Result};

/// A folder of objects, which is created with the first one.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// Whether objects need not survive a power cut.
    pub(super) is_temporary: bool,
}

impl Folder {
    /// The path of an object, which need not exist.
    pub(super) fn object(&self, job: &str, unit: &str) -> PathBuf {
        self.path.join(job).join(format!("{unit}.arrow"))
    }

    /// Opens an object; `None` if it does not exist.
    pub(super) fn open(&self, job: &str, unit: &str) -> Result<Option<Box<dyn Source>>> {
        let path = self.object(job, unit);
        match fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::Results { path, error }),
            Ok(_) => Ok(Some(quarrier_core::source::open(&path)?)),
        }
    }

    /// Removes an object.
    pub(super) fn remove(&self, job: &str, unit: &str) -> Result<()> {
        let path = self.object(job, unit);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::Results { path, error })
            }
            _ => Ok(()),
        }
    }

    /// Removes partial files that killed processes left beside existing objects.
    pub(super) fn clean(&self, job: &str) {
        let folder = self.path.join(job);
        let Ok(entries) = fs::read_dir(&folder) else { return };
        for name in entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()) {
            let unit = name.strip_prefix('.').and_then(|name| name.split('.').next());
            let is_there = |unit: &str| folder.join(format!("{unit}.arrow")).exists();
            if name.ends_with(".part") && unit.is_some_and(is_there) {
                // A file that cannot be removed does no harm.
                let _ = fs::remove_file(folder.join(name));
            }
        }
    }

    /// Begins an object, under a temporary name.
    pub(super) fn create(&self, job: &str, unit: &str) -> Result<(PendingFile, BufWriter<File>)> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let folder = self.path.join(job);
        let failed = |path: &Path, error| Error::Results { path: path.to_path_buf(), error };
        fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            // Machines that share the folder may have processes with the same number.
            let now = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |t| t.subsec_nanos());
            let name = format!(".{unit}.{}-{number}-{now}.part", std::process::id());
            let path = folder.join(name);
            match File::create_new(&path) {
                Ok(file) => {
                    let target = self.object(job, unit);
                    let pending = PendingFile { path, target, is_temporary: self.is_temporary };
                    return Ok((pending, BufWriter::new(file)));
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(&path, error)),
            }
        }
    }
}

/// An object that is being written. Dropping it removes the partial file.
pub(crate) struct PendingFile {
    path: PathBuf,
    target: PathBuf,
    is_temporary: bool,
}

impl PendingFile {
    /// Gives the object its name, once it is complete and on disk. If an object of that name exists,
    /// another process was faster, and its object stays: both hold the same rows.
    pub(super) fn publish(self, written: BufWriter<File>) -> io::Result<()> {
        let file = written.into_inner().map_err(io::IntoInnerError::into_error)?;
        if !self.is_temporary {
            file.sync_all()?;
        }
        match fs::hard_link(&self.path, &self.target) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            // A join found the object of another process, and removed this partial file.
            Err(_) if !self.path.exists() && self.target.exists() => {}
            // The file system does not support hard links.
            Err(_) => fs::rename(&self.path, &self.target)?,
            Ok(()) => {}
        }
        if !self.is_temporary {
            // Makes the name survive a power cut. Some file systems cannot do this; a lost object is run
            // again.
            let _ = self.target.parent().map(|folder| File::open(folder)?.sync_all());
        }
        Ok(())
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        // After a rename, the file is gone already.
        let _ = fs::remove_file(&self.path);
    }
}
