//! The HTTP client: TLS by rustls with ring and the system's certificates, HTTP/1.1.
//!
//! Bulk transfer works best with one connection per request, so HTTP/2 is not used. Redirects are
//! followed, except from https to http: by the client for buckets, and by each link to a URL, which
//! sends secrets only to the origin of that URL.

use std::fmt;
use std::sync::Arc;

use reqwest::{Url, redirect};
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls_platform_verifier::BuilderVerifierExt;

use crate::error::{Error, Result};
use crate::options::Options;

const REDIRECTS_MAX: usize = 10;

/// The HTTP clients for the same options.
#[derive(Debug)]
pub(crate) struct Clients {
    /// Follows redirects.
    pub(crate) following: reqwest::Client,
    /// Returns redirects as responses.
    pub(crate) direct: reqwest::Client,
}

fn setup(what: &str, error: &dyn fmt::Display) -> Error {
    Error::Setup { reason: format!("{what}: {error}") }
}

impl Clients {
    /// Creates the clients for these options. Reads the system's certificates.
    pub(crate) fn new(options: &Options) -> Result<Self> {
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(BuilderVerifierExt::with_platform_verifier)
            .map_err(|error| setup("cannot set up TLS", &error))?
            .with_no_client_auth();
        let following = client(options, tls.clone(), redirect::Policy::custom(follow))?;
        Ok(Clients { following, direct: client(options, tls, redirect::Policy::none())? })
    }
}

fn client(
    options: &Options,
    tls: ClientConfig,
    redirects: redirect::Policy,
) -> Result<reqwest::Client> {
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(redirects)
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
    let previous = attempt.previous();
    let permitted =
        previous.last().map_or(Ok(()), |from| permit_redirect(from, attempt.url(), previous.len()));
    match permitted {
        Ok(()) => attempt.follow(),
        Err(reason) => attempt.error(reason),
    }
}

/// Refuses a redirect that is not followed, the `count`th of a request.
pub(crate) fn permit_redirect(from: &Url, to: &Url, count: usize) -> Result<(), &'static str> {
    match (from.scheme(), to.scheme()) {
        ("https", "http") => Err("redirected from https to http"),
        (_, "https" | "http") if count > REDIRECTS_MAX => Err("redirected too often"),
        (_, "https" | "http") => Ok(()),
        _ => Err("redirected to a URL of another scheme than http and https"),
    }
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
