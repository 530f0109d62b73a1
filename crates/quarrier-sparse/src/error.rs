//! Errors.

use std::fmt;

use crate::Span;

/// The result of an operation on sparse files.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation was refused. No error loses bytes that were held.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A range ends after the greatest offset, 2^64 - 1.
    Overflow {
        /// Start of the range.
        offset: u64,
        /// Length of the range in bytes.
        length: u64,
    },
    /// A read of bytes that are not all held.
    NotHeld {
        /// Start of the read.
        offset: u64,
        /// Length of the read in bytes.
        length: u64,
        /// The first missing range in it.
        missing: Span,
    },
    /// A write differs from the bytes held.
    Conflict {
        /// The first byte that differs.
        offset: u64,
        /// The byte held.
        held: u8,
        /// The byte to write.
        given: u8,
    },
    /// A range ends after the end of the file, whose length is known.
    BeyondLength {
        /// Start of the range.
        offset: u64,
        /// Length of the range in bytes.
        length: u64,
        /// The file's length in bytes.
        file_length: u64,
    },
    /// Bytes to erase are pinned, or a pin to remove does not exist.
    Pinned {
        /// The range in use.
        span: Span,
    },
    /// Stored bytes are not a valid sparse file.
    Corrupt {
        /// Offset in the stored bytes.
        at: usize,
        /// The defect.
        reason: &'static str,
    },
    /// The store has no file with this name.
    Unknown {
        /// The name.
        id: String,
    },
    /// The store already has a file with this name.
    Exists {
        /// The name.
        id: String,
    },
}

impl Span {
    /// The offset after the last byte.
    ///
    /// # Errors
    /// [`Error::Overflow`] if it exceeds 2^64 - 1.
    pub(crate) fn checked_end(&self) -> Result<u64> {
        self.offset
            .checked_add(self.length)
            .ok_or(Error::Overflow { offset: self.offset, length: self.length })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Overflow { offset, length } => {
                write!(f, "{length} bytes at offset {offset} exceed the greatest offset, 2^64 - 1")
            }
            Error::NotHeld { offset, length, missing } => write!(
                f,
                "{length} bytes at offset {offset} are not all held: {} bytes at offset {} are \
                 missing; ask need() what to fetch",
                missing.length, missing.offset
            ),
            Error::Conflict { offset, held, given } => write!(
                f,
                "the write differs from the bytes held at offset {offset}: {given:#04x} is given, \
                 {held:#04x} is held; was the file changed?"
            ),
            Error::BeyondLength { offset, length, file_length } => write!(
                f,
                "{length} bytes at offset {offset} exceed the end of the file, which is \
                 {file_length} bytes long"
            ),
            Error::Pinned { span } => {
                write!(f, "{} bytes at offset {} are in use", span.length, span.offset)
            }
            Error::Corrupt { at, reason } => {
                write!(f, "not a stored sparse file: {reason} (at byte {at})")
            }
            Error::Unknown { id } => write!(f, "no file '{id}' in the store"),
            Error::Exists { id } => write!(f, "the store already has a file '{id}'"),
        }
    }
}

impl std::error::Error for Error {}
