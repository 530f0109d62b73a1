//! All options, with their defaults.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use quarrier_sparse::CostModel;

use crate::credentials::{Credentials, Header};
use crate::error::{Error, Result};
use crate::location::Store;

/// The options of a [`Remote`](crate::Remote). `Debug` hides their secrets.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// Maximum number of concurrent requests for all sources together. Default 8; 0 also means 8.
    pub requests_max: usize,
    /// Maximum number of bytes held in memory for all sources together; the least recently used are
    /// evicted. Default 256 MiB.
    pub memory_bytes_max: u64,
    /// If a server ignores ranges, objects of up to this many bytes are downloaded as a whole when
    /// opened. Default 16 MiB.
    pub whole_bytes_max: u64,
    /// Maximum size of a request. Default 8 MiB.
    pub request_bytes_max: u64,
    /// The cost of requests, by which ranges are merged. Default: `None`, to learn it from
    /// requests.
    pub cost: Option<CostModel>,
    /// Whether to fetch more than requested if it will probably be read. Default true.
    pub read_ahead: bool,
    /// Maximum number of bytes to fetch ahead of a sequential reader; limited to a quarter of
    /// `memory_bytes_max`. Default 32 MiB.
    pub ahead_bytes_max: u64,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// The retry policy.
    pub retry: Retry,
    /// Settings for `s3://`, `gs://` and `az://`, named like the usual environment variables
    /// (`AWS_REGION`, `AWS_ACCESS_KEY_ID`, `GOOGLE_SERVICE_ACCOUNT`, `AZURE_STORAGE_ACCOUNT_NAME`,
    /// …; case-insensitive). This crate does not read the environment.
    pub s3: Vec<(String, String)>,
    /// Finds settings for `s3://` and logins of hosts when they are needed. Default: none.
    pub credentials: Option<Arc<dyn Credentials>>,
    /// Header fields for requests of `http://` and `https://` URLs. A redirect to another scheme, host or
    /// port does not get them.
    pub headers: Vec<Header>,
    /// Proxies.
    pub proxy: Proxy,
    /// A cache on disk, shared with other processes. Default: none.
    pub cache: Option<CacheOptions>,
    /// Makes no requests: objects are opened in the most recently used version, and read from the
    /// cache on disk. Ranges that are not cached return an error. Default false.
    pub offline: bool,
    /// Reads end with [`Error::Closed`](crate::Error::Closed) within a tenth of a second after
    /// this becomes true.
    pub stop: Option<Arc<AtomicBool>>,
}

/// The default number of concurrent requests.
const REQUESTS: usize = 8;

impl Options {
    /// The maximum number of concurrent requests.
    pub(crate) fn requests(&self) -> usize {
        if self.requests_max == 0 { REQUESTS } else { self.requests_max }
    }

    /// The settings for buckets of a store.
    pub(crate) fn settings(&self, store: Store) -> Result<Cow<'_, [(String, String)]>> {
        match &self.credentials {
            Some(credentials) if store == Store::S3 => {
                let mut given = self.s3.clone();
                if self.offline {
                    // The address tells buckets of a name apart; no keys are needed.
                    given.insert(0, ("AWS_SKIP_SIGNATURE".to_string(), "true".to_string()));
                }
                let found = credentials.s3_settings(&given);
                found.map(Cow::Owned).map_err(|reason| Error::Setup { reason })
            }
            _ => Ok(Cow::Borrowed(&self.s3)),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            requests_max: REQUESTS,
            memory_bytes_max: 256 << 20,
            whole_bytes_max: 16 << 20,
            request_bytes_max: 8 << 20,
            cost: None,
            read_ahead: true,
            ahead_bytes_max: 32 << 20,
            timeouts: Timeouts::default(),
            retry: Retry::default(),
            s3: Vec::new(),
            credentials: None,
            headers: Vec::new(),
            proxy: Proxy::default(),
            cache: None,
            offline: false,
            stop: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings: Vec<&str> = self.s3.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Options")
            .field("requests_max", &self.requests_max)
            .field("memory_bytes_max", &self.memory_bytes_max)
            .field("whole_bytes_max", &self.whole_bytes_max)
            .field("request_bytes_max", &self.request_bytes_max)
            .field("cost", &self.cost)
            .field("read_ahead", &self.read_ahead)
            .field("ahead_bytes_max", &self.ahead_bytes_max)
            .field("timeouts", &self.timeouts)
            .field("retry", &self.retry)
            .field("s3", &settings)
            .field("credentials", &self.credentials)
            .field("headers", &self.headers)
            .field("proxy", &self.proxy)
            .field("cache", &self.cache)
            .field("offline", &self.offline)
            .field("stop", &self.stop)
            .finish()
    }
}

