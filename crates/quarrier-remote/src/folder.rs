//! Folders of buckets: lists their objects, and writes new ones.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use object_store::list::PaginatedListOptions;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutMode, PutOptions, PutPayload};
use tokio::time::timeout;

use crate::bucket::Bucket;
use crate::connector::{Connector, Retried};
use crate::error::{Error, Result};
use crate::link::no_byte;
use crate::location::{BucketPrefix, Store};
use crate::shared::Shared;
use crate::transport::innermost;

/// All objects of a bucket whose keys begin with a prefix, for instance `folder/`.
///
/// Like a source, it does not keep its [`Remote`](crate::Remote) alive.
#[derive(Clone)]
pub struct BucketFolder {
    shared: Arc<Shared>,
    bucket: Arc<Bucket>,
    name: Arc<str>,
    prefix: String,
}

impl fmt::Debug for BucketFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketFolder").field("name", &self.name).finish_non_exhaustive()
    }
}

/// An object of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedObject<'l> {
    /// The whole key.
    pub key: &'l str,
    /// The size in bytes.
    pub length: u64,
}

/// A page of a listing.
struct Page {
    objects: Vec<(Path, u64)>,
    next: Option<String>,
}

impl BucketFolder {
    pub(crate) fn open(shared: &Arc<Shared>, prefix: BucketPrefix) -> Result<Self> {
        let BucketPrefix { store, bucket, prefix, name } = prefix;
        if shared.options.offline {
            let reason = "buckets are neither listed nor written offline".to_string();
            return Err(Error::Unusable { source_name: name, reason });
        }
        let connector = Connector::new(shared.client.clone(), &shared.options);
        let bucket = Arc::new(Bucket::new(store, &bucket, &shared.options.s3, connector)?);
        Ok(BucketFolder { shared: Arc::clone(shared), bucket, name: name.into(), prefix })
    }

    /// Sets the name for errors and the log, for instance a glob that selects some of the objects.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// The URL with the prefix.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Passes on all objects whose keys begin with the prefix, in the order of the server, page by
    /// page; with `is_flat`, only those without a slash after the prefix. Gives up soon after `stop`
    /// becomes true.
    ///
    /// # Errors
    /// [`Error::NoBucket`], [`Error::NotListed`], [`Error::Unreachable`], [`Error::Gone`],
    /// [`Error::Unusable`] if the server's response is not a listing, [`Error::Setup`] without
    /// credentials, and [`Error::Closed`] if it gave up.
    pub fn list(
        &self,
        is_flat: bool,
        stop: &AtomicBool,
        take: &mut dyn FnMut(ListedObject<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut token: Option<String> = None;
        loop {
            let page = self.wait_for(self.page(is_flat, token.clone()), Some(stop))?;
            for (path, length) in &page.objects {
                let key = path.as_ref();
                // The key of a folder marker ends with a slash, which the client removes.
                if key.starts_with(&self.prefix)
                    && take(ListedObject { key, length: *length }).is_break()
                {
                    return Ok(());
                }
            }
            match page.next {
                None => return Ok(()),
                next if next == token => {
                    let reason = "the server sends the same page of objects again".to_string();
                    return Err(Error::Unusable { source_name: self.name.to_string(), reason });
                }
                next => token = next,
            }
        }
    }

    /// Requests a page.
    fn page(
        &self,
        is_flat: bool,
        page_token: Option<String>,
    ) -> impl Future<Output = Result<Page>> + Send + 'static {
        let folder = self.clone();
        async move {
            let mut options = PaginatedListOptions {
                delimiter: is_flat.then_some(Cow::Borrowed("/")),
                page_token,
                ..PaginatedListOptions::default()
            };
            options.extensions.insert(folder.retried(&folder.name));
            let mut prefix = folder.prefix.as_str();
            if folder.bucket.store == Store::Azure && !prefix.ends_with('/') {
                // The client leaves out an object of Azure whose key is the prefix.
                prefix = &prefix[..prefix.char_indices().last().map_or(0, |(at, _)| at)];
            }
            let prefix = Some(prefix).filter(|prefix| !prefix.is_empty());
            folder.bucket.find_credentials().await?;
            let listed = folder.bucket.objects.list_paginated(prefix, options).await;
            let listed = listed.map_err(|error| match error {
                object_store::Error::PermissionDenied { .. } => not_listed(&folder.name, 403),
                object_store::Error::Unauthenticated { .. } => not_listed(&folder.name, 401),
                error => error_of(&folder.name, &error),
            })?;
            let objects = listed.result.objects.into_iter();
            let objects = objects.map(|object| (object.location, object.size)).collect();
            Ok(Page { objects, next: listed.page_token.filter(|token| !token.is_empty()) })
        }
    }

