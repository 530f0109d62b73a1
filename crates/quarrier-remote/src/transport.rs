//! The HTTP client: TLS by rustls with ring and the system's certificates, HTTP/1.1.
//!
//! Bulk transfer works best with one connection per request, so HTTP/2 is not used. Redirects are
//! followed, except from https to http.

use std::fmt;
use std::sync::Arc;

use reqwest::redirect;
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls_platform_verifier::BuilderVerifierExt;

use crate::error::{Error, Result};
use crate::options::Options;

const REDIRECTS_MAX: usize = 10;

/// Creates the client for these options. Reads the system's certificates.
pub(crate) fn client(options: &Options) -> Result<reqwest::Client> {
    let setup =
        |what: &str, error: &dyn fmt::Display| Error::Setup { reason: format!("{what}: {error}") };
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)
        .map_err(|error| setup("cannot set up TLS", &error))?
        .with_no_client_auth();
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(redirect::Policy::custom(follow))
        .referer(false)
        .connect_timeout(options.timeouts.connect)
        .user_agent(concat!("quarrier/", env!("CARGO_PKG_VERSION")))
        .no_proxy();
    let except = options.proxy.except.as_deref().and_then(reqwest::NoProxy::from_string);
    for (url, is_https) in [(&options.proxy.http, false), (&options.proxy.https, true)] {
        let Some(url) = url.as_deref().filter(|url| !url.is_empty()) else { continue };
        // The error may repeat the URL, which may contain a password.
        let made = if is_https { reqwest::Proxy::https(url) } else { reqwest::Proxy::http(url) };
        let proxy = made.map_err(|_| Error::Setup {
            reason: format!("{}: is not the URL of a proxy", crate::location::redacted(url)),
        })?;
        builder = builder.proxy(proxy.no_proxy(except.clone()));
    }
    builder.build().map_err(|error| setup("cannot set up HTTP", &innermost(&error)))
}

fn follow(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let was_secret = attempt.previous().last().is_some_and(|url| url.scheme() == "https");
    if was_secret && attempt.url().scheme() != "https" {
        return attempt.error("redirected from https to http");
    }
    if attempt.previous().len() > REDIRECTS_MAX {
        return attempt.error("redirected too often");
    }
    attempt.follow()
}

/// The innermost error: that of the system or of TLS. The outer ones contain the URL with its
/// secrets.
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
