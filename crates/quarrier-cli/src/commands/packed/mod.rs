//! Requests as bytes, for the workers of a cluster.

mod carve;
mod query;
mod search;

pub use carve::PackedCarve;
pub use query::{PackedContent, PackedQuery};
pub use search::PackedSearch;
pub(crate) use search::only_words;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use quarrier::{INSTRUCTION_BYTES_MAX, read_instructions};
use quarrier_core::hex;
use serde::{Deserialize, Serialize};

/// Maximum size of a packed request in bytes: several files of patterns, in hexadecimal.
pub const PACKED_BYTES_MAX: u64 = 4 * INSTRUCTION_BYTES_MAX;

/// A request for workers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PackedRequest {
    /// A search of ranges.
    Search(Box<PackedSearch>),
    /// Carving, source by source.
    Carve(Box<PackedCarve>),
    /// The strides of a source to carve, judged by ranges.
    Judge(Box<PackedCarve>),
    /// A fragment of a query, unit by unit.
    Query(Box<PackedQuery>),
}

impl PackedRequest {
    /// The request as bytes.
    ///
    /// # Errors
    /// A message, if memory is short.
    pub fn pack(&self) -> Result<Vec<u8>, String> {
        serde_json::to_vec(self).map_err(|error| error.to_string())
    }

    /// Parses the bytes of [`pack`](Self::pack).
    ///
    /// # Errors
    /// A message, if the bytes are no request.
    pub fn unpack(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|error| format!("the request is damaged: {error}"))
    }
}

/// Bytes, as text if they are UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Bytes {
    Text(String),
    Hex(String),
}

impl Bytes {
    pub(crate) fn read(path: &Path, what: &str, stop: &AtomicBool) -> Result<Self, String> {
        let bytes = read_instructions(path, what, stop).map_err(|error| error.to_string())?;
        Ok(Bytes::of(&bytes))
    }

    pub(crate) fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Bytes::Text(text.to_string()),
            Err(_) => Bytes::Hex(hex::encode(bytes)),
        }
    }

    pub(crate) fn to_vec(&self) -> Result<Vec<u8>, String> {
        match self {
            Bytes::Text(text) => Ok(text.as_bytes().to_vec()),
            Bytes::Hex(text) => {
                let pair = |digits: &[u8]| {
                    let digits = std::str::from_utf8(digits).ok()?;
                    u8::from_str_radix(digits, 16).ok()
                };
                let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(pair).collect();
                bytes.ok_or_else(|| "the request is damaged".to_string())
            }
        }
    }
}
