//! The location of an object: its URL, its name without secrets, and its identity.

use url::Url;

use crate::error::{Error, Result};

/// The parsed URL of an object.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    pub(crate) place: Place,
    /// The name for errors and findings: no query, no user, no password.
    pub(crate) name: String,
    /// The parts that select the object, without signatures and passwords. Only their hash is
    /// stored.
    pub(crate) identity: String,
}

/// How to request the object.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    Http(Url),
    Bucket { store: Store, bucket: String, key: String },
}

/// The cloud provider of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Store {
    S3,
    Google,
    Azure,
}

/// Schemes of buckets.
const STORES: [(&str, Store); 3] =
    [("s3://", Store::S3), ("gs://", Store::Google), ("az://", Store::Azure)];

impl Store {
    /// The name in errors.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Store::S3 => "S3",
            Store::Google => "Google Cloud Storage",
            Store::Azure => "Azure Blob Storage",
        }
    }

    /// The settings that say where the store is.
    pub(crate) fn place_settings(self) -> &'static str {
        match self {
            Store::S3 => "AWS_REGION and AWS_ENDPOINT_URL",
            Store::Google => "GOOGLE_BASE_URL",
            Store::Azure => "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ENDPOINT",
        }
    }

    /// The credentials to set if none are found.
    pub(crate) fn advice(self) -> &'static str {
        match self {
            Store::S3 => {
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE=true for a \
                 public bucket"
            }
            Store::Google => {
                "set GOOGLE_SERVICE_ACCOUNT to a key file, or GOOGLE_SKIP_SIGNATURE=true for a public \
                 bucket"
            }
            Store::Azure => {
                "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or \
                 AZURE_SKIP_SIGNATURE=true for a public container"
            }
        }
    }
}

/// Query fields that sign a request and do not select an object.
const SIGNING_PREFIXES: [&str; 3] = ["x-amz-", "x-goog-", "x-oss-"];
const SIGNING_FIELDS: [&str; 16] = [
    "awsaccesskeyid",
    "expires",
    "googleaccessid",
    "key-pair-id",
    "policy",
    "se",
    "sig",
    "signature",
    "sip",
    "sks",
    "skt",
    "sp",
    "spr",
    "sr",
    "st",
    "sv",
];

/// Whether `text` is a URL that this crate can open: `http://`, `https://`, `s3://`, `gs://` or
/// `az://`.
pub fn is_remote(text: &str) -> bool {
    ["http://", "https://", "s3://", "gs://", "az://"]
        .iter()
        .any(|scheme| text.get(..scheme.len()).is_some_and(|s| s.eq_ignore_ascii_case(scheme)))
}

/// Whether `text` is the URL of a bucket, or of an object in one: `s3://`, `gs://` or `az://`.
pub fn is_bucket(text: &str) -> bool {
    STORES.iter().any(|(scheme, _)| is_of(text, scheme))
}

fn is_of(text: &str, scheme: &str) -> bool {
    text.get(..scheme.len()).is_some_and(|found| found.eq_ignore_ascii_case(scheme))
}

/// `text` without query, user and password, for errors and logs.
pub fn redacted(text: &str) -> String {
    match Url::parse(text) {
        Ok(url) if url.has_host() => name_of(&url),
        // Not a URL, or one such as 'user:password@host', where the user looks like a scheme.
        _ => redacted_text(text),
    }
}

/// Removes what may be a query, a user or a password from a text without their exact places.
fn redacted_text(text: &str) -> String {
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let scheme = text.find("://").filter(|&at| text[..at].chars().all(is_scheme));
    let (scheme, rest) = text.split_at(scheme.map_or(0, |at| at + 3));
    let shown = rest.split(['?', '#']).next().unwrap_or_default();
    match (shown.rfind('@'), rest.rfind('@')) {
        (None, None) => format!("{scheme}{shown}"),
        (Some(at), last) if last == Some(at) => format!("{scheme}…{}", &shown[at..]),
        // A password may have these characters, too.
        _ => format!("{scheme}…"),
    }
}

fn name_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map_or(String::new(), |port| format!(":{port}"));
    let query = if url.query().is_some() { "?…" } else { "" };
    format!("{}://{host}{port}{}{query}", url.scheme(), url.path())
}

impl Location {
    /// Parses a URL.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let bad = |reason: &str| Error::BadUrl {
            source_name: redacted(text),
            reason: reason.to_string(),
        };
        for (scheme, store) in STORES {
            if is_of(text, scheme) {
                return Location::parse_bucket(scheme, store, &text[scheme.len()..]).map_err(bad);
            }
        }
        let url = Url::parse(text).map_err(|error| bad(&format!("is not a URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad("the scheme is not one of http, https, s3, gs, az"));
        }
        if url.host_str().unwrap_or_default().is_empty() {
            return Err(bad("names no host"));
        }
        let (name, identity) = (name_of(&url), identity_of(&url));
        Ok(Location { place: Place::Http(url), name, identity })
    }

    /// Parses `bucket/key`, both verbatim: keys of buckets are not percent-encoded.
    fn parse_bucket(
        scheme: &str,
        store: Store,
        rest: &str,
    ) -> std::result::Result<Self, &'static str> {
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() || key.is_empty() {
            return Err(match store {
                Store::S3 => "an S3 URL is s3://BUCKET/KEY",
                Store::Google => "a URL of Google Cloud Storage is gs://BUCKET/KEY",
                Store::Azure => "a URL of Azure Blob Storage is az://CONTAINER/KEY",
            });
        }
        let name = format!("{scheme}{bucket}/{key}");
        let place = Place::Bucket { store, bucket: bucket.to_string(), key: key.to_string() };
        Ok(Location { place, identity: name.clone(), name })
    }
}

