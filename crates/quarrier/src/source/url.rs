//! Names in URLs: of an object in its folder, and of others beside it.

/// The last part of a URL's path, without percent-encoding; keys of buckets are not encoded.
pub(crate) fn last_of_url(url: &str) -> Vec<u8> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let is_http = scheme.to_ascii_lowercase().starts_with("http");
    let path = match is_http {
        true => rest.split(['?', '#']).next().unwrap_or_default(),
        false => rest,
    };
    // Without a path, the first part is the host or the bucket.
    let Some((_, last)) = path.rsplit_once('/') else { return Vec::new() };
    if is_http { percent_decoded(last.as_bytes()) } else { last.as_bytes().to_vec() }
}

fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let digit = |at: usize| text.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    let mut decoded = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                // Two digits of 4 bits fit.
                decoded.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    decoded
}

/// The URL of the object `name` in the folder of `url`. It keeps the signature, since some signatures
/// cover all objects of a folder.
pub(super) fn beside(url: &str, name: &str) -> String {
    let scheme = url.get(..5).unwrap_or_default().to_ascii_lowercase();
    if matches!(scheme.as_str(), "s3://" | "gs://" | "az://") {
        let folder = url.rfind('/').map_or(url, |at| &url[..=at]);
        return format!("{folder}{name}");
    }
    let (path, query) = url.find('?').map_or((url, ""), |at| url.split_at(at));
    let folder = path.rfind('/').map_or(path, |at| &path[..=at]);
    let mut found = folder.to_string();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                found.push(byte.into())
            }
            byte => found.push_str(&format!("%{byte:02X}")),
        }
    }
    found + query
}

#[cfg(test)]
mod tests {
    use super::{beside, last_of_url};

    #[test]
    fn an_object_beside_another_differs_in_its_name_alone() {
        assert_eq!(beside("https://h/a/b.vmdk?sig=1", "c d.vmdk"), "https://h/a/c%20d.vmdk?sig=1");
        assert_eq!(beside("s3://bucket/a/b.E01", "b?.E02"), "s3://bucket/a/b?.E02");
        for url in ["https://h/a%2Fb%20c.E01?sig=%20", "s3://bucket/a/b%20c?.E01"] {
            let name = String::from_utf8(last_of_url(url)).unwrap();
            assert_eq!(beside(url, &name), url);
        }
    }
}
