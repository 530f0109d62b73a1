//! Units: ranges of sources.

use std::ffi::OsString;
use std::ops::Range;

use quarrier::source::Version;
use quarrier_core::hex;
use sha2::{Digest, Sha256};

/// The default size of a unit in bytes.
pub const UNIT_BYTES: u64 = 1 << 30;

/// Bytes of a hash that are used in a name.
const NAME_BYTES: usize = 16;

/// A part of a source at a version. The findings that start in its range belong to it; its search also
/// reads some bytes around the range.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Unit {
    /// The name by which the source is opened. A URL may hold a secret.
    pub name: OsString,
    /// The name of the source in rows, without secrets.
    pub source: String,
    /// The version of the source.
    pub version: Version,
    /// The range of offsets.
    pub range: Range<u64>,
}

impl Unit {
    /// The length of the range in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }

    /// A name for the unit that depends only on source, version and range.
    #[must_use]
    pub fn id(&self) -> String {
        let Version { length, mark } = &self.version;
        let Range { start, end } = self.range;
        let identity = format!("{:?} {length} {mark:?} {start}..{end}", self.source);
        name_of(identity.as_bytes())
    }
}

/// Names bytes by the beginning of their hash, in hexadecimal.
pub(crate) fn name_of(bytes: &[u8]) -> String {
    let hash: [u8; 32] = Sha256::digest(bytes).into();
    hex::encode(&hash[..NAME_BYTES])
}
