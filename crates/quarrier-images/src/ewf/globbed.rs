//! Globs over names that need not be UTF-8. (The function of the crate `glob` passes over other names.)

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use glob::{Pattern, PatternError};

/// The first of 256 private characters that stand for the bytes of names that are not UTF-8.
const FIRST_BYTE: u32 = 0x10_FF00;

/// A part of a glob, between slashes.
enum Part {
    /// A name, in which no character has a special meaning.
    Name(OsString),
    /// Names that match a pattern.
    Some(Pattern),
    /// `**`: any number of folders.
    Below,
}

/// Whether a name has characters of globs.
pub(super) fn is_glob(name: &OsStr) -> bool {
    name.as_bytes().iter().any(|byte| b"*?[".contains(byte))
}

/// Returns the paths that a glob matches, in order: by their first name, then by their second, and so on. A
/// byte that is not UTF-8 counts as a character. What cannot be read is left out.
///
/// # Errors
/// If it is not a valid glob.
pub(super) fn globbed(glob: &Path) -> Result<Vec<PathBuf>, PatternError> {
    let glob = glob.as_os_str().as_bytes();
    Pattern::new(&characters(glob))?;
    let is_absolute = glob.starts_with(b"/");
    let root = if is_absolute { PathBuf::from("/") } else { PathBuf::new() };
    let names = glob.split(|&byte| byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    let mut parts = Vec::new();
    for name in names {
        match name {
            b"**" if matches!(parts.last(), Some(Part::Below)) => {}
            b"**" => parts.push(Part::Below),
            name if is_glob(OsStr::from_bytes(name)) => {
                parts.push(Part::Some(Pattern::new(&characters(name))?));
            }
            name => parts.push(Part::Name(OsStr::from_bytes(name).to_os_string())),
        }
    }
    let mut found = Vec::new();
    // A slash at the end is of folders.
    if !glob.ends_with(b"/") {
        walk(&root, &parts, &mut found);
    }
    found.sort_unstable();
    // `**` may lead to a path in several ways.
    found.dedup();
    Ok(found)
}

/// Adds the paths below `folder` that match `parts`.
fn walk(folder: &Path, parts: &[Part], found: &mut Vec<PathBuf>) {
    let Some((part, rest)) = parts.split_first() else { return };
    let mut go_on = |path: PathBuf| match rest {
        [] => found.push(path),
        rest => walk(&path, rest, found),
    };
    match part {
        Part::Name(name) => {
            let path = folder.join(name);
            if path.symlink_metadata().is_ok() {
                go_on(path);
            }
        }
        Part::Some(pattern) => {
            let names = names_in(folder).into_iter();
            let matching = names.filter(|name| pattern.matches(&characters(name.as_bytes())));
            matching.for_each(|name| go_on(folder.join(name)));
        }
        Part::Below => {
            walk(folder, rest, found);
            for path in names_in(folder).into_iter().map(|name| folder.join(name)) {
                if path.is_dir() {
                    walk(&path, parts, found);
                }
            }
        }
    }
}

fn names_in(folder: &Path) -> Vec<OsString> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().map(|entry| entry.file_name()).collect()
}

/// The characters of a name, to compare it with a pattern.
fn characters(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        text.push_str(chunk.valid());
        let bytes = chunk.invalid().iter();
        text.extend(bytes.filter_map(|&byte| char::from_u32(FIRST_BYTE + u32::from(byte))));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with names of letters and, if `odd`, of bytes that are not UTF-8.
    fn folder(odd: bool) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let names: [&[u8]; 8] =
            [b"a", b"ab.x", b"d/a", b"d/b.x", b"d/e/ab.x", b".h/b.x", b"d-/a", b"[a]/b"];
        let odd_names: [&[u8]; 3] = [b"a\xff.x", b"a\xfe.x", b"d\xff/b.x"];
        for name in names.into_iter().chain(odd_names.into_iter().filter(|_| odd)) {
            let path = folder.path().join(OsStr::from_bytes(name));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        folder
    }

    fn found(folder: &Path, glob: &[u8]) -> Vec<PathBuf> {
        globbed(&folder.join(OsStr::from_bytes(glob))).unwrap()
    }

    #[test]
    fn names_in_utf8_are_found_as_by_the_crate() {
        let folder = folder(false);
        for glob in [
            "*",
            "a*",
            "?",
            "*/*",
            "*/*.x",
            "**/*.x",
            "**/a",
            "d/**/ab.x",
            "**",
            "**/**/b.x",
            "d/?",
            "[ab]",
            "[!a]",
            "[[]a]/*",
            "./d/./*",
            "none/*",
            "*/none",
            "d/*/../a",
            "**/e/*",
            "d//*",
            ".*/b.x",
            "*/",
            "d*/a",
            "*/e/**/*",
        ] {
            let path = folder.path().join(glob);
            let is_file = |path: &PathBuf| path.is_file();
            let naive = glob::glob(path.to_str().unwrap()).unwrap().map(|path| path.unwrap());
            let ours = found(folder.path(), glob.as_bytes()).into_iter();
            assert_eq!(
                ours.filter(is_file).collect::<Vec<_>>(),
                naive.filter(is_file).collect::<Vec<_>>(),
                "{glob}"
            );
        }
        for wrong in ["a***", "[", "a[/]b"] {
            let path = folder.path().join(wrong);
            let naive = glob::glob(path.to_str().unwrap()).map(|_| ()).map_err(|e| e.msg);
            assert_eq!(globbed(&path).map(|_| ()).map_err(|error| error.msg), naive, "{wrong}");
            assert!(naive.is_err());
        }
    }

    #[test]
    fn a_byte_that_is_not_utf8_is_a_character() {
        let folder = folder(true);
        let names = |glob: &[u8]| -> Vec<Vec<u8>> {
            let inside = |path: PathBuf| path.strip_prefix(folder.path()).unwrap().to_path_buf();
            let found = found(folder.path(), glob).into_iter().map(inside);
            found.map(|path| path.as_os_str().as_bytes().to_vec()).collect()
        };
        assert_eq!(names(b"a?.x"), [&b"ab.x"[..], b"a\xfe.x", b"a\xff.x"]);
        assert_eq!(names(b"a\xff*"), [b"a\xff.x".to_vec()]);
        assert_eq!(names(b"a[\xfe-\xff]*").len(), 2);
        assert_eq!(names(b"d\xff/*"), [b"d\xff/b.x".to_vec()]);
        assert_eq!(names(b"**/b.x").len(), 3);
    }
}
