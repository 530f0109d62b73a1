//! `--signatures FILE`.

use quarrier_carve::folder::fingerprint;
use quarrier_carve::format::ALL;
use quarrier_carve::{Format, own};

use crate::args::Carve;

/// The user's signatures, and what tells them from others.
#[derive(Default)]
pub(super) struct Own {
    formats: Vec<Box<dyn Format>>,
    pub(super) fingerprint: Option<String>,
}

impl Own {
    /// Reads the file that was named, if there is one.
    ///
    /// # Errors
    /// In words.
    pub(super) fn read(carve: &Carve) -> Result<Self, String> {
        let Some(path) = &carve.signatures else { return Ok(Own::default()) };
        let name = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|error| format!("{name}: cannot read: {error}"))?;
        let formats = own::read(&name, &bytes).map_err(|error| error.to_string())?;
        Ok(Own { formats, fingerprint: Some(fingerprint(&bytes)) })
    }

    /// All formats: those built in, then these.
    pub(super) fn with_all(&self) -> Vec<&dyn Format> {
        let own = self.formats.iter().map(|format| &**format);
        ALL.iter().copied().chain(own).collect()
    }
}
