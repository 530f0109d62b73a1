//! S3 and what is compatible with it: `object_store` finds the credentials and signs.
//!
//! An object is asked for by a signed URL, so that ranges, retries and checks are those of any
//! other HTTP server. A URL is signed for an hour and used for a quarter of one.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use object_store::RetryConfig;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::signer::Signer;
use quarrier_core::sync::lock;
use reqwest::Method;
use url::Url;

use crate::error::{Error, Result};
use crate::location::Place;
use crate::transport::{Connector, innermost};

const SIGNED_FOR: Duration = Duration::from_secs(3600);
const USED_FOR: Duration = Duration::from_secs(900);

/// `identity` with the store's own address, for two stores may have buckets of one name.
pub(crate) fn identity(identity: &str, place: &Place, settings: &[(String, String)]) -> String {
    let mut identity = identity.to_string();
    if matches!(place, Place::S3 { .. }) {
        let endpoints = settings.iter().filter(|(name, _)| {
            let name = name.to_ascii_lowercase();
            name.contains("endpoint") && !name.contains("sts") && !name.contains("metadata")
        });
        for (_, endpoint) in endpoints {
            identity.push('\n');
            identity.push_str(endpoint);
        }
    }
    identity
}

/// An object of a bucket.
#[derive(Debug)]
pub(crate) struct Signing {
    store: AmazonS3,
    key: Path,
    is_anonymous: bool,
    signed: Mutex<Option<(Instant, Url)>>,
}

impl Signing {
    /// An object with the settings of [`Options::s3`](crate::Options::s3).
    pub(crate) fn new(
        bucket: &str,
        key: &str,
        settings: &[(String, String)],
        client: reqwest::Client,
    ) -> Result<Self> {
        let setup = |reason: String| Error::Setup { reason: format!("S3: {reason}") };
        let key = Path::parse(key).map_err(|error| setup(error.to_string()))?;
        let mut builder = AmazonS3Builder::new();
        for (name, value) in settings {
            // What other programs of AWS read is of no concern here.
            if let Ok(known) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() {
                builder = builder.with_config(known, value);
            }
        }
        let is_anonymous = builder
            .get_config_value(&AmazonS3ConfigKey::SkipSignature)
            .is_some_and(|value| matches!(value.to_ascii_lowercase().as_str(), "true" | "1"));
        if is_anonymous {
            // Signed all the same, to learn the URL; the signature is then taken off.
            builder = builder.with_access_key_id("-").with_secret_access_key("-");
        }
        let retry = RetryConfig {
            max_retries: 2,
            retry_timeout: Duration::from_secs(10),
            ..RetryConfig::default()
        };
        let store = builder
            .with_bucket_name(bucket)
            .with_allow_http(true)
            .with_retry(retry)
            .with_http_connector(Connector(client))
            .build()
            .map_err(|error| setup(innermost(&error)))?;
        Ok(Signing { store, key, is_anonymous, signed: Mutex::new(None) })
    }

    /// The URL to ask for; a new one where the last is old or `is_refused`.
    pub(crate) async fn url(&self, is_refused: bool) -> Result<Url> {
        if let Some((since, url)) = &*self.last()
            && since.elapsed() < USED_FOR
            && !is_refused
        {
            return Ok(url.clone());
        }
        let since = Instant::now();
        let signed = self.store.signed_url(Method::GET, &self.key, SIGNED_FOR).await;
        let mut url = signed.map_err(|error| Error::Setup {
            reason: format!(
                "S3: no credentials ({}); set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or \
                 AWS_SKIP_SIGNATURE=true for a public bucket",
                innermost(&error)
            ),
        })?;
        if self.is_anonymous {
            url.set_query(None);
        }
        *self.last() = Some((since, url.clone()));
        Ok(url)
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Option<(Instant, Url)>> {
        lock(&self.signed)
    }
}
