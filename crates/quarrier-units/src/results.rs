//! The storage of objects: a folder that all processes can reach.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use quarrier::source::{is_remote, shown};
use quarrier_core::source::Source;

use crate::error::{Error, Result};
use crate::unit::Unit;

/// A folder of objects: `JOB/UNIT.arrow`.
#[derive(Debug, Clone)]
pub struct Results {
    folder: PathBuf,
}

impl Results {
    /// The objects in a folder, which is created with the first object.
    ///
    /// # Errors
    /// [`Error::Request`] for a URL.
    pub fn at(folder: &OsStr) -> Result<Self> {
        let text = folder.to_string_lossy();
        if is_remote(&text) {
            return Err(Error::Request(format!(
                "{}: rows of units can only be written to folders; name one that all \
                 machines can reach, and copy it at the end",
                shown(&text)
            )));
        }
        Ok(Results { folder: PathBuf::from(folder) })
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path of the object of a unit, which need not exist.
    #[must_use]
    pub fn path(&self, job: &str, unit: &Unit) -> PathBuf {
        self.folder.join(job).join(format!("{}.arrow", unit.id()))
    }

    /// Whether the object of a unit exists.
    #[must_use]
    pub fn has(&self, job: &str, unit: &Unit) -> bool {
        self.path(job, unit).exists()
    }

    /// Opens the object of a unit; `None` if it does not exist.
    pub(crate) fn open(&self, job: &str, unit: &Unit) -> Result<Option<Box<dyn Source>>> {
        let path = self.path(job, unit);
        match fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::Results { path, error }),
            Ok(_) => Ok(Some(quarrier_core::source::open(&path)?)),
        }
    }

    /// Removes the object of a unit because it is damaged.
    pub(crate) fn remove(&self, job: &str, unit: &Unit) -> Result<()> {
        let path = self.path(job, unit);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::Results { path, error })
            }
            _ => Ok(()),
        }
    }

    /// Removes partial files that killed processes left beside existing objects.
    pub(crate) fn clean(&self, job: &str) {
        let folder = self.folder.join(job);
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

    /// Begins the object of a unit, under a temporary name.
    pub(crate) fn create(&self, job: &str, unit: &Unit) -> Result<Pending> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let folder = self.folder.join(job);
        let failed = |path: &Path, error| Error::Results { path: path.to_path_buf(), error };
        fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            // Machines that share the folder may have processes with the same number.
            let now = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |t| t.subsec_nanos());
            let name = format!(".{}.{}-{number}-{now}.part", unit.id(), std::process::id());
            let path = folder.join(name);
            match File::create_new(&path) {
                Ok(file) => {
                    let target = self.path(job, unit);
                    return Ok(Pending { path, target, file: Some(BufWriter::new(file)) });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(&path, error)),
            }
        }
    }
}

/// An object that is being written. Dropping it removes the partial file.
pub(crate) struct Pending {
    path: PathBuf,
    target: PathBuf,
    file: Option<BufWriter<File>>,
}

impl Pending {
    /// The file to write to; may be taken once.
    pub(crate) fn take_file(&mut self) -> io::Result<BufWriter<File>> {
        self.file.take().ok_or_else(|| ErrorKind::InvalidInput.into())
    }

    /// Gives the object its name, once it is complete and on disk. If an object of that name exists,
    /// another process was faster, and its object stays: both hold the same rows.
    pub(crate) fn publish(self, written: BufWriter<File>) -> io::Result<()> {
        let file = written.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        match fs::hard_link(&self.path, &self.target) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            // A join found the object of another process, and removed this partial file.
            Err(_) if !self.path.exists() && self.target.exists() => {}
            // The file system does not support hard links.
            Err(_) => fs::rename(&self.path, &self.target)?,
            Ok(()) => {}
        }
        // Makes the name survive a power cut. Some file systems cannot do this; a lost object is run again.
        let _ = self.target.parent().map(|folder| File::open(folder)?.sync_all());
        Ok(())
    }

    /// The final path of the object.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // After a rename, the file is gone already.
        let _ = fs::remove_file(&self.path);
    }
}