/// More than the maximum size of a key in any store, in bytes.
pub(crate) const KEY_BYTES_MAX: usize = 4096;

/// Whether requests for a bucket of this name can be made: `object_store` panics if its URL is invalid.
fn is_bucket_name(name: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b".-_$:".contains(&byte);
    name.len() < 256 && name.bytes().all(is_known)
}

/// A bucket, and the beginning of the keys of some of its objects.
#[derive(Debug, Clone)]
pub(crate) struct BucketPrefix {
    pub(crate) store: Store,
    pub(crate) bucket: String,
    pub(crate) prefix: String,
    /// The name for errors.
    pub(crate) name: String,
}

impl BucketPrefix {
    /// Parses `s3://BUCKET/PREFIX` and the like, verbatim.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let bad = |reason: &str| Error::BadUrl {
            source_name: redacted(text),
            reason: reason.to_string(),
        };
        let Some((scheme, store)) = STORES.into_iter().find(|(scheme, _)| is_of(text, scheme))
        else {
            return Err(bad("is not the URL of a bucket: s3://, gs:// or az://"));
        };
        let rest = &text[scheme.len()..];
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(bad("names no bucket"));
        }
        if !is_bucket_name(bucket) {
            return Err(bad(
                "names of buckets have only letters, digits, '.', '-', '_', '$' and ':'",
            ));
        }
        if prefix.len() > KEY_BYTES_MAX {
            return Err(bad("keys of objects are not that long"));
        }
        let name = format!("{scheme}{bucket}/{prefix}");
        Ok(BucketPrefix { store, bucket: bucket.to_string(), prefix: prefix.to_string(), name })
    }
}

fn identity_of(url: &Url) -> String {
    let mut identity = Url::clone(url);
    // Neither fails for a URL with a host.
    let _ = identity.set_username("");
    let _ = identity.set_password(None);
    identity.set_fragment(None);
    let kept: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(field, _)| !is_signing(field))
        .map(|(field, value)| (field.into_owned(), value.into_owned()))
        .collect();
    identity.set_query(None);
    if !kept.is_empty() {
        identity.query_pairs_mut().extend_pairs(kept);
    }
    identity.into()
}

fn is_signing(field: &str) -> bool {
    let field = field.to_ascii_lowercase();
    SIGNING_PREFIXES.iter().any(|prefix| field.starts_with(prefix))
        || SIGNING_FIELDS.contains(&field.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_shows_neither_query_nor_password() {
        let url = "https://me:secret@host:8443/a/b.img?X-Amz-Signature=abc&id=7";
        let location = Location::parse(url).unwrap();
        assert_eq!(location.name, "https://host:8443/a/b.img?…");
        assert_eq!(redacted("https://me:se@cret@/x?y"), "https://…@/x");
        assert_eq!(redacted("http://h/x#y"), "http://h/x");
        assert_eq!(redacted("http://h/a@b"), "http://h/a@b");
    }

    #[test]
    fn what_is_not_a_url_shows_no_password_either() {
        for (text, shown) in [
            ("me:secret@proxy:80", "…@proxy:80"),
            ("me:secret@proxy:80/?x", "…@proxy:80/"),
            ("me:se://cret@proxy", "…@proxy"),
            ("me:se?cret@proxy", "…"),
            ("http://me:se?cret@proxy", "http://…"),
            ("http://me:se#cret@proxy", "http://…"),
            ("http://me:secret@proxy:x/", "http://…@proxy:x/"),
            ("é://me:secret@proxy", "…@proxy"),
            ("proxy:80", "proxy:80"),
            ("http://proxy:x/?y", "http://proxy:x/"),
            ("s3:///key?", "s3:///key"),
            ("", ""),
        ] {
            assert_eq!(redacted(text), shown, "{text}");
        }
    }

    #[test]
    fn a_signature_does_not_select_an_object_and_other_fields_do() {
        let identity = |url: &str| Location::parse(url).unwrap().identity;
        assert_eq!(identity("https://h/a?X-Amz-Date=1&X-Amz-Signature=2"), "https://h/a");
        assert_eq!(identity("https://u:p@h/a?sig=2&id=7#f"), "https://h/a?id=7");
        assert_ne!(identity("https://h/a?id=7"), identity("https://h/a?id=8"));
    }

    #[test]
    fn an_s3_key_is_used_verbatim() {
        let location = Location::parse("s3://bucket/a b/%41?x").unwrap();
        let Place::Bucket { store, bucket, key } = location.place else { panic!("no bucket") };
        assert_eq!((store, bucket.as_str(), key.as_str()), (Store::S3, "bucket", "a b/%41?x"));
        let location = Location::parse("AZ://container/a/b").unwrap();
        assert_eq!(location.name, "az://container/a/b");
        assert!(matches!(location.place, Place::Bucket { store: Store::Azure, .. }));
        assert!(Location::parse("gs://bucket").is_err());
        assert!(Location::parse("s3://bucket").is_err());
        assert!(Location::parse("ftp://host/x").is_err());
        assert!(is_remote("HTTPS://x") && !is_remote("http:/x") && !is_remote("é"));
    }
}
