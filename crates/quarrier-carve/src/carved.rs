//! Carved files: the places of their bytes, and their state.

use crate::view::Extent;

/// How whole a carved file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Valid to its end by its format, with correct checksums if it has any.
    Valid,
    /// Valid up to a byte where it breaks; or with a known end, but with a part that was not read.
    Partial,
    /// Only the header is valid.
    Header,
}

impl Status {
    /// Returns the word in reports: `valid`, `partial`, `header`.
    pub fn name(self) -> &'static str {
        match self {
            Status::Valid => "valid",
            Status::Partial => "partial",
            Status::Header => "header",
        }
    }

    /// Parses the word in reports.
    pub fn from_name(name: &str) -> Option<Status> {
        [Status::Valid, Status::Partial, Status::Header].into_iter().find(|s| s.name() == name)
    }
}

/// A carved file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carved {
    /// Its type, as named by `--types` and folders.
    pub kind: String,
    /// The ending of its name, without a dot.
    pub extension: String,
    /// The places of its bytes in the source, in the order of the file. Never empty.
    pub extents: Vec<Extent>,
    /// How whole it is.
    pub status: Status,
    /// Why it is not `valid`; empty if it is.
    pub reason: String,
    /// Whether its end is known. If such a file is not valid, a part of it was not read, but none
    /// of its bytes are missing.
    pub is_ended: bool,
}

impl Carved {
    /// The offset of its first byte in the source.
    pub fn offset(&self) -> u64 {
        self.extents.first().map_or(0, |extent| extent.offset)
    }

    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        self.extents.iter().map(|extent| extent.length).sum()
    }
}
