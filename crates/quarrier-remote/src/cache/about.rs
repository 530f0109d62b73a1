//! The description of a cached object: its name, for listings of the cache, and its version, so
//! that the object can be opened without its server.
//!
//! ```text
//! quarrier cached object 1
//! identity: SHA-256 of the URL without what signs it, in hexadecimal
//! length: 1073741824
//! name: https://example.org/disk.img?…
//! etag: "5f-1"
//! modified: Tue, 24 Nov 2026 10:00:00 GMT
//! ```
//!
//! The name has no query and no password, and the identity is a hash: no secret is stored on disk.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use quarrier_core::hex;
use ring::digest;

use crate::answer::Version;

const FIRST_LINE: &str = "quarrier cached object 1";
/// Longer files are not ours.
const BYTES_MAX: u64 = 64 << 10;

/// The description of a cached object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct About {
    /// The hash of the identity.
    pub(crate) identity: String,
    /// The name without secrets.
    pub(crate) name: String,
    pub(crate) version: Version,
}

impl About {
    pub(crate) fn new(identity: &str, name: &str, version: &Version) -> Self {
        About { identity: hashed(identity), name: name.to_string(), version: version.clone() }
    }

    fn to_text(&self) -> String {
        let Version { length, etag, last_modified } = &self.version;
        let mut text = format!(
            "{FIRST_LINE}\nidentity: {}\nlength: {length}\nname: {}\n",
            self.identity,
            in_a_line(&self.name)
        );
        for (field, value) in [("etag", etag), ("modified", last_modified)] {
            if let Some(value) = value {
                text.push_str(&format!("{field}: {}\n", in_a_line(value)));
            }
        }
        text
    }

    /// Parses the output of [`to_text`](Self::to_text); `None` for anything else.
    pub(crate) fn of(text: &str) -> Option<About> {
        let lines = text.strip_suffix('\n')?.strip_prefix(FIRST_LINE)?.strip_prefix('\n')?;
        let field = |wanted: &str| {
            let mut fields = lines.lines().filter_map(|line| line.split_once(": "));
            fields.find(|(field, _)| *field == wanted).map(|(_, value)| value.to_string())
        };
        let version = Version {
            length: field("length")?.parse().ok()?,
            etag: field("etag"),
            last_modified: field("modified"),
        };
        Some(About { identity: field("identity")?, name: field("name")?, version })
    }

    /// Reads the file at `path`; `None` if it is missing or not ours.
    pub(crate) fn read(path: &Path) -> Option<About> {
        let mut text = String::new();
        let file =
            File::open(path).ok().filter(|file| file.metadata().is_ok_and(|m| m.is_file()))?;
        file.take(BYTES_MAX).read_to_string(&mut text).ok()?;
        About::of(&text)
    }

    /// Writes the file at `path` atomically, unless it exists.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub(crate) fn keep(&self, path: &Path) -> io::Result<()> {
        if About::read(path).as_ref() == Some(self) {
            return Ok(());
        }
        let part = path.with_extension(format!("about-{}", std::process::id()));
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&part)?;
        file.write_all(self.to_text().as_bytes())?;
        fs::rename(&part, path)
    }
}

/// The hash by which an object is found in the cache.
pub(crate) fn hashed(identity: &str) -> String {
    hex::encode(digest::digest(&digest::SHA256, identity.as_bytes()).as_ref())
}

/// Keys of buckets may contain any character.
fn in_a_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_round_trip_and_other_text_is_rejected() {
        let etag = Some("\"a: b\"".to_string());
        let version = Version { length: 7, etag, last_modified: None };
        let about = About::new("https://h/a?b=c", "https://h/a?…", &version);
        let text = about.to_text();
        assert_eq!(About::of(&text), Some(about));
        assert!(!text.contains("b=c"));
        for wrong in ["", "x", &text[1..], &text[..text.len() - 1], &text.replace("length", "len")]
        {
            assert_eq!(About::of(wrong), None, "{wrong}");
        }
        let odd = About::new("s3://b/a\nb", "s3://b/a\nlength: 9", &version);
        assert_eq!(About::of(&odd.to_text()).map(|about| about.version.length), Some(7));
    }
}
