//! Folders of buckets that runs write to.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_core::source::Source;
use quarrier_remote::{BucketFolder, Error as RemoteError, ListedObject, Remote};

use super::Opener;
use crate::Result;

/// A folder of a bucket, such as `s3://BUCKET/FOLDER`, whose objects are written whole and once.
#[derive(Debug, Clone)]
pub struct ObjectFolder {
    folder: BucketFolder,
    remote: Arc<Remote>,
    stop: Arc<AtomicBool>,
}

impl Opener {
    /// The folder of a bucket with this URL, which need not exist. Makes no request.
    ///
    /// # Errors
    /// [`Error::Remote`](crate::Error::Remote) for other URLs, or if the settings of the bucket are
    /// invalid.
    pub fn object_folder(&self, url: &str) -> Result<ObjectFolder> {
        let remote = Arc::clone(self.client()?);
        let folder = remote.folder(&format!("{}/", url.trim_end_matches('/')))?;
        Ok(ObjectFolder { folder, remote, stop: Arc::clone(self.stop()) })
    }
}

impl ObjectFolder {
    /// The URL, with a slash at its end.
    #[must_use]
    pub fn name(&self) -> &str {
        self.folder.name()
    }

    /// The folder of this name in this one.
    ///
    /// # Errors
    /// Those of [`Opener::object_folder`].
    pub fn below(&self, name: &str) -> Result<ObjectFolder> {
        let folder = self.remote.folder(&format!("{}{name}/", self.name()))?;
        Ok(ObjectFolder { folder, ..self.clone() })
    }

    /// Passes on the names of the objects directly in the folder, in any order.
    ///
    /// # Errors
    /// [`Error::Remote`](crate::Error::Remote) if they cannot be listed.
    pub fn names(&self, take: &mut dyn FnMut(&str) -> ControlFlow<()>) -> Result<()> {
        let prefix = self.name().splitn(4, '/').nth(3).unwrap_or_default().len();
        let mut take = |object: ListedObject<'_>| take(&object.key[prefix..]);
        Ok(self.folder.list(true, &self.stop, &mut take)?)
    }

    /// Opens an object; `None` if it does not exist.
    ///
    /// # Errors
    /// [`Error::Remote`](crate::Error::Remote) if it cannot be opened.
    pub fn open(&self, name: &str) -> Result<Option<Box<dyn Source>>> {
        match self.remote.open_unless(&format!("{}{name}", self.name()), &self.stop) {
            Ok(object) => Ok(Some(Box::new(object))),
            Err(RemoteError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a new object: all of it or nothing. Returns false if an object of this name exists.
    ///
    /// # Errors
    /// [`Error::Remote`](crate::Error::Remote) if it cannot be written.
    pub fn put_new(&self, name: &str, bytes: Vec<u8>) -> Result<bool> {
        Ok(self.folder.put_new(name, bytes)?)
    }

    /// Removes an object, which need not exist.
    ///
    /// # Errors
    /// [`Error::Remote`](crate::Error::Remote) if it cannot be removed.
    pub fn remove(&self, name: &str) -> Result<()> {
        Ok(self.folder.remove(name)?)
    }
}
