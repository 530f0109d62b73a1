//! The selection of files: a path, or a glob.

use glob::{MatchOptions, Pattern};
use quarrier_files::Entry;

use crate::{Error, Result};

const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// The selection of files.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    /// The selection as written.
    pub(super) text: Option<String>,
    partition: Option<u32>,
    /// The path; `None` for all files.
    path: Option<String>,
    /// The path as a glob, if it may be one, and whether the glob applies to names only.
    glob: Option<(Pattern, bool)>,
}

impl Wanted {
    pub(super) fn new(text: &str) -> Result<Self> {
        let written = Some(text.to_string());
        let (partition, text) = match partition(text) {
            Some((number, rest)) => (Some(number), rest),
            None => (None, text),
        };
        let has_slash = text.contains('/');
        let path = format!("/{}", text.trim_matches('/'));
        let glob = match text.contains(['*', '?', '[']) {
            false => None,
            true => {
                let of_names = !has_slash;
                let pattern = if of_names { text } else { &path };
                let pattern = Pattern::new(pattern).map_err(|error| {
                    Error::Request(format!(
                        "'{text}' is not a glob: {error}; write [[] for a bracket"
                    ))
                })?;
                Some((pattern, of_names))
            }
        };
        Ok(Wanted { text: written, partition, path: Some(path).filter(|path| path != "/"), glob })
    }

    /// Whether the selection leaves nothing out.
    pub(super) fn is_all(&self) -> bool {
        self.partition.is_none() && self.path.is_none()
    }

    pub(super) fn has_partition(&self, number: u32) -> bool {
        self.partition.is_none_or(|wanted| wanted == number)
    }

    pub(super) fn has(&self, entry: &Entry) -> bool {
        let Some(path) = &self.path else { return true };
        if let Some((glob, of_names)) = &self.glob {
            let name = entry.path.rsplit('/').next().unwrap_or_default();
            let whole = if *of_names { name } else { &entry.path };
            if glob.matches_with(whole, OPTIONS) {
                return true;
            }
        }
        // The entry itself, its streams, and all entries below it.
        let rest = entry.path.strip_prefix(path.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ':']))
    }
}

/// Splits `#2/Users` into partition and path.
fn partition(text: &str) -> Option<(u32, &str)> {
    let (number, rest) = text.trim_start_matches('/').strip_prefix('#')?.split_once('/')?;
    Some((number.parse().ok()?, rest))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
mod tests {
    use quarrier_files::{Content, Entry, Kind, State, Times};

    use super::Wanted;

    #[test]
    fn paths_and_globs_choose_files() {
        for (wanted, path, is_wanted) in [
            ("/", "/a/b.jpg", true),
            ("/a", "/a/b.jpg", true),
            ("a/", "/a/b.jpg", true),
            ("a", "/ab", false),
            ("a/b.jpg", "/a/b.jpg", true),
            ("a/b.jpg", "/a/b.jpg:zone", true),
            ("*.jpg", "/a/b.jpg", true),
            ("*.jpg", "/a.jpg/b", false),
            ("/*.jpg", "/a/b.jpg", false),
            ("/a/*", "/a/b/c", false),
            ("/**/c", "/a/b/c", true),
            ("[x].txt", "/d/[x].txt", false),
            ("/[x].txt", "/[x].txt", true),
            ("#2/a", "/a", true),
        ] {
            let entry = Entry {
                path: path.to_string(),
                inode: 1,
                kind: Kind::File,
                state: State::Allocated,
                size: 0,
                times: Times::default(),
                access: Default::default(),
                content: Content::default(),
            };
            assert_eq!(Wanted::new(wanted).unwrap().has(&entry), is_wanted, "{wanted} of {path}");
        }
        assert!(Wanted::new("#2/a").unwrap().has_partition(2));
        assert!(!Wanted::new("#2/a").unwrap().has_partition(1));
        assert!(Wanted::new("a***").is_err());
    }
}
