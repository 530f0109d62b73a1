//! Objects in buckets: S3 and compatible stores, Google Cloud Storage, Azure Blob Storage.
//! `object_store` finds the credentials and signs.
//!
//! Objects are requested by signed URLs, so ranges, retries and checks are the same as for any
//! other HTTP server. A URL is signed for an hour and used for a quarter of an hour.

use std::str::FromStr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::path::Path;
use object_store::signer::Signer;
use object_store::{ClientOptions, RetryConfig};
use quarrier_core::sync::lock;
use reqwest::Method;
use url::Url;

use crate::error::{Error, Result};
use crate::location::{Place, Store};
use crate::transport::{Connector, innermost};

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

impl Signing {
    /// Sets up an object with the settings of [`Options::s3`](crate::Options::s3).
    pub(crate) fn new(
        store: Store,
        bucket: &str,
        key: &str,
        settings: &[(String, String)],
        client: reqwest::Client,
    ) -> Result<Self> {
        let setup = |reason: String| Error::Setup { reason: format!("{}: {reason}", store.name()) };
        let path = Path::parse(key).map_err(|error| setup(error.to_string()))?;
        let way = match store {
            Store::S3 => amazon(bucket, settings, client),
            Store::Google => google(bucket, key, settings, client),
            Store::Azure => azure(bucket, settings, client),
        };
        let way = way.map_err(|error| setup(innermost(&error)))?;
        Ok(Signing { way, key: path, store, signed: Mutex::new(None) })
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
        let (signer, is_stripped) = match &self.way {
            Way::Plain(url) => return Ok(url.clone()),
            Way::Signed(signer) => (signer, false),
            Way::Stripped(signer) => (signer, true),
        };
        let signed = signer.signed_url(Method::GET, &self.key, SIGNED_FOR).await;
        let mut url = signed.map_err(|error| Error::Setup {
            reason: format!(
                "{}: no credentials ({}); {}",
                self.store.name(),
                innermost(&error),
                self.store.advice()
            ),
        })?;
        if is_stripped {
            url.set_query(None);
        }
        *self.last() = Some((since, url.clone()));
        Ok(url)
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Option<(Instant, Url)>> {
        lock(&self.signed)
    }
}

type Built = std::result::Result<Way, object_store::Error>;

fn amazon(bucket: &str, settings: &[(String, String)], client: reqwest::Client) -> Built {
    let mut builder = AmazonS3Builder::new();
    for (name, value) in known::<AmazonS3ConfigKey>(settings) {
        builder = builder.with_config(name, value);
    }
    let is_anonymous = is_true(builder.get_config_value(&AmazonS3ConfigKey::SkipSignature));
    if is_anonymous {
        builder = builder.with_access_key_id("-").with_secret_access_key("-");
    }
    let store = builder
        .with_bucket_name(bucket)
        .with_allow_http(true)
        .with_retry(retry())
        .with_http_connector(Connector(client))
        .build()?;
    Ok(if is_anonymous { Way::Stripped(Box::new(store)) } else { Way::Signed(Box::new(store)) })
}

fn google(
    bucket: &str,
    key: &str,
    settings: &[(String, String)],
    client: reqwest::Client,
) -> Built {
    let mut builder = GoogleCloudStorageBuilder::new();
    for (name, value) in known::<GoogleConfigKey>(settings) {
        builder = builder.with_config(name, value);
    }
    if is_true(builder.get_config_value(&GoogleConfigKey::SkipSignature)) {
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
    let store = builder
        .with_bucket_name(bucket)
        .with_client_options(ClientOptions::new().with_allow_http(true))
        .with_retry(retry())
        .with_http_connector(Connector(client))
        .build()?;
    Ok(Way::Signed(Box::new(store)))
}

fn azure(container: &str, settings: &[(String, String)], client: reqwest::Client) -> Built {
    let mut builder = MicrosoftAzureBuilder::new();
    for (name, value) in known::<AzureConfigKey>(settings) {
        builder = builder.with_config(name, value);
    }
    let is_anonymous = is_true(builder.get_config_value(&AzureConfigKey::SkipSignature));
    if is_anonymous {
        builder =
            builder.with_config(AzureConfigKey::SkipSignature, "false").with_access_key("LQ==");
    }
    let store = builder
        .with_container_name(container)
        .with_allow_http(true)
        .with_retry(retry())
        .with_http_connector(Connector(client))
        .build()?;
    Ok(if is_anonymous { Way::Stripped(Box::new(store)) } else { Way::Signed(Box::new(store)) })
}
