//! Why a request to a tree fails.

use std::fmt;

/// Why a request to a [`Tree`](super::Tree) fails, as a program that reads files sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// There is no such file.
    NotFound,
    /// The bytes cannot be read.
    Unreadable,
    /// The folder is a file.
    NotAFolder,
    /// The file is a folder.
    IsAFolder,
    /// No stored data follows the offset, or the file ends at or before it.
    PastEnd,
}

impl Fault {
    /// The number of the system's error: `ENOENT`, `EIO`, `ENOTDIR`, `EISDIR`, `ENXIO`.
    pub fn errno(self) -> i32 {
        // These numbers are the same on all systems with FUSE.
        match self {
            Fault::NotFound => 2,
            Fault::Unreadable => 5,
            Fault::PastEnd => 6,
            Fault::NotAFolder => 20,
            Fault::IsAFolder => 21,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::NotFound => "no such file",
            Fault::Unreadable => "the bytes cannot be read",
            Fault::NotAFolder => "is not a folder",
            Fault::IsAFolder => "is a folder",
            Fault::PastEnd => "no data follows",
        })
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::Fault;

    #[test]
    fn faults_have_the_numbers_of_this_system() {
        let check = |fault: Fault, kind| {
            assert_eq!(Error::from_raw_os_error(fault.errno()).kind(), kind, "{fault}");
        };
        check(Fault::NotFound, ErrorKind::NotFound);
        check(Fault::NotAFolder, ErrorKind::NotADirectory);
        check(Fault::IsAFolder, ErrorKind::IsADirectory);
        let text = |fault: Fault| Error::from_raw_os_error(fault.errno()).to_string();
        assert!(text(Fault::Unreadable).starts_with("Input/output error"));
        assert!(text(Fault::PastEnd).starts_with("No such device or address"));
    }
}
