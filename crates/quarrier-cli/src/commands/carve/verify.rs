//! `--verify`: whether an EWF image is what it was when it was made.

use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_ewf::{Check, EwfSource, Verified, is_ewf};

use crate::args::Carve;
use crate::commands::search::progress::Progress;
use crate::{Outcome, complain};

/// What came of the comparison.
pub(super) struct Verification {
    pub(super) outcome: Outcome,
    /// For the report.
    pub(super) told: String,
}

/// Reads the whole image, compares it with the hashes that are stored in it, and says on standard
/// error what came of it. None where nobody asked.
///
/// # Errors
/// In words, where there is no image, or no hash in it.
pub(super) fn verify(carve: &Carve, stop: &AtomicBool) -> Result<Option<Verification>, String> {
    if !carve.verify {
        return Ok(None);
    }
    let path = Path::new(&carve.source);
    let name = path.display().to_string();
    if !is_ewf(path) {
        return Err(format!("{name}: only EWF images (image.E01) have hashes to --verify"));
    }
    let image = EwfSource::open(path).map_err(|error| error.to_string())?;
    let stored = image.stored_hashes();
    if stored.md5.is_none() && stored.sha1.is_none() {
        // A hash that is damaged is told by `verify`.
        if let Err(error) = image.verify(&mut |_| false) {
            return Err(error.to_string());
        }
        return Err(format!("{name}: has no hash stored in it; carve it without --verify"));
    }
    let length = quarrier_core::source::Source::length(&image);
    let mut progress = Progress::new(&name, 0..length, carve.quiet);
    let verified = image.verify(&mut |done| {
        progress.advance_to(done);
        !stop.load(Ordering::Relaxed)
    });
    progress.clear();
    let (outcome, told) = match verified {
        Ok(Some(verified)) if verified.holds() => (Outcome::Found, in_words(&verified)),
        Ok(Some(verified)) => (Outcome::Incomplete, in_words(&verified)),
        Ok(None) => (Outcome::Interrupted, "interrupted while hashes were compared".to_string()),
        Err(error) => (Outcome::Incomplete, format!("stored hashes cannot be compared: {error}")),
    };
    complain(&format!("{name}: {told}"));
    Ok(Some(Verification { outcome, told }))
}

/// `stored MD5 2f5ec589…: matches; stored SHA-1 …: does not match (the bytes have …)`.
fn in_words(verified: &Verified) -> String {
    let md5 = verified.md5.map(|check| one("MD5", &check));
    let sha1 = verified.sha1.map(|check| one("SHA-1", &check));
    [md5, sha1].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn one<const N: usize>(name: &str, check: &Check<N>) -> String {
    let stored = hexadecimal(&check.stored);
    match check.stored == check.computed {
        true => format!("stored {name} {stored}: matches"),
        false => {
            let computed = hexadecimal(&check.computed);
            format!("stored {name} {stored}: does not match (the bytes have {computed})")
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
