//! Objects in buckets: S3 and compatible stores, Google Cloud Storage, Azure Blob Storage.
//! `object_store` finds the credentials and signs.
//!
//! Objects are requested by signed URLs, so ranges, retries and checks are the same as for any
//! other HTTP server. A URL is signed for an hour and used for a quarter of an hour.

use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::client::{HttpError, HttpErrorKind};
use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::list::PaginatedListStore;
use object_store::path::Path;
use object_store::signer::Signer;
use object_store::{ClientOptions, ObjectStore, RetryConfig};
use quarrier_core::sync::lock;
use reqwest::Method;
use url::Url;

use crate::connector::Connector;
use crate::error::{Error, Result};
use crate::location::{KEY_BYTES_MAX, Place, Store};
use crate::transport::innermost;

const SIGNED_FOR: Duration = Duration::from_secs(3600);
const USED_FOR: Duration = Duration::from_secs(900);
const GOOGLE_URL: &str = "https://storage.googleapis.com";

/// Adds the store's address to `identity`, since two stores may have buckets of the same name.
pub(crate) fn identity(identity: &str, place: &Place, settings: &[(String, String)]) -> String {
    let mut identity = identity.to_string();
    if matches!(place, Place::Bucket { .. }) {
        let endpoints = settings.iter().filter(|(name, _)| {
            let name = name.to_ascii_lowercase();
            let is_address = ["endpoint", "base_url", "account_name"];
            is_address.iter().any(|part| name.contains(part))
                && !name.contains("sts")
                && !name.contains("metadata")
        });
        for (_, endpoint) in endpoints {
            identity.push('\n');
            identity.push_str(endpoint);
        }
    }
    identity
}

/// An object in a bucket.
#[derive(Debug)]
pub(crate) struct Signing {
    way: Way,
    key: Path,
    store: Store,
    signed: Mutex<Option<(Instant, Url)>>,
}

#[derive(Debug)]
enum Way {
    Signed(Box<dyn Signer>),
    /// Signed only to learn the URL; the signature is then removed.
    Stripped(Box<dyn Signer>),
    Plain(Url),
}

