//! A bucket of objects.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use quarrier::source::ObjectFolder;
use quarrier_core::source::{Memory, Source, read_full_at};
use quarrier_core::sync::lock;

use crate::error::{Error, Result};

/// Maximum size of an object, which is held in memory until it is complete.
const OBJECT_BYTES_MAX: usize = 512 << 20;

/// Maximum number of objects of a search that are listed.
const LISTED_MAX: usize = 1 << 24;

/// The objects of searches in a folder of a bucket.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    pub(super) folder: ObjectFolder,
    /// The objects that exist, by search. A search is listed once.
    listed: Arc<Mutex<HashMap<String, HashSet<String>>>>,
}

impl Bucket {
    pub(super) fn new(folder: ObjectFolder) -> Self {
        Bucket { folder, listed: Arc::default() }
    }

    /// The URL of an object, which need not exist.
    pub(super) fn object(&self, job: &str, unit: &str) -> PathBuf {
        format!("{}{}", self.folder.name(), name(job, unit)).into()
    }

    /// Whether an object existed when the search was listed, or was written by this process.
    pub(super) fn has(&self, job: &str, unit: &str) -> Result<bool> {
        let mut listed = lock(&self.listed);
        if let Some(units) = listed.get(job) {
            return Ok(units.contains(unit));
        }
        let mut units = HashSet::new();
        self.folder.below(job)?.names(&mut |name| {
            units.extend(name.strip_suffix(".arrow").map(str::to_string));
            match units.len() {
                LISTED_MAX.. => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        })?;
        let has = units.contains(unit);
        listed.insert(job.to_string(), units);
        Ok(has)
    }

    /// Opens an object; `None` if it does not exist. It is read into memory first, so that a failing
    /// server is an error, and its objects are not taken for damaged ones.
    pub(super) fn open(&self, job: &str, unit: &str) -> Result<Option<Box<dyn Source>>> {
        let Some(object) = self.folder.open(&name(job, unit))? else { return Ok(None) };
        let name = object.name().to_string();
        // A larger object was not written by this program, and its beginning counts as damaged.
        let length = usize::try_from(object.length()).unwrap_or(usize::MAX).min(OBJECT_BYTES_MAX);
        let mut bytes = vec![0; length];
        let read = read_full_at(&*object, 0, &mut bytes);
        let read = read.map_err(|error| quarrier_core::Error::io(name.clone(), "read", error))?;
        bytes.truncate(read);
        Ok(Some(Box::new(Memory::new(name, bytes))))
    }

    /// Removes an object.
    pub(super) fn remove(&self, job: &str, unit: &str) -> Result<()> {
        self.folder.remove(&name(job, unit)).map_err(|error| self.failed(job, unit, error))?;
        if let Some(units) = lock(&self.listed).get_mut(job) {
            units.remove(unit);
        }
        Ok(())
    }

    /// Writes a complete object. If an object of that name exists, another process was faster, and its
    /// object stays: both hold the same rows.
    pub(super) fn put(&self, job: &str, unit: &str, bytes: Vec<u8>) -> Result<()> {
        let put = self.folder.put_new(&name(job, unit), bytes);
        put.map_err(|error| self.failed(job, unit, error))?;
        if let Some(units) = lock(&self.listed).get_mut(job) {
            units.insert(unit.to_string());
        }
        Ok(())
    }

    fn failed(&self, job: &str, unit: &str, error: quarrier::Error) -> Error {
        let error = match error {
            quarrier::Error::Remote(error) => error.into(),
            error => io::Error::other(error),
        };
        Error::Results { path: self.object(job, unit), error }
    }
}

fn name(job: &str, unit: &str) -> String {
    format!("{job}/{unit}.arrow")
}

/// The bytes of an object that is being written.
#[derive(Default)]
pub(crate) struct Held(pub(super) Vec<u8>);

impl Write for Held {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > OBJECT_BYTES_MAX - self.0.len() {
            return Err(io::Error::other(format!(
                "the rows of a unit have more than {} MiB, the most that is written to a bucket; \
                 lower --unit-size, or write to a folder",
                OBJECT_BYTES_MAX >> 20
            )));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
