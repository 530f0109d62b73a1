//! The files below a folder.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use quarrier_core::parallel::planned_workers;
use quarrier_core::threads::team;
use walkdir::{DirEntry, WalkDir};

/// Number of levels that are read before threads share the folders found there.
const LEVELS_FIRST: usize = 3;
/// Minimum number of folders that are worth sharing.
const FOLDERS_ENOUGH: usize = 64;

/// A result of the walk.
pub(super) enum Met {
    File(PathBuf),
    /// A folder that cannot be read: its name, and the reason.
    Unreadable(PathBuf, String),
}

/// A folder's state while threads list the rest.
enum Listed {
    Met(Met),
    Folder(PathBuf),
}

/// Lists all regular files below `folder` in the order of their paths, byte by byte; includes hidden
/// ones. Links are not followed, except `folder` itself. If `stop` becomes true, files are missing.
pub(super) fn files_below(folder: &Path, stop: &AtomicBool) -> Vec<Met> {
    let mut known: Vec<Listed> = level(WalkDir::new(folder), stop).collect();
    let count = |known: &[Listed]| known.iter().filter(|k| matches!(k, Listed::Folder(_))).count();
    for _ in 1..LEVELS_FIRST {
        if (1..FOLDERS_ENOUGH).contains(&count(&known)) {
            let deeper = |known| match known {
                Listed::Folder(path) => level(below(&path), stop).collect(),
                met @ Listed::Met(_) => vec![met],
            };
            known = known.into_iter().flat_map(deeper).collect();
        }
    }
    let folders: Vec<&Path> = known.iter().filter_map(Listed::folder).collect();
    let next = AtomicUsize::new(0);
    let walked = team(0..planned_workers(0).min(folders.len()), |_| {
        let mut mine = Vec::new();
        while let Some(folder) = folders.get(next.fetch_add(1, Ordering::Relaxed)) {
            mine.push((*folder, all_below(folder, stop)));
        }
        mine
    });
    let mut walked: Vec<(PathBuf, Vec<Met>)> =
        walked.into_iter().flatten().map(|(folder, met)| (folder.to_path_buf(), met)).collect();
    // Sort them like the known entries.
    walked.sort_by(|(a, _), (b, _)| folder_key(a).cmp(folder_key(b)));
    let mut walked = walked.into_iter();
    let in_place = |known| match known {
        Listed::Met(met) => vec![met],
        Listed::Folder(_) => walked.next().map(|(_, met)| met).unwrap_or_default(),
    };
    known.into_iter().flat_map(in_place).collect()
}

impl Listed {
    fn folder(&self) -> Option<&Path> {
        match self {
            Listed::Folder(path) => Some(path),
            Listed::Met(_) => None,
        }
    }
}

/// Walks a folder that another walk has found, and which is not a link.
fn below(folder: &Path) -> WalkDir {
    WalkDir::new(folder).follow_root_links(false)
}

fn sorted(walk: WalkDir) -> impl Iterator<Item = walkdir::Result<DirEntry>> {
    walk.sort_by(|a, b| path_key(a).cmp(path_key(b))).into_iter()
}

/// The direct entries of a folder.
fn level(walk: WalkDir, stop: &AtomicBool) -> impl Iterator<Item = Listed> {
    let met = sorted(walk.min_depth(1).max_depth(1));
    met.take_while(|_| !stop.load(Ordering::Relaxed)).filter_map(|entry| match entry {
        Ok(entry) if entry.file_type().is_dir() => Some(Listed::Folder(entry.into_path())),
        entry => met_at(entry).map(Listed::Met),
    })
}

fn all_below(folder: &Path, stop: &AtomicBool) -> Vec<Met> {
    let all = sorted(below(folder));
    all.take_while(|_| !stop.load(Ordering::Relaxed)).filter_map(met_at).collect()
}

fn met_at(entry: walkdir::Result<DirEntry>) -> Option<Met> {
    match entry {
        Ok(entry) => entry.file_type().is_file().then(|| Met::File(entry.into_path())),
        Err(error) => {
            let path = error.path().unwrap_or(Path::new("")).to_path_buf();
            let reason = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
            Some(Met::Unreadable(path, reason))
        }
    }
}

/// The sort key of a folder.
fn folder_key(path: &Path) -> impl Iterator<Item = &u8> {
    path.as_os_str().as_bytes().iter().chain(b"/")
}

/// The sort key of an entry among its siblings: a folder ends with the slash that follows it in the
/// paths of its files.
fn path_key(entry: &DirEntry) -> impl Iterator<Item = &u8> {
    let slash: &[u8] = if entry.file_type().is_dir() { b"/" } else { b"" };
    entry.file_name().as_bytes().iter().chain(slash)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn files(folder: &Path) -> Vec<PathBuf> {
        let name = |met| match met {
            Met::File(path) => path.strip_prefix(folder).unwrap().to_path_buf(),
            Met::Unreadable(path, reason) => panic!("{}: {reason}", path.display()),
        };
        files_below(folder, &AtomicBool::new(false)).into_iter().map(name).collect()
    }

    fn by_bytes(paths: &[PathBuf]) -> Vec<PathBuf> {
        let mut sorted = paths.to_vec();
        sorted.sort_by(|a, b| a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes()));
        sorted
    }

    #[test]
    fn folders_that_threads_share_stay_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for index in 0..400u32 {
            let name = format!("{}/{}.{}/x/{index}", index % 3, index % 29, index % 2);
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = files(folder.path());
        assert_eq!((found.len(), &found), (400, &by_bytes(&found)));
        assert!(files_below(folder.path(), &AtomicBool::new(true)).is_empty());
    }

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
        let found = files(folder.path());
        assert_eq!(found, by_bytes(&found));
        assert_eq!(found.len(), 7);
        assert_eq!(found[1], Path::new("a-b"));
    }
}
