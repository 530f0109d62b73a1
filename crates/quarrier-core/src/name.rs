//! Names of files as text, for rows, reports and errors.
//!
//! Names are bytes, and need not be UTF-8. In text, a byte that is not part of UTF-8 becomes `\xNN`, so
//! that different names stay different, and the file can be found by the text: see [`path_of`]. All other
//! characters stay as they are, a backslash too: `dev-disk\x2duuid` is a common name.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// Returns the name in `bytes`: as they are if UTF-8, other bytes as `\xNN`.
///
/// ```
/// assert_eq!(quarrier_core::name::of_bytes(b"caf\xc3\xa9 \xff"), r"café \xff");
/// ```
pub fn of_bytes(bytes: &[u8]) -> String {
    let mut name = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        name.push_str(chunk.valid());
        for byte in chunk.invalid() {
            name.push_str(&format!("\\x{byte:02x}"));
        }
    }
    name
}

/// Returns the name of a file, as [`of_bytes`].
pub fn of_path(path: impl AsRef<OsStr>) -> String {
    of_bytes(path.as_ref().as_bytes())
}

/// Returns the path of the file that is called `name`, as text if that is UTF-8. If there is no file of literally this name,
/// `\xNN` stands for a byte, in each part of the path for which there is no literal one. If neither exists,
/// that is `name` itself.
pub fn path_of(name: impl AsRef<OsStr>) -> PathBuf {
    path_below(Path::new(""), name)
}

/// As [`path_of`], for a name below `folder`.
pub fn path_below(folder: &Path, name: impl AsRef<OsStr>) -> PathBuf {
    let name = Path::new(&name);
    let literal = folder.join(name);
    let may_have_escapes = name.to_str().is_some_and(|name| name.contains("\\x"));
    if !may_have_escapes || exists(&literal) {
        return literal;
    }
    let mut path = folder.to_path_buf();
    for part in name.components() {
        let decoded = match part {
            Component::Normal(part) if !exists(&path.join(part)) => decoded(part.as_bytes()),
            _ => None,
        };
        path.push(decoded.as_deref().unwrap_or(part.as_os_str()));
    }
    if exists(&path) { path } else { literal }
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// The name that [`of_bytes`] turns into `text`, if it is another one.
fn decoded(text: &[u8]) -> Option<OsString> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, others)) = rest.split_first() {
        match rest.get(..4).and_then(escaped) {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[4..];
            }
            None => {
                bytes.push(first);
                rest = others;
            }
        }
    }
    let is_name_of = bytes != text && of_bytes(&bytes).as_bytes() == text;
    is_name_of.then(|| OsString::from_vec(bytes))
}

/// The byte that `\xNN` stands for; `None` for ASCII, which is never written so.
fn escaped(text: &[u8]) -> Option<u8> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let [b'\\', b'x', high, low] = *text else { return None };
    let byte = digit(high)? << 4 | digit(low)?;
    Some(byte).filter(|byte| !byte.is_ascii())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn names_that_differ_keep_different_texts_which_lead_back_to_them() {
        let mut seen = HashMap::new();
        let parts: [&[u8]; 8] =
            [b"\xff", b"\xe9", b"a", b"\xc3\xa9", b"\xc3", b"\\", b"\xf0\x9f", b"x"];
        let pairs = parts.iter().flat_map(|one| parts.iter().map(move |two| [*one, *two].concat()));
        for bytes in pairs.flat_map(|pair| parts.iter().map(move |part| [&pair, *part].concat())) {
            let text = of_bytes(&bytes);
            match str::from_utf8(&bytes) {
                Ok(same) => assert_eq!(text, same),
                Err(_) => assert_eq!(decoded(text.as_bytes()).unwrap().as_bytes(), bytes),
            }
            let before = seen.insert(text, bytes.clone());
            assert!(before.is_none_or(|before| before == bytes), "{bytes:?}");
        }
    }

    #[test]
    fn escapes_that_no_name_gives_are_literal() {
        for text in [r"dev-disk\x2duuid", r"\xFF", r"\xc3\xa9", r"\xf", r"\xzz", "plain", ""] {
            assert_eq!(decoded(text.as_bytes()), None, "{text}");
        }
        assert_eq!(decoded(br"\x2d\xff").unwrap(), OsStr::from_bytes(b"\\x2d\xff"));
    }

    #[test]
    fn a_literal_name_comes_before_the_bytes_that_it_stands_for() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &[u8]| folder.path().join(OsStr::from_bytes(name));
        let found = |name: &str| path_of(of_path(at(name.as_bytes())));
        std::fs::create_dir(at(b"d\xff")).unwrap();
        std::fs::create_dir(at(br"l\xe9")).unwrap();
        for name in [&b"d\xff/f\xfe"[..], br"l\xe9/f\xfe", b"l\\xe9/g\xfe", b"l\\xe9/f\xfe"] {
            std::fs::write(at(name), "").unwrap();
        }
        assert_eq!(found(r"d\xff/f\xfe"), at(b"d\xff/f\xfe"));
        assert_eq!(found(r"l\xe9/f\xfe"), at(br"l\xe9/f\xfe"));
        assert_eq!(found(r"l\xe9/g\xfe"), at(b"l\\xe9/g\xfe"));
        assert_eq!(found(r"l\xe9/none\xfe"), at(br"l\xe9/none\xfe"));
        assert_eq!(path_below(&at(b"d\xff"), r"f\xfe"), at(b"d\xff/f\xfe"));
        assert_eq!(path_of(r"no\xff"), Path::new(r"no\xff"));
    }
}