/// Timeouts.
#[derive(Debug, Clone)]
pub struct Timeouts {
    /// Timeout for name resolution and connecting. Default 10 s.
    pub connect: Duration,
    /// Timeout for the next byte. Default 10 s.
    pub progress: Duration,
    /// Minimum transfer rate of a body, below which it is given up after
    /// [`slow_for`](Timeouts::slow_for). Default 1 KiB/s.
    pub bytes_per_second_min: u64,
    /// How long a body may be slower than [`bytes_per_second_min`](Timeouts::bytes_per_second_min).
    /// Default 20 s.
    pub slow_for: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            connect: Duration::from_secs(10),
            progress: Duration::from_secs(10),
            bytes_per_second_min: 1024,
            slow_for: Duration::from_secs(20),
        }
    }
}

/// The retry policy: how often to retry, and after which delay.
#[derive(Debug, Clone)]
pub struct Retry {
    /// Consecutive attempts without a new byte before a range is given up; at least 1. Default 6.
    pub attempts_max: u32,
    /// Time without a new byte after which no further attempt is made. Default 25 s.
    pub fruitless_time_max: Duration,
    /// Delay before the second attempt; it doubles with each further one, and a random part of up
    /// to half is subtracted. Default 100 ms.
    pub delay: Duration,
    /// Maximum delay, even if the server requests a longer one (Retry-After). Default 10 s.
    pub delay_max: Duration,
    /// Number of consecutive failed ranges after which the server is considered gone. After a
    /// failed range, the next one is tried only once. Default 16.
    pub failed_ranges_max: u32,
}

impl Default for Retry {
    fn default() -> Self {
        Retry {
            attempts_max: 6,
            fruitless_time_max: Duration::from_secs(25),
            delay: Duration::from_millis(100),
            delay_max: Duration::from_secs(10),
            failed_ranges_max: 16,
        }
    }
}

/// Proxies, in the format of `http_proxy`, `https_proxy` and `no_proxy`. `Debug` hides their URLs, which
/// may have passwords.
#[derive(Clone, Default)]
pub struct Proxy {
    /// For `http://`.
    pub http: Option<String>,
    /// For `https://`.
    pub https: Option<String>,
    /// Hosts that bypass the proxy, separated by commas.
    pub except: Option<String>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("http", &self.http.is_some())
            .field("https", &self.https.is_some())
            .field("except", &self.except)
            .finish()
    }
}

impl Proxy {
    /// Reads proxy settings from environment variables like curl: `http_proxy` only in lower case,
    /// because web servers set `HTTP_PROXY` from a client's header.
    pub fn of(environment: &[(String, String)]) -> Self {
        let value = |name: &str| {
            let set = environment.iter().find(|(key, value)| key == name && !value.is_empty());
            set.map(|(_, value)| value.clone())
        };
        let first = |names: &[&str]| names.iter().find_map(|name| value(name));
        Proxy {
            http: first(&["http_proxy", "all_proxy", "ALL_PROXY"]),
            https: first(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
            except: first(&["no_proxy", "NO_PROXY"]),
        }
    }
}

impl Options {
    /// Options with the proxies and bucket settings of these environment variables, which the
    /// caller reads.
    pub fn of_environment(environment: &[(String, String)]) -> Self {
        let is_store = |(name, value): &&(String, String)| of_store(name) && !value.is_empty();
        let s3 = environment.iter().filter(is_store).cloned().collect();
        Options { s3, proxy: Proxy::of(environment), ..Options::default() }
    }

