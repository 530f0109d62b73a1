//! What a request is authorized by: header fields, logins of hosts, settings of buckets.

use std::fmt;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{RequestBuilder, Url};

use crate::error::{Error, Result};
use crate::options::Options;

/// Finds credentials that the caller keeps elsewhere, when an object that may need them is opened.
/// The reason of a failure must not contain a secret.
pub trait Credentials: fmt::Debug + Send + Sync {
    /// The settings for `s3://`, which replace those in [`Options::s3`], that are `given`.
    ///
    /// # Errors
    /// Why there are none.
    fn s3_settings(&self, given: &[(String, String)]) -> Result<Vec<(String, String)>, String>;

    /// The login for a host, for a URL without a user.
    ///
    /// # Errors
    /// Why it cannot be looked up.
    fn login(&self, host: &str) -> Result<Option<Login>, String>;
}

/// A user and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user.
    pub user: String,
    /// The password.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").finish_non_exhaustive()
    }
}

/// A header field for requests over HTTP. `Debug` hides its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    name: HeaderName,
    value: HeaderValue,
}

/// Fields that this crate sets, or that change how a request or its response is transferred. So do all
/// that begin with `content-`.
const REFUSED: [&str; 20] = [
    "accept-encoding",
    "connection",
    "expect",
    "host",
    "http2-settings",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "keep-alive",
    "max-forwards",
    "proxy-authorization",
    "proxy-connection",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

impl Header {
    /// Parses `Name: value`.
    ///
    /// # Errors
    /// As [`Header::new`]; also if there is no colon.
    pub fn parse(text: &str) -> Result<Self> {
        // The text may be a secret, so no error shows it.
        let reason = || "a header is written 'Name: value'".to_string();
        let (name, value) =
            text.split_once(':').ok_or_else(|| Error::Setup { reason: reason() })?;
        Header::new(name, value)
    }

    /// A field with this name and value.
    ///
    /// # Errors
    /// [`Error::Setup`] if the name has other characters than those of header names, if the value is
    /// empty or has control characters, and for fields that would break requests, such as `Range`.
    pub fn new(name: &str, value: &str) -> Result<Self> {
        let refused = |reason: String| Err(Error::Setup { reason });
        let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else {
            return refused(
                "the name of a header has only letters, digits and '-', up to the colon"
                    .to_string(),
            );
        };
        if REFUSED.contains(&name.as_str()) || name.as_str().starts_with("content-") {
            return refused(format!("the header '{name}' cannot be set: requests depend on it"));
        }
        match HeaderValue::from_bytes(value.trim_matches([' ', '\t']).as_bytes()) {
            Ok(value) if value.is_empty() => refused(format!("the header '{name}' has no value")),
            Ok(mut value) => {
                value.set_sensitive(true);
                Ok(Header { name, value })
            }
            Err(_) => refused(format!(
                "the value of the header '{name}' has a line end or another control character"
            )),
        }
    }
}

/// The secrets for requests to the origin of one URL.
#[derive(Debug)]
pub(crate) struct Secrets {
    headers: HeaderMap,
    login: Option<Login>,
}

impl Secrets {
    /// The secrets for this URL. Its own user and password are sent anyway, and no other then.
    pub(crate) fn of(url: &Url, options: &Options) -> Result<Self> {
        let mut headers = HeaderMap::new();
        for Header { name, value } in &options.headers {
            if headers.try_append(name, value.clone()).is_err() {
                return Err(Error::Setup { reason: "there are too many headers".to_string() });
            }
        }
        let has_login = headers.contains_key(AUTHORIZATION) || has_user(url);
        let login = match (&options.credentials, url.host_str()) {
            (Some(credentials), Some(host)) if !has_login => {
                credentials.login(host).map_err(|reason| Error::Setup { reason })?
            }
            _ => None,
        };
        Ok(Secrets { headers, login })
    }

    /// The request with these secrets.
    pub(crate) fn add_to(&self, request: RequestBuilder) -> RequestBuilder {
        let request = request.headers(self.headers.clone());
        match &self.login {
            Some(Login { user, password }) => request.basic_auth(user, Some(password)),
            None => request,
        }
    }
}

fn has_user(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// A URL to request, which may be the target of redirects.
#[derive(Debug, Clone)]
pub(crate) struct Hop {
    pub(crate) url: Url,
    /// Whether all URLs up to this one have the same scheme, host and port, so that it gets the secrets.
    pub(crate) is_own: bool,
}

impl Hop {
    /// The target of a redirect from here. One with the same origin keeps the user of the URL.
    pub(crate) fn to(&self, mut url: Url) -> Self {
        let is_own = self.is_own && self.url.origin() == url.origin();
        if is_own && has_user(&self.url) && !has_user(&url) {
            // Neither fails for a URL with a host.
            let _ = url.set_username(self.url.username());
            let _ = url.set_password(self.url.password());
        }
        Hop { url, is_own }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_would_break_a_request_are_refused_without_their_value() {
        for text in [
            "no colon hidden",
            "Two words: hidden",
            ": hidden",
            "X: hid\nden",
            "X: hid\rden",
            "X: hid\0den",
            "X:  ",
            "Host: hidden",
            "RANGE: hidden",
            "content-length: hidden",
            "Content-Type: hidden",
            "Transfer-Encoding: hidden",
            "If-Match: hidden",
        ] {
            let error = Header::parse(text).unwrap_err().to_string();
            assert!(!error.contains("hid") && !error.contains("den"), "{error}");
        }
        let header = Header::parse("Authorization:  Bearer hidden: é\t").unwrap();
        assert_eq!(header.value.as_bytes(), "Bearer hidden: é".as_bytes());
        assert!(!format!("{header:?}").contains("hidden"), "{header:?}");
    }

    #[test]
    fn only_targets_of_the_same_origin_are_own_and_never_again_after_another() {
        let start = Hop { url: Url::parse("https://me:p%40@h/a").unwrap(), is_own: true };
        let hop = |from: &Hop, text: &str| from.to(from.url.join(text).unwrap());
        let same = hop(&start, "https://h:443/b");
        assert_eq!((same.url.as_str(), same.is_own), ("https://me:p%40@h/b", true));
        for other in ["https://h:444/b", "http://h/b", "https://h.evil/b", "https://x@g/b"] {
            let away = hop(&start, other);
            assert!(!away.is_own && !away.url.as_str().contains("me:"), "{other}");
            assert!(!hop(&away, "https://h/b").is_own);
        }
    }
}
