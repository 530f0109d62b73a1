//! The storage of objects: a folder that all processes can reach, or one of a bucket.

mod bucket;
mod folder;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use quarrier::Opener;
use quarrier::source::{is_bucket, is_remote, selects, shown};
use quarrier_core::source::Source;

use self::bucket::{Bucket, Held};
use self::folder::{Folder, PendingFile};
use crate::error::{Error, Result};
use crate::unit::Unit;

/// The storage of objects: `JOB/UNIT.arrow`.
#[derive(Debug, Clone)]
pub struct Results {
    place: Place,
}

#[derive(Debug, Clone)]
enum Place {
    Folder(Folder),
    Bucket(Bucket),
}

impl Results {
    /// The objects in a folder, which is created with the first object; or in the folder of a bucket,
    /// such as `s3://BUCKET/FOLDER`.
    ///
    /// # Errors
    /// [`Error::Request`] for other URLs; [`Error::Search`] if the settings of the bucket are invalid.
    pub fn at(to: &OsStr, opener: &Opener) -> Result<Self> {
        let text = to.to_string_lossy();
        let place = if is_bucket(&text) {
            Place::Bucket(Bucket::new(opener.object_folder(&text)?))
        } else if is_remote(&text) {
            return Err(Error::Request(format!(
                "{}: rows of units are written to folders and to buckets: s3://, gs:// or az://",
                shown(&text)
            )));
        } else {
            Place::Folder(Folder { path: PathBuf::from(to), is_temporary: false })
        };
        Ok(Results { place })
    }

    /// The objects in a folder that is removed when its process ends. They are not forced to the disk.
    #[must_use]
    pub fn temporary(path: PathBuf) -> Self {
        Results { place: Place::Folder(Folder { path, is_temporary: true }) }
    }

    /// The folder; `None` for a bucket.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        match &self.place {
            Place::Folder(folder) => Some(&folder.path),
            Place::Bucket(_) => None,
        }
    }

    /// Whether a source with this name has the objects among its own, if they are in a bucket.
    #[must_use]
    pub fn is_within(&self, source: &str) -> bool {
        match &self.place {
            Place::Folder(_) => false,
            Place::Bucket(bucket) => {
                let object = bucket.object("job", "unit");
                selects(source, &object.to_string_lossy())
            }
        }
    }

    /// The path or URL of the object of a unit, which need not exist.
    #[must_use]
    pub fn path(&self, job: &str, unit: &Unit) -> PathBuf {
        match &self.place {
            Place::Folder(folder) => folder.object(job, &unit.id()),
            Place::Bucket(bucket) => bucket.object(job, &unit.id()),
        }
    }

    /// Whether the object of a unit exists. For a bucket, other processes may have written it since the
    /// first call.
    ///
    /// # Errors
    /// [`Error::Search`] if the objects of a bucket cannot be listed.
    pub fn has(&self, job: &str, unit: &Unit) -> Result<bool> {
        match &self.place {
            Place::Folder(folder) => Ok(folder.object(job, &unit.id()).exists()),
            Place::Bucket(bucket) => bucket.has(job, &unit.id()),
        }
    }

    /// Removes the object of a unit, which need not exist.
    ///
    /// # Errors
    /// [`Error::Results`].
    pub fn remove(&self, job: &str, unit: &Unit) -> Result<()> {
        match &self.place {
            Place::Folder(folder) => folder.remove(job, &unit.id()),
            Place::Bucket(bucket) => bucket.remove(job, &unit.id()),
        }
    }

    /// Begins to receive the object of a unit, whose bytes another process wrote.
    ///
    /// # Errors
    /// [`Error::Results`].
    pub fn receive(&self, job: &str, unit: &Unit) -> Result<Incoming> {
        let (pending, out) = self.create(job, unit)?;
        Ok(Incoming { pending, out, path: self.path(job, unit) })
    }

    /// Opens the object of a unit; `None` if it does not exist.
    pub(crate) fn open(&self, job: &str, unit: &Unit) -> Result<Option<Box<dyn Source>>> {
        match &self.place {
            Place::Folder(folder) => folder.open(job, &unit.id()),
            Place::Bucket(bucket) => bucket.open(job, &unit.id()),
        }
    }

    /// Removes partial files that killed processes left beside existing objects. A bucket has none.
    pub(crate) fn clean(&self, job: &str) {
        if let Place::Folder(folder) = &self.place {
            folder.clean(job);
        }
    }

    /// Begins the object of a unit.
    pub(crate) fn create(&self, job: &str, unit: &Unit) -> Result<(Pending, ObjectOut)> {
        match &self.place {
            Place::Folder(folder) => {
                let (pending, out) = folder.create(job, &unit.id())?;
                Ok((Pending::File(pending), ObjectOut::File(out)))
            }
            Place::Bucket(bucket) => {
                let (bucket, job, unit) = (bucket.clone(), job.to_string(), unit.id());
                Ok((Pending::Object { bucket, job, unit }, ObjectOut::Held(Held::default())))
            }
        }
    }
}

/// An object that is being received. Dropping it discards its bytes.
pub struct Incoming {
    pending: Pending,
    out: ObjectOut,
    path: PathBuf,
}

impl Incoming {
    /// Adds the next bytes.
    ///
    /// # Errors
    /// [`Error::Results`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let failed = |error| Error::Results { path: self.path.clone(), error };
        self.out.write_all(bytes).map_err(failed)
    }

    /// Gives the object its name, once all bytes were received. Its reader verifies them.
    ///
    /// # Errors
    /// [`Error::Results`].
    pub fn finish(self) -> Result<()> {
        self.pending.publish(&self.path, self.out)
    }
}

/// An object that is being written.
pub(crate) enum Pending {
    File(PendingFile),
    Object { bucket: Bucket, job: String, unit: String },
}

/// Where the bytes of an object go until it is complete.
pub(crate) enum ObjectOut {
    File(BufWriter<File>),
    Held(Held),
}

impl Pending {
    /// Gives the complete object its name.
    pub(crate) fn publish(self, path: &Path, written: ObjectOut) -> Result<()> {
        let failed = |error| Error::Results { path: path.to_path_buf(), error };
        match (self, written) {
            (Pending::File(pending), ObjectOut::File(out)) => pending.publish(out).map_err(failed),
            (Pending::Object { bucket, job, unit }, ObjectOut::Held(Held(bytes))) => {
                bucket.put(&job, &unit, bytes)
            }
            _ => Err(failed(io::ErrorKind::InvalidInput.into())),
        }
    }
}

impl Write for ObjectOut {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            ObjectOut::File(out) => out.write(bytes),
            ObjectOut::Held(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            ObjectOut::File(out) => out.flush(),
            ObjectOut::Held(out) => out.flush(),
        }
    }
}
