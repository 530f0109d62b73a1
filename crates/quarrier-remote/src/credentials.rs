//! Credentials that the caller gives: header fields, logins of hosts, settings of buckets.

use std::fmt;

use reqwest::header::{HeaderName, HeaderValue};

use crate::error::{Error, Result};

/// Finds credentials that the caller keeps elsewhere, when an object that may need them is opened.
/// The reason of a failure must not contain a secret.
pub trait Credentials: fmt::Debug + Send + Sync {
    /// The settings for `s3://`, which replace those in [`Options::s3`](crate::Options::s3), that are `given`.
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
    pub(crate) name: HeaderName,
    pub(crate) value: HeaderValue,
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
}
