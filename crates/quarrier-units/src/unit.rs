//! Units: ranges of sources.

use std::ffi::OsString;
use std::ops::Range;

use quarrier::source::Version;
use quarrier_core::hex;
use sha2::{Digest, Sha256};

/// The bytes of a unit, where no other number was asked for.
pub const UNIT_BYTES: u64 = 1 << 30;

/// Bytes of a hash that names something.
const NAME_BYTES: usize = 16;

/// A part of a source at a version. The findings that start in its range are its own; its search reads some
/// bytes around the range, too.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Unit {
    /// The name by which the source is opened. A URL may hold a secret.
    pub name: OsString,
    /// The name of the source in rows, without secrets.
    pub source: String,
    /// The version of the source.
    pub version: Version,
    /// The offsets.
    pub range: Range<u64>,
}

impl Unit {
    /// How many bytes its range has.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }

    /// A name for it that depends on source, version and range alone.
    #[must_use]
    pub fn id(&self) -> String {
        let Version { length, mark } = &self.version;
        let Range { start, end } = self.range;
        let identity = format!("{:?} {length} {mark:?} {start}..{end}", self.source);
        name_of(identity.as_bytes())
    }
}

/// A name for some bytes: the beginning of their hash in hexadecimal.
pub(crate) fn name_of(bytes: &[u8]) -> String {
    let hash: [u8; 32] = Sha256::digest(bytes).into();
    hex::encode(&hash[..NAME_BYTES])
}
