//! The files below a folder.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

/// What a walk meets.
pub(super) enum Met {
    File(PathBuf),
    /// A folder that cannot be read: its name, and why.
    Unreadable(PathBuf, String),
}

/// All regular files below `folder` in the order of their paths, byte by byte; hidden ones too. Links are
/// not followed, but for `folder` itself.
pub(super) fn files_below(folder: &Path) -> impl Iterator<Item = Met> {
    let walk = WalkDir::new(folder).sort_by(|a, b| path_key(a).cmp(path_key(b)));
    walk.into_iter().filter_map(|met| match met {
        Ok(entry) => entry.file_type().is_file().then(|| Met::File(entry.into_path())),
        Err(error) => {
            let path = error.path().unwrap_or(Path::new("")).to_path_buf();
            let reason = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
            Some(Met::Unreadable(path, reason))
        }
    })
}

/// The bytes by which an entry is ordered among its neighbours: with the slash that follows a folder in the
/// paths of its files.
fn path_key(entry: &DirEntry) -> impl Iterator<Item = &u8> {
    let slash: &[u8] = if entry.file_type().is_dir() { b"/" } else { b"" };
    entry.file_name().as_bytes().iter().chain(slash)
}

/// The names in a list, one a line; where there is a byte 0, one before each of these (`find -print0`).
pub(super) fn names_of(list: &[u8]) -> Vec<OsString> {
    let end = if list.contains(&0) { 0 } else { b'\n' };
    let names = list.split(|&byte| byte == end).filter(|name| !name.is_empty());
    names.map(|name| OsString::from_vec(name.to_vec())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_in_the_order_of_their_paths_and_links_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["a/b/c", "a/.hidden", "a.txt", "a-b", "z", "A/x"] {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            std::fs::write(at(name), name).unwrap();
        }
        std::fs::write(folder.path().join(OsString::from_vec(b"b\xFF".to_vec())), "").unwrap();
        std::os::unix::fs::symlink(folder.path(), at("loop")).unwrap();
        std::os::unix::fs::symlink(at("z"), at("link")).unwrap();
        let found: Vec<PathBuf> = files_below(folder.path())
            .map(|met| match met {
                Met::File(path) => path.strip_prefix(folder.path()).unwrap().to_path_buf(),
                Met::Unreadable(path, reason) => panic!("{}: {reason}", path.display()),
            })
            .collect();
        let mut sorted = found.clone();
        sorted.sort_by(|a, b| a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes()));
        assert_eq!(found, sorted);
        assert_eq!(found.len(), 7);
        assert_eq!(found[1], Path::new("a-b"));
    }

    #[test]
    fn a_list_has_names_on_lines_or_with_zeros_between() {
        assert_eq!(names_of(b"a\n\nb c\n\xFF\n").len(), 3);
        assert_eq!(names_of(b"a\nb\0c\0"), ["a\nb", "c"]);
        assert!(names_of(b"").is_empty());
    }
}
