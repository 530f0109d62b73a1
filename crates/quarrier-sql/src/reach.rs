//! The files that statements may access.

use std::path::{Path, PathBuf};

use quarrier_core::name;

use crate::{Error, Result};

/// The files that statements may access, apart from open tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Reach {
    /// All files that this process may read, and remote sources.
    #[default]
    Everything,
    /// Files below a folder.
    Below(PathBuf),
    /// No files.
    Nothing,
}

impl Reach {
    /// Allows only files below a folder.
    ///
    /// # Errors
    /// There is no such folder.
    pub fn below(folder: &Path) -> Result<Self> {
        let real = folder.canonicalize().ok().filter(|real| real.is_dir());
        let name = folder.display().to_string();
        real.map(Reach::Below).ok_or_else(|| Error::table(&name, "there is no such folder"))
    }

    /// Whether the table functions that run engines are available.
    pub(crate) fn has_tables_of_the_engine(&self) -> bool {
        *self != Reach::Nothing
    }

    /// Whether measurements are allowed, which write files and keep the machine busy.
    pub(crate) fn has_gauge(&self) -> bool {
        *self == Reach::Everything
    }

    /// Checks that statements may access a file.
    ///
    /// # Errors
    /// Statements may not access it.
    pub(crate) fn check(&self, name: &str) -> Result<()> {
        let folder = match self {
            Reach::Everything => return Ok(()),
            Reach::Nothing => {
                return Err(denied(name, "statements cannot access files here"));
            }
            Reach::Below(folder) => folder,
        };
        // A path that resolves names one file: no glob, no partition, nothing remote.
        // Sources are opened by the same rule.
        let real = name::path_of(name).canonicalize();
        match real {
            Ok(real) if real.starts_with(folder) && real.is_file() => Ok(()),
            _ => Err(denied(name, "only files below the folder of --allow-files may be read")),
        }
    }
}

fn denied(name: &str, reason: &str) -> Error {
    Error::Denied { name: name.to_string(), reason: reason.to_string() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("in"), folder.path().join("out"));
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(inside.join("a.csv"), "x\n1\n").unwrap();
        std::fs::write(&outside, "x\n1\n").unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("link.csv")).unwrap();
        let reach = Reach::below(&inside).unwrap();
        let name = |tail: &str| inside.join(tail).display().to_string();
        assert!(reach.check(&name("a.csv")).is_ok());
        for tail in ["link.csv", "../out", "*.csv", "b.csv", ".", "a.csv#1"] {
            assert!(reach.check(&name(tail)).is_err(), "{tail}");
        }
        for name in ["/etc/passwd", "s3://a/b", "-", "", "https://localhost/a.csv"] {
            assert!(reach.check(name).is_err() && Reach::Nothing.check(name).is_err(), "{name}");
        }
        assert!(Reach::below(&outside).is_err());
        // A name in text stands for the bytes that it is opened by.
        let odd = |name: &[u8]| inside.join(std::ffi::OsStr::from_bytes(name));
        std::fs::write(odd(b"a\xff.csv"), "x\n1\n").unwrap();
        std::fs::write(odd(b"b\xff.csv"), "x\n1\n").unwrap();
        std::os::unix::fs::symlink(&outside, odd(br"b\xff.csv")).unwrap();
        assert!(reach.check(&name(r"a\xff.csv")).is_ok());
        assert!(reach.check(&name(r"b\xff.csv")).is_err());
    }
}
