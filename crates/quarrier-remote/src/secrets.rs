//! The secrets of requests to one URL, and the redirects that get them.

use reqwest::header::{AUTHORIZATION, HeaderMap};
use reqwest::{RequestBuilder, Url};

use crate::credentials::{Header, Login};
use crate::error::{Error, Result};
use crate::options::Options;

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
