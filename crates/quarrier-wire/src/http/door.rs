//! Access control of HTTP. A browser sends requests for any page that it shows, so a server for
//! this machine checks the names of host and origin: pages of other sites must not reach it.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::Request;
use hyper::header::{self, HeaderMap};

use crate::board::add;
use crate::failure::{Failure, Result, state};
use crate::shared::Shared;

/// Authorizes a request; returns its user.
pub(super) async fn checked<B>(
    request: &Request<B>,
    peer: SocketAddr,
    shared: &Arc<Shared>,
) -> Result<String> {
    let headers = request.headers();
    let host =
        one(headers, header::HOST)?.ok_or_else(|| denied("the request has no Host header"))?;
    if shared.is_local && !is_local(host) {
        return Err(denied("the Host header names another host"));
    }
    if let Some(origin) = one(headers, header::ORIGIN)?
        && origin.split_once("://").is_none_or(|(_, of)| !of.eq_ignore_ascii_case(host))
    {
        return Err(denied("pages of another origin may not send requests here"));
    }
    if headers
        .get("sec-fetch-site")
        .is_some_and(|site| !matches!(site.as_bytes(), b"same-origin" | b"none"))
    {
        return Err(denied("pages of another site may not send requests here"));
    }
    let Some(users) = &shared.users else {
        return Ok(basic(headers).map_or_else(|| "anybody".to_string(), |(user, _)| user));
    };
    if request.uri().path() == "/health" {
        return Ok(String::new());
    }
    let wrong = || Failure::new(state::PASSWORD, "user name and password required");
    let (user, password) = basic(headers).ok_or_else(wrong)?;
    if users.is_remembered(&user, &password) || is_right(shared, &user, password).await {
        return Ok(user);
    }
    add(&shared.board.counts.wrong_passwords, 1);
    let said = format!("password authentication failed for user \"{user}\"");
    let failure = Failure::new(state::PASSWORD, said);
    shared.wrong_passwords.delay(&*shared.log, (peer, &failure)).await;
    Err(failure)
}

/// Derives the key of a password, which takes a millisecond, while other connections continue.
async fn is_right(shared: &Arc<Shared>, user: &str, password: String) -> bool {
    let _turn = shared.wrong_passwords.derivation().await;
    let (deriving, user) = (Arc::clone(shared), user.to_string());
    let judged = tokio::task::spawn_blocking(move || {
        deriving.users.as_ref().is_some_and(|users| users.is_right(&user, &password))
    });
    judged.await.unwrap_or(false)
}

fn denied(what: &str) -> Failure {
    Failure::new(state::DENIED, what)
}

/// Returns a header that may occur only once.
fn one(headers: &HeaderMap, name: header::HeaderName) -> Result<Option<&str>> {
    let mut values = headers.get_all(&name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().ok().filter(|_| values.next().is_none());
    text.map(Some)
        .ok_or_else(|| denied(&format!("the header {name} is missing, repeated or not text")))
}

/// Whether a host is a name of this machine.
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let is_address = name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    is_address || name.eq_ignore_ascii_case("localhost")
}

/// Returns the name and password of a request.
fn basic(headers: &HeaderMap) -> Option<(String, String)> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = value.split_once(' ')?;
    let decoded = BASE64_STANDARD.decode(encoded.trim()).ok()?;
    let decoded =
        String::from_utf8(decoded).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let (user, password) = decoded.split_once(':')?;
    Some((user.to_string(), password.to_string()))
}

/// Decodes the `%41` escapes in a part of a URL.
pub(super) fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let [high, low, after @ ..] = rest else { return None };
        let digit = |byte: u8| char::from(byte).to_digit(16);
        bytes.push((digit(*high)? * 16 + digit(*low)?) as u8);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

/// Parses the names and values of a query or a form.
pub(super) fn fields(text: &str) -> Option<Vec<(String, String)>> {
    let parts = text.split('&').filter(|part| !part.is_empty());
    let fields = parts.map(|part| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        Some((decoded(&name.replace('+', " "))?, decoded(&value.replace('+', " "))?))
    });
    fields.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_local() {
        for local in ["localhost:5434", "127.0.0.1:5434", "[::1]:5434", "LOCALHOST", "127.9.9.9"] {
            assert!(is_local(local), "{local}");
        }
        for foreign in ["example.com:5434", "localhost.example.com", "10.0.0.1", "", "[::2]:1"] {
            assert!(!is_local(foreign), "{foreign}");
        }
    }

    #[test]
    fn fields_are_decoded() {
        let field = |name: &str, value: &str| (name.to_string(), value.to_string());
        let fields = fields("sql=SELECT+%27a%2B%27&x").unwrap();
        assert_eq!(fields, [field("sql", "SELECT 'a+'"), field("x", "")]);
        assert_eq!(decoded("%4"), None);
        assert_eq!(decoded("%ff"), None);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text: String) {
            let _ = (fields(&text), decoded(&text), is_local(&text));
        }
    }
}