/// Selects the settings that a store understands.
fn known<'s, K: FromStr + 's>(
    settings: &'s [(String, String)],
) -> impl Iterator<Item = (K, &'s str)> + 's {
    settings.iter().filter_map(|(name, value)| {
        name.to_ascii_lowercase().parse().ok().map(|known| (known, value.as_str()))
    })
}

fn is_true(value: Option<String>) -> bool {
    value.is_some_and(|value| matches!(value.to_ascii_lowercase().as_str(), "true" | "1"))
}

fn retry() -> RetryConfig {
    RetryConfig { max_retries: 2, retry_timeout: Duration::from_secs(10), ..RetryConfig::default() }
}

/// The key of an object as `object_store` represents it, which changes some keys and refuses others.
pub(crate) fn path_of(name: &str, key: &str) -> Result<Path> {
    let path = Path::parse(key).ok().filter(|path| path.as_ref() == key);
    path.filter(|_| key.len() <= KEY_BYTES_MAX).ok_or_else(|| Error::BadUrl {
        source_name: name.to_string(),
        reason:
            "the key has an empty part, a part '.' or '..', a control character, or a slash at an \
                 end, and cannot be requested; copy the object to another key"
                .to_string(),
    })
}

impl Signing {
    /// Sets up an object, given by the names of its bucket and itself, with the settings of
    /// [`Options::s3`](crate::Options::s3).
    pub(crate) fn new(
        store: Store,
        (bucket, key): (&str, Path),
        settings: &[(String, String)],
        connector: Connector,
    ) -> Result<Self> {
        let way = match store {
            Store::S3 => amazon(bucket, settings, connector),
            Store::Google => google(bucket, key.as_ref(), settings, connector),
            Store::Azure => azure(bucket, settings, connector),
        };
        let way = way.map_err(|error| setup(store, &innermost(&error)))?;
        Ok(Signing { way, key, store, signed: Mutex::new(None) })
    }

    /// The URL to request; a new one if the last one is old or `is_refused`.
    pub(crate) async fn url(&self, is_refused: bool) -> Result<Url> {
        if let Some((since, url)) = &*self.last()
            && since.elapsed() < USED_FOR
            && !is_refused
        {
            return Ok(url.clone());
        }
        let since = Instant::now();
        let url = self.sign(Method::GET).await?;
        *self.last() = Some((since, url.clone()));
        Ok(url)
    }

    /// A new URL for requests of another method.
    pub(crate) async fn sign(&self, method: Method) -> Result<Url> {
        let (signer, is_stripped) = match &self.way {
            Way::Plain(url) => return Ok(url.clone()),
            Way::Signed(signer) => (signer, false),
            Way::Stripped(signer) => (signer, true),
        };
        let signed = signer.signed_url(method, &self.key, SIGNED_FOR).await;
        let mut url = signed.map_err(|error| no_credentials(self.store, &error))?;
        if is_stripped {
            url.set_query(None);
        }
        Ok(url)
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Option<(Instant, Url)>> {
        lock(&self.signed)
    }
}

type Built = std::result::Result<Way, object_store::Error>;

fn amazon(bucket: &str, settings: &[(String, String)], connector: Connector) -> Built {
    let (mut builder, is_anonymous) = amazon_builder(bucket, settings, connector);
    if is_anonymous {
        builder = builder.with_access_key_id("-").with_secret_access_key("-");
    }
    let store = builder.build()?;
    Ok(if is_anonymous { Way::Stripped(Box::new(store)) } else { Way::Signed(Box::new(store)) })
}

fn google(bucket: &str, key: &str, settings: &[(String, String)], connector: Connector) -> Built {
    let (builder, is_anonymous) = google_builder(bucket, settings, connector);
    if is_anonymous {
        let base = builder.get_config_value(&GoogleConfigKey::BaseUrl);
        let base = base.as_deref().unwrap_or(GOOGLE_URL);
        let wrong =
            |source: String| object_store::Error::Generic { store: "GCS", source: source.into() };
        let mut url = Url::parse(base).map_err(|error| wrong(format!("{base}: {error}")))?;
        match url.path_segments_mut() {
            Ok(mut segments) => {
                segments.pop_if_empty().push(bucket).extend(key.split('/'));
            }
            Err(()) => return Err(wrong(format!("{base} cannot be the base of a URL"))),
        }
        return Ok(Way::Plain(url));
    }
    Ok(Way::Signed(Box::new(builder.build()?)))
}

fn azure(container: &str, settings: &[(String, String)], connector: Connector) -> Built {
    let (mut builder, is_anonymous) = azure_builder(container, settings, connector);
    if is_anonymous {
        builder =
            builder.with_config(AzureConfigKey::SkipSignature, "false").with_access_key("LQ==");
    }
    let store = builder.build()?;
    Ok(if is_anonymous { Way::Stripped(Box::new(store)) } else { Way::Signed(Box::new(store)) })
}

/// The builder for a bucket of S3, and whether its requests are not signed.
fn amazon_builder(
    bucket: &str,
    settings: &[(String, String)],
    connector: Connector,
) -> (AmazonS3Builder, bool) {
    let mut builder = AmazonS3Builder::new();
    for (name, value) in known::<AmazonS3ConfigKey>(settings) {
        builder = builder.with_config(name, value);
    }
    let is_anonymous = is_true(builder.get_config_value(&AmazonS3ConfigKey::SkipSignature));
    let builder = builder
        .with_bucket_name(bucket)
        .with_allow_http(true)
        .with_retry(retry())
        .with_http_connector(connector);
    (builder, is_anonymous)
}

/// The builder for a bucket of Google, and whether its requests are not signed.
fn google_builder(
    bucket: &str,
    settings: &[(String, String)],
    connector: Connector,
) -> (GoogleCloudStorageBuilder, bool) {
    let mut builder = GoogleCloudStorageBuilder::new();
    for (name, value) in known::<GoogleConfigKey>(settings) {
        builder = builder.with_config(name, value);
    }
    let is_anonymous = is_true(builder.get_config_value(&GoogleConfigKey::SkipSignature));
    let builder = builder
        .with_bucket_name(bucket)
        .with_client_options(ClientOptions::new().with_allow_http(true))
        .with_retry(retry())
        .with_http_connector(connector);
    (builder, is_anonymous)
}

/// The builder for a container of Azure, and whether its requests are not signed.
fn azure_builder(
    container: &str,
    settings: &[(String, String)],
    connector: Connector,
) -> (MicrosoftAzureBuilder, bool) {
    let mut builder = MicrosoftAzureBuilder::new();
    for (name, value) in known::<AzureConfigKey>(settings) {
        builder = builder.with_config(name, value);
    }
    let is_anonymous = is_true(builder.get_config_value(&AzureConfigKey::SkipSignature));
    let builder = builder
        .with_container_name(container)
        .with_allow_http(true)
        .with_retry(retry())
        .with_http_connector(connector);
    (builder, is_anonymous)
}

/// What a client of a bucket can do.
pub(crate) trait Objects: ObjectStore + PaginatedListStore + Signer {}

impl<T: ObjectStore + PaginatedListStore + Signer> Objects for T {}

/// A bucket whose objects can be listed and written.
#[derive(Debug)]
pub(crate) struct Bucket {
    pub(crate) store: Store,
    pub(crate) name: String,
    pub(crate) objects: Box<dyn Objects>,
    /// For a public bucket, an object that need not exist.
    probe: Option<Signing>,
    is_checked: AtomicBool,
}

impl Bucket {
    /// Sets up a bucket with the settings of [`Options::s3`](crate::Options::s3).
    pub(crate) fn new(
        store: Store,
        bucket: &str,
        settings: &[(String, String)],
        connector: Connector,
    ) -> Result<Self> {
        type Opened = std::result::Result<(Box<dyn Objects>, bool), object_store::Error>;
        refuse_invalid_settings(store, settings)?;
        let open = |connector: Connector| -> Opened {
            Ok(match store {
                Store::S3 => {
                    let (builder, is_anonymous) = amazon_builder(bucket, settings, connector);
                    (Box::new(builder.build()?), is_anonymous)
                }
                Store::Google => {
                    let (store, is_anonymous) = google_writer(bucket, settings, connector)?;
                    (Box::new(store), is_anonymous)
                }
                Store::Azure => {
                    let (builder, is_anonymous) = azure_builder(bucket, settings, connector);
                    (Box::new(builder.build()?), is_anonymous)
                }
            })
        };
        let opened = open(connector.clone());
        let (objects, is_anonymous) = opened.map_err(|error| setup(store, &innermost(&error)))?;
        let key = Path::from("x");
        let probe = match is_anonymous {
            true => Some(Signing::new(store, (bucket, key), settings, connector)?),
            false => None,
        };
        let name = bucket.to_string();
        Ok(Bucket { store, name, objects, probe, is_checked: AtomicBool::new(false) })
    }

    /// Finds credentials, and makes a URL. `object_store` panics in other requests if it is invalid.
    pub(crate) async fn find_credentials(&self) -> Result<()> {
        if self.is_checked.load(Ordering::Relaxed) {
            return Ok(());
        }
        match &self.probe {
            Some(probe) => drop(probe.sign(Method::GET).await?),
            None => {
                let key = Path::from("x");
                let signed = self.objects.signed_url(Method::GET, &key, SIGNED_FOR).await;
                signed.map_err(|error| no_credentials(self.store, &error))?;
            }
        }
        self.is_checked.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// The error for a request without a response: our own, or that of credentials.
    pub(crate) fn error_of(&self, error: &object_store::Error) -> Error {
        let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(inner) = next {
            if let Some(own) = inner.downcast_ref::<Error>() {
                return own.clone();
            }
            next = inner.source();
        }
        match error {
            // A setting, such as AWS_CONDITIONAL_PUT.
            object_store::Error::NotImplemented { .. }
            | object_store::Error::NotSupported { .. } => setup(self.store, &innermost(error)),
            error => no_credentials(self.store, error),
        }
    }
}

/// A bucket of Google to list and to write. Although signatures are to be skipped, `object_store` requests
/// credentials from the metadata server of the cloud before it writes, unless it has some.
fn google_writer(
    bucket: &str,
    settings: &[(String, String)],
    connector: Connector,
) -> std::result::Result<(GoogleCloudStorage, bool), object_store::Error> {
    let (mut builder, is_anonymous) = google_builder(bucket, settings, connector.clone());
    if is_anonymous {
        builder = builder.with_bearer_token("-").with_http_connector(connector.anonymous());
    }
    Ok((builder.build()?, is_anonymous))
}

/// Refuses addresses and regions that make no URL.
fn refuse_invalid_settings(store: Store, settings: &[(String, String)]) -> Result<()> {
    let others = match store {
        Store::S3 => ["google_", "azure_"],
        Store::Google => ["aws_", "azure_"],
        Store::Azure => ["aws_", "google_"],
    };
    let is_part_of_url = |name: &str| {
        let name = name.to_ascii_lowercase();
        let parts = ["endpoint", "base_url", "account_name", "region"];
        !others.iter().any(|other| name.starts_with(other))
            && parts.iter().any(|part| name.contains(part))
    };
    let is_valid = |value: &str| value.bytes().all(|byte| byte.is_ascii_graphic());
    let wrong = settings.iter().find(|(name, value)| is_part_of_url(name) && !is_valid(value));
    match wrong {
        Some((name, _)) => Err(setup(store, &format!("{name} has characters that no URL has"))),
        None => Ok(()),
    }
}

fn setup(store: Store, reason: &str) -> Error {
    Error::Setup { reason: format!("{}: {reason}", store.name()) }
}

fn no_credentials(store: Store, error: &object_store::Error) -> Error {
    setup(store, &format!("no credentials ({}); {}", shown(error), store.advice()))
}

/// The innermost error of a request for credentials, unless it may show a part of the response.
fn shown(error: &object_store::Error) -> String {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = next {
        if let Some(http) = inner.downcast_ref::<HttpError>()
            && http.kind() == HttpErrorKind::Decode
        {
            return "the response does not have them".to_string();
        }
        next = inner.source();
    }
    innermost(error)
}
