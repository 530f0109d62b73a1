//! The name under which a mount shows a source.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::Named;
use crate::source::last_of_url;

/// Maximum length of a file name in bytes on most file systems, so that the file can be copied there.
const NAME_BYTES_MAX: usize = 255;
/// The name of a source whose own name has no usable part.
const UNNAMED: &str = "source.img";
/// Extensions of compressed files. The rest of the name is that of the content.
const COMPRESSED: [&str; 4] = ["gz", "xz", "bz2", "zst"];
/// Extensions of images that are not raw bytes.
const IMAGES: [&str; 13] = [
    "aff4", "dmg", "e01", "ex01", "hdd", "hds", "qcow", "qcow2", "s01", "vdi", "vhd", "vhdx",
    "vmdk",
];

/// Returns the name of the file that shows a source: the last part of the source's name. Since the file
/// has the decoded bytes, the extension of a compressed file is left out, and `.img` replaces that of an
/// image: `disk.E01` is shown as `disk.img`, `log.json.gz` as `log.json`, and the second partition of
/// `disk.E01` as `disk-2.img`.
pub fn file_name(named: &Named) -> OsString {
    let mut name = match named {
        Named::Partition { of, number } => numbered(&file_name(of), *number),
        Named::Path(path) => decoded(path.file_name().unwrap_or_default().as_bytes()),
        Named::Url(url) => decoded(&last_of_url(url)),
        Named::Stdin
        | Named::Objects(_)
        | Named::Stored(_)
        | Named::Missing(_)
        | Named::Unlisted(_)
        | Named::Refused { .. } => Vec::new(),
    };
    for byte in &mut name {
        // A slash, or a NUL, can come from a percent-encoded URL.
        if *byte == b'/' || byte.is_ascii_control() {
            *byte = b'_';
        }
    }
    if matches!(&name[..], b"" | b"." | b"..") {
        return UNNAMED.into();
    }
    OsString::from_vec(shortened(name))
}

/// The name without the extensions of compression and of parts, and with `.img` for an image.
fn decoded(name: &[u8]) -> Vec<u8> {
    let mut name = name;
    while let Some((stem, extension)) = split(name) {
        if is_one_of(extension, &COMPRESSED) || (is_part(extension) && split(stem).is_some()) {
            name = stem;
        } else if is_one_of(extension, &IMAGES) || is_part(extension) {
            return [stem, b".img"].concat();
        } else {
            break;
        }
    }
    name.to_vec()
}

/// Splits off an extension; `None` if there is none, as in `.profile`.
fn split(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let dot = name.iter().rposition(|&byte| byte == b'.').filter(|&dot| dot > 0)?;
    Some((&name[..dot], &name[dot + 1..]))
}

fn is_one_of(extension: &[u8], all: &[&str]) -> bool {
    all.iter().any(|one| one.as_bytes().eq_ignore_ascii_case(extension))
}

/// Whether the extension is the number of the first part of a split image.
fn is_part(extension: &[u8]) -> bool {
    extension.len() >= 3
        && matches!(extension.split_last(), Some((b'0' | b'1', rest))
            if rest.iter().all(|&digit| digit == b'0'))
}

fn numbered(name: &OsStr, number: u32) -> Vec<u8> {
    let name = name.as_bytes();
    let (stem, extension) =
        split(name).map_or((name, &name[..0]), |(stem, _)| (stem, &name[stem.len()..]));
    [stem, format!("-{number}").as_bytes(), extension].concat()
}

/// Truncates the part before the extension, at the start of a character.
fn shortened(mut name: Vec<u8>) -> Vec<u8> {
    let Some(excess) = name.len().checked_sub(NAME_BYTES_MAX).filter(|&excess| excess > 0) else {
        return name;
    };
    let end = split(&name).map(|(stem, _)| stem.len()).filter(|&end| end > excess);
    let end = end.unwrap_or(name.len());
    let mut start = end - excess;
    while start > 1 && name.get(start).is_some_and(|byte| byte & 0xC0 == 0x80) {
        start -= 1;
    }
    name.drain(start..end);
    name
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_file_has_the_name_of_its_decoded_content() {
        let check = |named: Named, expected: &str| assert_eq!(file_name(&named), expected);
        for (path, expected) in [
            ("/evidence/disk.E01", "disk.img"),
            ("disk.qcow2", "disk.img"),
            ("disk.VMDK", "disk.img"),
            ("a/disk.img.gz", "disk.img"),
            ("a/disk.e01.gz.xz", "disk.img"),
            ("log.json.zst", "log.json"),
            ("image.001", "image.img"),
            ("disk.dd.001", "disk.dd"),
            ("disk.vmdk.001", "disk.img"),
            ("image.000", "image.img"),
            ("image.002", "image.002"),
            ("version.1", "version.1"),
            ("disk.img", "disk.img"),
            ("/dev/sda", "sda"),
            (".gz", ".gz"),
            ("..", UNNAMED),
            ("/", UNNAMED),
        ] {
            check(Named::Path(PathBuf::from(path)), expected);
        }
        for (url, expected) in [
            ("https://example.org/a/My%20disk.E01?X-Sig=/a%2Fb", "My disk.img"),
            ("http://example.org/a%2Fb%00c.img#top", "a_b_c.img"),
            ("https://example.org/%", "%"),
            ("https://example.org/", UNNAMED),
            ("https://example.org", UNNAMED),
            ("https://example.org/%2e%2e", UNNAMED),
            ("s3://bucket/key%20?.vhd", "key%20?.img"),
        ] {
            check(Named::Url(url.to_string()), expected);
        }
        let of = |path: &str| Box::new(Named::Path(PathBuf::from(path)));
        check(Named::Partition { of: of("disk.E01"), number: 2 }, "disk-2.img");
        check(Named::Partition { of: of("/dev/sda"), number: 1 }, "sda-1");
        check(Named::Stdin, UNNAMED);
    }

    #[test]
    fn a_long_name_is_shortened_before_its_extension() {
        let name = |text: String| file_name(&Named::Path(PathBuf::from(text)));
        assert_eq!(name("n".repeat(255)).len(), 255);
        assert_eq!(name("n".repeat(300) + ".E01"), OsString::from("n".repeat(251) + ".img"));
        assert_eq!(name("n".repeat(300)), OsString::from("n".repeat(255)));
        let wide = name("é".repeat(200) + ".img");
        assert_eq!(wide.to_str(), Some(&*("é".repeat(125) + ".img")));
    }
}
