//! The files for the rules: those that git tracks or would add.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Paths from the workspace's root (with `/` between folders) and the contents of the files, all in
/// memory, so that rules are pure functions.
pub(crate) struct Tree {
    files: BTreeMap<String, Vec<u8>>,
}

impl Tree {
    /// Reads the files that git tracks below `root`, and those that it neither tracks nor ignores,
    /// so that a new file is checked before it is added.
    ///
    /// # Errors
    ///
    /// If git cannot list the files, or a file cannot be read.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others"])
            .arg("--exclude-standard")
            .current_dir(root)
            .output()
            .map_err(|error| format!("git did not start: {error}; is it in PATH?"))?;
        if !listed.status.success() {
            let said = String::from_utf8_lossy(&listed.stderr);
            return Err(format!("git ls-files failed: {}", said.trim()));
        }
        let mut files = BTreeMap::new();
        for name in listed.stdout.split(|&byte| byte == 0) {
            let name = String::from_utf8_lossy(name).into_owned();
            let path = root.join(&name);
            // Deleted but not yet committed, a submodule, or a link to a folder.
            if name.is_empty() || !path.is_file() {
                continue;
            }
            let bytes = fs::read(&path).map_err(|error| format!("cannot read {name}: {error}"))?;
            files.insert(name, bytes);
        }
        if files.is_empty() {
            return Err("git lists no files; is this a checkout of the repository?".into());
        }
        Ok(Self { files })
    }

    /// Makes a tree of `(path, text)` pairs.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()))
            .collect();
        Self { files }
    }

    /// Returns every file with its bytes, sorted by path.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
    }

    /// Returns the files whose name ends in `.` and one of `extensions`, as text.
    pub(crate) fn text_files<'a>(
        &'a self,
        extensions: &'a [&str],
    ) -> impl Iterator<Item = (&'a str, Cow<'a, str>)> {
        self.files()
            .filter(|(path, _)| {
                path.rsplit_once('.').is_some_and(|(_, extension)| extensions.contains(&extension))
            })
            .map(|(path, bytes)| (path, String::from_utf8_lossy(bytes)))
    }

    /// Returns the text of one file, if it exists.
    pub(crate) fn text(&self, path: &str) -> Option<Cow<'_, str>> {
        self.files.get(path).map(|bytes| String::from_utf8_lossy(bytes))
    }

    /// Whether `path` is a file or a folder with files; the root is `""`.
    pub(crate) fn contains(&self, path: &str) -> bool {
        if path.is_empty() || self.files.contains_key(path) {
            return true;
        }
        let folder = format!("{path}/");
        self.files.range(folder.clone()..).next().is_some_and(|(next, _)| next.starts_with(&folder))
    }

    /// Returns the folders of the workspace's crates: `crates/<name>` and `xtask`.
    pub(crate) fn crate_folders(&self) -> impl Iterator<Item = &str> {
        self.files.keys().filter_map(|path| {
            let folder = path.strip_suffix("/Cargo.toml")?;
            let is_crate = folder == "xtask"
                || folder.strip_prefix("crates/").is_some_and(|name| !name.contains('/'));
            is_crate.then_some(folder)
        })
    }
}

/// Returns the last part of a path: a crate's name, if the path is a crate's folder.
pub(crate) fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_their_folders_are_contained() {
        let tree = Tree::of(&[("a/b/c.md", ""), ("a/bd.md", "")]);
        for there in ["", "a", "a/b", "a/b/c.md"] {
            assert!(tree.contains(there), "{there}");
        }
        for not_there in ["b", "a/b/c", "a/bd", "a/b/c.md/d"] {
            assert!(!tree.contains(not_there), "{not_there}");
        }
    }

    #[test]
    fn only_the_workspace_folders_are_crates() {
        let tree = Tree::of(&[
            ("Cargo.toml", ""),
            ("crates/one/Cargo.toml", ""),
            ("crates/one/tests/inner/Cargo.toml", ""),
            ("fuzz/Cargo.toml", ""),
            ("xtask/Cargo.toml", ""),
        ]);
        let folders: Vec<&str> = tree.crate_folders().collect();
        assert_eq!(folders, ["crates/one", "xtask"]);
    }
}
