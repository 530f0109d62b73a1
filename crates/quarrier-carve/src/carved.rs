//! Carved files: the places of their bytes, and their state.

use crate::view::Extent;

/// Whether a carved file is valid, partial, or a header.
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
    /// The type of the file, as named by `--types` and folders.
    pub kind: String,
    /// The extension of the file's name, without a dot.
    pub extension: String,
    /// The places of the file's bytes in the source, in the order of the file. Never empty.
    pub extents: Vec<Extent>,
    /// Whether the file is valid, partial, or a header.
    pub status: Status,
    /// Why the file is not `valid`; empty if it is.
    pub reason: String,
    /// Whether the end of the file is known. If such a file is not valid, a part of it was not
    /// read, but none of its bytes are missing.
    pub is_ended: bool,
}

impl Carved {
    /// Returns the offset of the file's first byte in the source.
    pub fn offset(&self) -> u64 {
        self.extents.first().map_or(0, |extent| extent.offset)
    }

    /// Returns the length of the file in bytes.
    pub fn length(&self) -> u64 {
        self.extents.iter().map(|extent| extent.length).sum()
    }
}
