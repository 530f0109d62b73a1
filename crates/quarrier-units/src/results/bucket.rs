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

/// The number of a unit: its name in hexadecimal.
type UnitNumber = u128;

/// The objects of searches in a folder of a bucket.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    pub(super) folder: ObjectFolder,
    /// The objects that exist, by search. A search is listed once.
    listed: Arc<Mutex<HashMap<String, HashSet<UnitNumber>>>>,
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
            return Ok(number_of(unit).is_some_and(|unit| units.contains(&unit)));
        }
        let mut units = HashSet::new();
        self.folder.below(job)?.names(&mut |name| {
            units.extend(name.strip_suffix(".arrow").and_then(number_of));
            match units.len() {
                LISTED_MAX.. => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        })?;
        let has = number_of(unit).is_some_and(|unit| units.contains(&unit));
        listed.insert(job.to_string(), units);
        Ok(has)
    }

    /// Opens an object; `None` if it does not exist. It is read into memory first, so that a failing
    /// server is an error, and its objects are not taken for damaged ones.
    pub(super) fn open(&self, job: &str, unit: &str) -> Result<Option<Box<dyn Source>>> {
        let Some(object) = self.folder.open(&name(job, unit))? else { return Ok(None) };
        let name = object.name().to_string();
        // A larger object was not written by this program, and counts as damaged.
        let length = usize::try_from(object.length()).unwrap_or(usize::MAX);
        let mut bytes = vec![0; if length > OBJECT_BYTES_MAX { 0 } else { length }];
        let read = read_full_at(&*object, 0, &mut bytes);
        let read = read.map_err(|error| quarrier_core::Error::io(name.clone(), "read", error))?;
        bytes.truncate(read);
        Ok(Some(Box::new(Memory::new(name, bytes))))
    }

    /// Removes an object.
    pub(super) fn remove(&self, job: &str, unit: &str) -> Result<()> {
        self.folder.remove(&name(job, unit)).map_err(|error| self.failed(job, unit, error))?;
        if let (Some(units), Some(unit)) = (lock(&self.listed).get_mut(job), number_of(unit)) {
            units.remove(&unit);
        }
        Ok(())
    }

    /// Writes a complete object. If an object of that name exists, another process was faster, and its
    /// object stays: both hold the same rows.
    pub(super) fn put(&self, job: &str, unit: &str, bytes: Vec<u8>) -> Result<()> {
        let put = self.folder.put_new(&name(job, unit), bytes);
        put.map_err(|error| self.failed(job, unit, error))?;
        if let Some(units) = lock(&self.listed).get_mut(job) {
            units.extend(number_of(unit));
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

/// The number of a unit with this name; `None` for other names.
fn number_of(unit: &str) -> Option<UnitNumber> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let number = UnitNumber::from_str_radix(unit, 16).ok();
    number.filter(|_| unit.len() == 2 * size_of::<UnitNumber>() && unit.bytes().all(is_hex))
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
