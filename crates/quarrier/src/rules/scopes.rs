//! The scopes over which rules are evaluated.

use std::fmt;
use std::str::FromStr;

/// The scopes over which rules are evaluated. By default, the source and its allocated files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scopes {
    /// All bytes of the source.
    pub source: bool,
    /// Each allocated file of its file systems.
    pub files: bool,
    /// Each deleted file whose extents the file system still has.
    pub deleted: bool,
    /// Each carved file, valid or partial, that is not one of the files above.
    pub carved: bool,
    /// Each member of the archives (zip and formats based on it, 7z, tar), and the content of each
    /// compressed file (gzip, xz, bzip2, Zstandard), among the source and its allocated files, and
    /// among deleted and carved files if these are scopes.
    pub members: bool,
}

impl Default for Scopes {
    fn default() -> Self {
        Scopes { source: true, files: true, ..Scopes::none() }
    }
}

impl Scopes {
    /// All scopes.
    #[must_use]
    pub fn all() -> Self {
        Scopes { source: true, files: true, deleted: true, carved: true, members: true }
    }

    fn none() -> Self {
        Scopes { source: false, files: false, deleted: false, carved: false, members: false }
    }

    /// Whether file systems must be read.
    pub(super) fn needs_files(self) -> bool {
        // Carved files that belong to a file system are left out, so it must be read.
        self.files || self.deleted || self.carved || self.members
    }

    fn named(self) -> [(&'static str, bool); 5] {
        [
            ("source", self.source),
            ("files", self.files),
            ("deleted", self.deleted),
            ("carved", self.carved),
            ("members", self.members),
        ]
    }
}

/// The names of the chosen scopes, joined by commas.
impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chosen = self.named().into_iter().filter(|(_, is_chosen)| *is_chosen);
        let names: Vec<&str> = chosen.map(|(name, _)| name).collect();
        f.write_str(&names.join(","))
    }
}

/// Parses names joined by commas, or `all`.
impl FromStr for Scopes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut scopes = Scopes::none();
        for name in text.split(',').map(str::trim) {
            match name {
                "source" => scopes.source = true,
                "files" => scopes.files = true,
                "deleted" => scopes.deleted = true,
                "carved" => scopes.carved = true,
                "members" => scopes.members = true,
                "all" => scopes = Scopes::all(),
                _ => {
                    return Err(format!(
                        "no scope '{name}'; there are source, files, deleted, carved, members and all"
                    ));
                }
            }
        }
        Ok(scopes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_shown() {
        assert_eq!(Scopes::default().to_string(), "source,files");
        assert_eq!("source, files".parse(), Ok(Scopes::default()));
        assert_eq!("all".parse(), Ok(Scopes::all()));
        assert_eq!(Scopes::all().to_string().parse(), Ok(Scopes::all()));
        let wrong = "files,slack".parse::<Scopes>().unwrap_err();
        assert!(wrong.contains("no scope 'slack'; there are source"), "{wrong}");
        assert!("".parse::<Scopes>().is_err());
    }
}
