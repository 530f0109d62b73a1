//! Everything that can be set, with its default.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use quarrier_sparse::CostModel;

/// How a [`Remote`](crate::Remote) works.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Requests that are under way at once, of all sources together. Default 8, which
    /// is what 0 means, too.
    pub requests_max: usize,
    /// Bytes held in memory, of all sources together; the least recently used go. Default
    /// 256 MiB.
    pub memory_bytes_max: u64,
    /// A server that ignores ranges is read whole at opening, up to this many bytes. Default
    /// 16 MiB.
    pub whole_bytes_max: u64,
    /// The largest request. Default 8 MiB.
    pub request_bytes_max: u64,
    /// The cost of requests, by which ranges are joined. Default: `None`, to learn it from the requests
    /// made.
    pub cost: Option<CostModel>,
    /// Whether to fetch more than requested, where it is likely to be read. Default true.
    pub read_ahead: bool,
    /// The most that is fetched ahead of a reader that reads on and on; at most a quarter of
    /// `memory_bytes_max`. Default 32 MiB.
    pub ahead_bytes_max: u64,
    /// How long to wait for what.
    pub timeouts: Timeouts,
    /// How often to try again.
    pub retry: Retry,
    /// Settings for `s3://`, `gs://` and `az://`, named as the usual environment variables are
    /// (`AWS_REGION`, `AWS_ACCESS_KEY_ID`, `GOOGLE_SERVICE_ACCOUNT`, `AZURE_STORAGE_ACCOUNT_NAME`, …;
    /// case does not matter). This crate does not read the environment.
    pub s3: Vec<(String, String)>,
    /// Proxies.
    pub proxy: Proxy,
    /// A cache on disk, shared with other processes. Default: none.
    pub cache: Option<CacheOptions>,
    /// No request is made: objects are opened, in the version used last, and read from the cache on disk;
    /// the rest is an error of its range. Default false.
    pub offline: bool,
    /// Reads end with [`Error::Closed`](crate::Error::Closed) within a tenth of a second after
    /// this becomes true.
    pub stop: Option<Arc<AtomicBool>>,
}

/// Requests under way where nobody says how many.
const REQUESTS: usize = 8;

impl Options {
    /// How many requests may be under way.
    pub(crate) fn requests(&self) -> usize {
        if self.requests_max == 0 { REQUESTS } else { self.requests_max }
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
            proxy: Proxy::default(),
            cache: None,
            offline: false,
            stop: None,
        }
    }
}

/// How long to wait for what.
#[derive(Debug, Clone)]
pub struct Timeouts {
    /// For the host's name and the connection. Default 10 s.
    pub connect: Duration,
    /// For the next byte. Default 10 s.
    pub progress: Duration,
    /// A body that comes slower than this is given up… Default 1 KiB/s.
    pub bytes_per_second_min: u64,
    /// … when it has been for this long. Default 20 s.
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

/// How often to try again, and after how long.
#[derive(Debug, Clone)]
pub struct Retry {
    /// Attempts in a row without a new byte before a range is given up; at least 1. Default 6.
    pub attempts_max: u32,
    /// The time without a new byte after which no further attempt is made. Default 25 s.
    pub in_vain_max: Duration,
    /// The wait before the second attempt; each further one is twice as long, and a random
    /// half of each is left out. Default 100 ms.
    pub delay: Duration,
    /// The longest wait, also where the server asks for a longer one (Retry-After). Default
    /// 10 s.
    pub delay_max: Duration,
    /// The number of consecutive failed ranges after which the server is considered gone. After a
    /// failed range, the next one is tried only once. Default 16.
    pub failed_ranges_max: u32,
}

impl Default for Retry {
    fn default() -> Self {
        Retry {
            attempts_max: 6,
            in_vain_max: Duration::from_secs(25),
            delay: Duration::from_millis(100),
            delay_max: Duration::from_secs(10),
            failed_ranges_max: 16,
        }
    }
}

/// Proxies, as `http_proxy`, `https_proxy` and `no_proxy` name them.
#[derive(Debug, Clone, Default)]
pub struct Proxy {
    /// For `http://`.
    pub http: Option<String>,
    /// For `https://`.
    pub https: Option<String>,
    /// Hosts without a proxy, with commas between them.
    pub except: Option<String>,
}

impl Proxy {
    /// Reads the variables of an environment as curl does: `http_proxy` in lower case only, because a
    /// web server sets `HTTP_PROXY` from a header of its clients.
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
    /// Proxies and settings of buckets as the variables of an environment say, which the caller reads.
    pub fn of_environment(environment: &[(String, String)]) -> Self {
        let is_store = |(name, value): &&(String, String)| of_store(name) && !value.is_empty();
        let s3 = environment.iter().filter(is_store).cloned().collect();
        Options { s3, proxy: Proxy::of(environment), ..Options::default() }
    }

    /// Whether a variable of an environment may matter to [`of_environment`](Self::of_environment).
    pub fn concerns(name: &str) -> bool {
        of_store(name) || name.to_ascii_lowercase().ends_with("_proxy")
    }
}

/// Whether a variable of an environment is a setting of a bucket.
fn of_store(name: &str) -> bool {
    ["AWS_", "GOOGLE_", "AZURE_"].iter().any(|prefix| name.starts_with(prefix))
}

/// A cache on disk.
#[derive(Debug, Clone)]
pub struct CacheOptions {
    /// Its folder, created if it does not exist.
    pub folder: PathBuf,
    /// Bytes in it; the least recently used objects go. Default 10 GiB.
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
    use super::{Options, Proxy};

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
    fn a_proxy_for_http_is_not_taken_from_what_a_stranger_sent() {
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
    fn hosts_without_a_proxy_and_settings_of_s3_are_taken() {
        let options =
            of(&[("NO_PROXY", "a,b"), ("AWS_REGION", "eu"), ("AWS_PROFILE", ""), ("X", "y")]);
        assert_eq!(options.proxy.except.as_deref(), Some("a,b"));
        assert_eq!(options.s3, [("AWS_REGION".to_string(), "eu".to_string())]);
        assert!(["no_proxy", "ALL_PROXY", "AWS_REGION"].into_iter().all(Options::concerns));
        assert!(!Options::concerns("PATH"));
    }
}
