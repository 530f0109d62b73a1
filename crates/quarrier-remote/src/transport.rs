//! The HTTP client: TLS by rustls with ring and the system's certificates, HTTP/1.1.
//!
//! Bulk transfer works best with one connection per request, so HTTP/2 is not used. The client follows no
//! redirects, because it would send most header fields to any server: each link follows those of its
//! object, and requests with a signature in their header follow none.

use std::fmt;
use std::sync::Arc;

use reqwest::header::LOCATION;
use reqwest::{Response, Url, redirect};
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
        .redirect(redirect::Policy::none())
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

/// The target of a redirect; `None` for other responses.
pub(crate) fn redirect_of(response: &Response) -> Option<Url> {
    let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = response.headers().get(LOCATION).filter(|_| is_redirect)?;
    response.url().join(std::str::from_utf8(location.as_bytes()).ok()?).ok()
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
