//! `/pages/NAME`: serves files of the operator's folder, such as a dashboard. They have the origin
//! of the server, so their scripts may query and subscribe.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use hyper::Response;
use hyper::header::{self, HeaderValue};

use crate::failure::{Failure, Result, state};

use super::body::{self, Body};

/// Maximum bytes of a file.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Pages may have any scripts, but can reach only this server.
const POLICY: &str = "default-src 'self'; script-src 'self' 'unsafe-inline'; \
                      style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; \
                      base-uri 'none'; form-action 'self'";

/// Media types by file extension; files with another extension are not served.
const KINDS: [(&str, &str); 9] = [
    ("html", "text/html; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("csv", "text/csv; charset=utf-8"),
    ("txt", "text/plain; charset=utf-8"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("ico", "image/x-icon"),
];

pub(super) async fn answered(name: String, folder: Option<&PathBuf>) -> Result<Response<Body>> {
    let Some(folder) = folder else {
        return Err(missing(&name).hint("start the server with --pages FOLDER"));
    };
    let Some(kind) = kind_of(&name) else { return Err(missing(&name)) };
    let path = folder.join(&name);
    let reading = tokio::task::spawn_blocking(move || read(&path));
    let content = reading.await.map_err(|_| Failure::new(state::INTERNAL, "the page was lost"))?;
    let content = content.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => missing(&name),
        _ => Failure::new(state::SYSTEM, format!("the page '{name}' cannot be read: {error}")),
    })?;
    let mut response = Response::new(body::whole(Bytes::from(content)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    Ok(response)
}

fn missing(name: &str) -> Failure {
    Failure::new("NOT_FOUND", format!("there is no page '{name}'"))
}

/// Returns the media type of a file that may be served: directly in the folder, and not hidden.
fn kind_of(name: &str) -> Option<&'static str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if name.starts_with('.') || !name.bytes().all(is_plain) {
        return None;
    }
    let (_, ending) = name.rsplit_once('.')?;
    KINDS.iter().find(|(known, _)| ending.eq_ignore_ascii_case(known)).map(|(_, kind)| *kind)
}

/// Reads a regular file. Refuses symbolic links, which could leave the folder.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let refused = |reason: &str| io::Error::new(io::ErrorKind::InvalidInput, reason.to_string());
    let named = fs::symlink_metadata(path)?;
    if !named.is_file() {
        return Err(refused("it is not a regular file"));
    }
    let file = File::open(path)?;
    let opened = file.metadata()?;
    // The name may have become a link in the meantime.
    if (opened.dev(), opened.ino()) != (named.dev(), named.ino()) {
        return Err(refused("it was replaced while it was opened"));
    }
    let mut content = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut content)?;
    match content.len() as u64 > FILE_BYTES_MAX {
        true => Err(refused("it is longer than 16 MiB")),
        false => Ok(content),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_folder_itself_have_a_kind() {
        assert_eq!(kind_of("a.html"), Some("text/html; charset=utf-8"));
        assert_eq!(kind_of("trades-2.SVG"), Some("image/svg+xml"));
        for name in
            ["", "a", ".html", ".a.html", "../a.html", "a/b.html", "a\\b.html", "a.exe", "a\0.html"]
        {
            assert_eq!(kind_of(name), None, "{name}");
        }
    }
}