    /// Writes a new object, named by the prefix and `name`: all of it or nothing. Returns false, and
    /// writes nothing, if an object of this name exists.
    ///
    /// # Errors
    /// Those of [`list`](Self::list), and [`Error::Denied`].
    pub fn put_new(&self, name: &str, bytes: Vec<u8>) -> Result<bool> {
        let (folder, path, shown) = self.object(name)?;
        let payload = PutPayload::from(Bytes::from(bytes));
        let put = async move {
            let mut options = PutOptions::from(PutMode::Create);
            options.extensions.insert(folder.retried(&shown));
            folder.bucket.find_credentials().await?;
            match folder.bucket.objects.put_opts(&path, payload, options).await {
                Ok(_) => Ok(true),
                // An attempt may have succeeded although its response was lost.
                Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
                Err(error) => Err(error_of(&shown, &error)),
            }
        };
        self.wait_for(put, None)
    }

    /// Removes the object named by the prefix and `name`, which need not exist.
    ///
    /// # Errors
    /// Those of [`put_new`](Self::put_new).
    pub fn remove(&self, name: &str) -> Result<()> {
        let (folder, path, shown) = self.object(name)?;
        let remove = async move {
            folder.bucket.find_credentials().await?;
            if folder.bucket.store == Store::Azure {
                return folder.remove_singly(&path, &shown).await;
            }
            match folder.bucket.objects.delete(&path).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(error_of(&shown, &error)),
            }
        };
        self.wait_for(remove, None)
    }

    /// Removes an object by a request of its own: the client would send a batch, which not every server
    /// accepts.
    async fn remove_singly(&self, path: &Path, name: &Arc<str>) -> Result<()> {
        let url = self.bucket.url_to_remove(path).await?;
        let source_name = || name.to_string();
        let time_max = self.shared.options.timeouts.progress;
        let unreachable = |reason| Error::Unreachable { source_name: source_name(), reason };
        let sent = timeout(time_max, self.shared.client.delete(url).send()).await;
        let sent = sent.map_err(|_| unreachable(no_byte(time_max)))?;
        let status = sent.map_err(|error| unreachable(innermost(&error)))?.status().as_u16();
        match status {
            200..=299 | 404 => Ok(()),
            401 | 403 => Err(Error::Denied { source_name: source_name(), status }),
            _ => Err(Error::Status { source_name: source_name(), status }),
        }
    }

    /// The key of an object, and its URL.
    fn object(&self, name: &str) -> Result<(BucketFolder, Path, Arc<str>)> {
        let shown = format!("{}{name}", self.name);
        let path = Path::parse(format!("{}{name}", self.prefix)).map_err(|error| {
            Error::BadUrl { source_name: shown.clone(), reason: error.to_string() }
        })?;
        Ok((self.clone(), path, shown.into()))
    }

    fn retried(&self, name: &Arc<str>) -> Retried {
        Retried {
            name: Arc::clone(name),
            retry: self.shared.options.retry.clone(),
            // For Azure, it means that the object exists.
            is_conflict_temporary: self.bucket.store == Store::S3,
        }
    }

    /// Runs a request within the limit of concurrent ones, and waits for its result.
    fn wait_for<T: Send + 'static>(
        &self,
        request: impl Future<Output = Result<T>> + Send + 'static,
        stop: Option<&AtomicBool>,
    ) -> Result<T> {
        let shared = Arc::clone(&self.shared);
        let limited = async move {
            // The semaphore is never closed.
            let _permit = shared.permits.acquire().await.ok();
            request.await
        };
        let closed = || Err(Error::Closed { source_name: self.name.to_string() });
        self.shared.wait_for(limited, stop).unwrap_or_else(closed)
    }
}

fn not_listed(name: &Arc<str>, status: u16) -> Error {
    Error::NotListed { source_name: name.to_string(), status }
}

/// The error for a failed request.
fn error_of(name: &Arc<str>, error: &object_store::Error) -> Error {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = next {
        if let Some(own) = inner.downcast_ref::<Error>() {
            return own.clone();
        }
        next = inner.source();
    }
    let source_name = name.to_string();
    match error {
        object_store::Error::NotFound { .. } => Error::NoBucket { source_name },
        object_store::Error::PermissionDenied { .. } => Error::Denied { source_name, status: 403 },
        object_store::Error::Unauthenticated { .. } => Error::Denied { source_name, status: 401 },
        error => Error::Unusable { source_name, reason: innermost(error) },
    }
}