    /// Whether an environment variable may affect [`of_environment`](Self::of_environment).
    pub fn concerns(name: &str) -> bool {
        of_store(name) || name.to_ascii_lowercase().ends_with("_proxy")
    }
}

/// Whether an environment variable is a bucket setting.
fn of_store(name: &str) -> bool {
    ["AWS_", "GOOGLE_", "AZURE_"].iter().any(|prefix| name.starts_with(prefix))
}

/// The settings of a cache on disk.
#[derive(Debug, Clone)]
pub struct CacheOptions {
    /// The folder, created if it does not exist.
    pub folder: PathBuf,
    /// Maximum size in bytes; the least recently used objects are evicted. Default 10 GiB.
    pub bytes_max: u64,
}

impl CacheOptions {
    /// A cache of up to 10 GiB in `folder`.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        CacheOptions { folder: folder.into(), bytes_max: 10 << 30 }
    }
}

#[cfg(test)]
mod tests {
    use super::{Header, Options, Proxy};

    fn of(environment: &[(&str, &str)]) -> Options {
        let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        Options::of_environment(&environment.iter().map(owned).collect::<Vec<_>>())
    }

    #[track_caller]
    fn check(environment: &[(&str, &str)], http: Option<&str>, https: Option<&str>) {
        let Proxy { http: is_http, https: is_https, .. } = of(environment).proxy;
        assert_eq!((is_http.as_deref(), is_https.as_deref()), (http, https), "{environment:?}");
    }

    #[test]
    fn the_http_proxy_does_not_come_from_a_request_header() {
        check(&[("HTTP_PROXY", "http://evil")], None, None);
        check(&[("Http_Proxy", "http://evil"), ("http_proxy", "http://a")], Some("http://a"), None);
    }

    #[test]
    fn all_proxy_is_for_schemes_without_one() {
        let all = ("all_proxy", "http://all");
        check(&[all], Some("http://all"), Some("http://all"));
        check(&[("ALL_PROXY", "b"), all], Some("http://all"), Some("http://all"));
        check(&[all, ("http_proxy", "h"), ("HTTPS_PROXY", "s")], Some("h"), Some("s"));
        check(
            &[all, ("http_proxy", ""), ("https_proxy", "")],
            Some("http://all"),
            Some("http://all"),
        );
    }

    #[test]
    fn debug_shows_no_secrets() {
        let mut options = of(&[
            ("AWS_SECRET_ACCESS_KEY", "hidden"),
            ("https_proxy", "http://me:hidden@proxy"),
            ("http_proxy", "me:hidden@proxy:80"),
        ]);
        options.headers.push(Header::parse("X-Key: hidden").unwrap());
        let shown = format!("{options:?}");
        assert!(!shown.contains("hidden"), "{shown}");
        assert!(shown.contains("AWS_SECRET_ACCESS_KEY") && shown.contains("x-key"), "{shown}");
    }

    #[test]
    fn hosts_without_a_proxy_and_settings_of_s3_are_taken() {
        let options =
            of(&[("NO_PROXY", "a,b"), ("AWS_REGION", "eu"), ("AWS_PROFILE", ""), ("X", "y")]);
        assert_eq!(options.proxy.except.as_deref(), Some("a,b"));
        assert_eq!(options.s3, [("AWS_REGION".to_string(), "eu".to_string())]);
        assert!(["no_proxy", "ALL_PROXY", "AWS_REGION"].into_iter().all(Options::concerns));
        assert!(!Options::concerns("PATH"));
    }
}
