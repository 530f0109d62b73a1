//! The user's own signatures.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_carve::folder::fingerprint;
use quarrier_carve::format::ALL;
use quarrier_carve::{Format, own};
use quarrier_core::name;

use crate::{Result, read_instructions};

/// Formats that a signature file describes.
#[derive(Clone)]
#[must_use]
pub struct Signatures {
    formats: Arc<[Box<dyn Format>]>,
    pub(super) fingerprint: String,
}

impl Signatures {
    /// Reads a signature file of at most [`INSTRUCTION_BYTES_MAX`](crate::INSTRUCTION_BYTES_MAX) bytes.
    ///
    /// # Errors
    /// [`Error::Request`](crate::Error::Request) if it cannot be read,
    /// [`Error::Carve`](crate::Error::Carve) if it is invalid,
    /// [`Error::Stopped`](crate::Error::Stopped) soon after `stop` becomes true.
    pub fn read(path: &Path, stop: &AtomicBool) -> Result<Self> {
        let bytes = read_instructions(path, "signatures", stop)?;
        Self::parse(&name::of_path(path), &bytes)
    }

    /// Parses the bytes of a signature file. `name` is the file's name in errors.
    ///
    /// # Errors
    /// [`Error::Carve`](crate::Error::Carve) if they are invalid.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self> {
        let formats = own::read(name, bytes)?;
        Ok(Signatures { formats: formats.into(), fingerprint: fingerprint(bytes) })
    }
}

impl std::fmt::Debug for Signatures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signatures").field("formats", &self.formats.len()).finish()
    }
}

/// All formats: the built-in ones, then the user's.
pub(super) fn all(own: Option<&Signatures>) -> Vec<&dyn Format> {
    let own = own.map_or(&[][..], |own| &own.formats);
    ALL.iter().copied().chain(own.iter().map(|format| &**format)).collect()
}
