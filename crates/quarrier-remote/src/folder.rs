//! Folders of buckets: lists their objects, and writes new ones.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use object_store::client::HttpRequestBody;
use object_store::list::PaginatedListOptions;
use object_store::{PutMode, PutOptions, PutPayload};
use reqwest::Method;
use reqwest::header::HeaderMap;

use crate::bucket::{Bucket, Signing, path_of};
use crate::connector::{Answered, Asked, Connector, Purpose, Sent};
use crate::error::{Error, Result};
use crate::listing::{self, ListedObject, Page, Progress};
use crate::location::BucketPrefix;
use crate::shared::Shared;

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

impl BucketFolder {
    pub(crate) fn open(shared: &Arc<Shared>, prefix: BucketPrefix) -> Result<Self> {
        let BucketPrefix { store, bucket, prefix, name } = prefix;
        if shared.options.offline {
            let reason = "buckets are neither listed nor written offline".to_string();
            return Err(Error::Unusable { source_name: name, reason });
        }
        let connector = Connector::new(shared.client.clone(), &shared.options);
        let settings = shared.options.settings(store)?;
        let bucket = Arc::new(Bucket::new(store, &bucket, &settings, connector)?);
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
    /// becomes true. The server chooses the keys: they may have any characters.
    ///
    /// # Errors
    /// [`Error::NoBucket`], [`Error::NotListed`], [`Error::Unreachable`], [`Error::Gone`],
    /// [`Error::Unusable`] if the server's response is not a listing or never ends, [`Error::Setup`]
    /// without credentials, and [`Error::Closed`] if it gave up.
    pub fn list(
        &self,
        is_flat: bool,
        stop: &AtomicBool,
        take: &mut dyn FnMut(ListedObject<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let (mut mark, mut progress): (Option<String>, _) = (None, Progress::default());
        let mut take = |object: ListedObject<'_>| match object.key.strip_prefix(&self.prefix) {
            Some(rest) if !is_flat || !rest.contains('/') => take(object),
            // Not every server knows prefixes and delimiters.
            _ => ControlFlow::Continue(()),
        };
        loop {
            let page = self.wait_for(self.page(is_flat, mark), Some(stop))?;
            let unusable = |reason: &str| self.unusable(reason);
            match listing::parse(&page, &mut take).map_err(unusable)? {
                Page::Stopped | Page::Complete { next: None, .. } => return Ok(()),
                Page::Complete { entries, next: Some(next) } => {
                    progress.page(entries, &next).map_err(unusable)?;
                    mark = Some(next);
                }
            }
            // A server that responds at once leaves no time to look while waiting.
            if stop.load(Ordering::Relaxed) || self.shared.is_closed() {
                return Err(Error::Closed { source_name: self.name.to_string() });
            }
        }
    }

    /// Requests a page.
    fn page(
        &self,
        is_flat: bool,
        page_token: Option<String>,
    ) -> impl Future<Output = Result<Bytes>> + Send + 'static {
        let folder = self.clone();
        async move {
            let asked = folder.asked(&folder.name, Purpose::List);
            let mut options = PaginatedListOptions {
                delimiter: is_flat.then_some(Cow::Borrowed("/")),
                page_token,
                ..PaginatedListOptions::default()
            };
            options.extensions.insert(asked.clone());
            let prefix = Some(folder.prefix.as_str()).filter(|prefix| !prefix.is_empty());
            folder.bucket.find_credentials().await?;
            let listed = folder.bucket.objects.list_paginated(prefix, options).await;
            match folder.answered(&asked, listed)? {
                Answered::Done(page) => Ok(page),
                Answered::Exists => Err(folder.unusable("the server's response is no listing")),
            }
        }
    }

    /// Writes a new object, named by the prefix and `name`: all of it or nothing. Returns false, and
    /// writes nothing, if an object of this name exists.
    ///
    /// # Errors
    /// Those of [`list`](Self::list), and [`Error::Denied`].
    pub fn put_new(&self, name: &str, bytes: Vec<u8>) -> Result<bool> {
        let shown = self.object(name);
        let path = path_of(&shown, &format!("{}{name}", self.prefix))?;
        let (folder, payload) = (self.clone(), PutPayload::from(Bytes::from(bytes)));
        let put = async move {
            let asked = folder.asked(&shown, Purpose::PutNew);
            let mut options = PutOptions::from(PutMode::Create);
            options.extensions.insert(asked.clone());
            folder.bucket.find_credentials().await?;
            let put = folder.bucket.objects.put_opts(&path, payload, options).await;
            // An attempt may have succeeded although its response was lost: then the object exists.
            Ok(folder.answered(&asked, put)? != Answered::Exists)
        };
        self.wait_for(put, None)
    }

    /// Removes the object named by the prefix and `name`, which need not exist.
    ///
    /// # Errors
    /// Those of [`put_new`](Self::put_new).
    pub fn remove(&self, name: &str) -> Result<()> {
        let (folder, shown) = (self.clone(), self.object(name));
        let path = path_of(&shown, &format!("{}{name}", self.prefix))?;
        let options = &self.shared.options;
        let connector = Connector::new(self.shared.client.clone(), options);
        let signing = Signing::new(
            self.bucket.store,
            (self.bucket.name.as_str(), path),
            &options.settings(self.bucket.store)?,
            connector.clone(),
        )?;
        let remove = async move {
            let url = signing.sign(Method::DELETE).await?.into();
            let (headers, body) = (HeaderMap::new(), HttpRequestBody::empty());
            let sent = Sent { method: Method::DELETE, url, headers, body };
            let asked = folder.asked(&shown, Purpose::Remove);
            connector.ask(&sent, &asked).await.map(drop)
        };
        self.wait_for(remove, None)
    }

    /// The URL of an object.
    fn object(&self, name: &str) -> Arc<str> {
        format!("{}{name}", self.name).into()
    }

    fn asked(&self, name: &Arc<str>, purpose: Purpose) -> Asked {
        Asked::new(name, self.bucket.store, purpose, &self.shared)
    }

    /// The response to a request that `object_store` signed.
    fn answered<T>(&self, asked: &Asked, sent: object_store::Result<T>) -> Result<Answered> {
        match (asked.take(), sent) {
            // What `object_store` makes of the response does not matter.
            (Some(answered), _) => Ok(answered),
            (None, Err(error)) => Err(self.bucket.error_of(&error)),
            (None, Ok(_)) => Err(self.unusable("no request was made")),
        }
    }

    fn unusable(&self, reason: &str) -> Error {
        let reason = format!("{reason}; check {}", self.bucket.store.place_settings());
        Error::Unusable { source_name: self.name.to_string(), reason }
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
