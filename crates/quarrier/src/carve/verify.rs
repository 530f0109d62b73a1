//! Verifies an EWF or AFF4 image against its stored hashes.

use std::path::Path;
use std::sync::Arc;

use quarrier_core::hex;
use quarrier_core::name;
use quarrier_core::source::Source;
use quarrier_images::ewf::{Check, EwfSource, Verified};
use quarrier_images::{Kind, aff4};

use crate::{Error, Result};

/// The outcome of the comparison with the hashes stored in an image.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verification {
    /// All stored hashes match; their names, as a sentence.
    Matches(String),
    /// A hash differs or cannot be compared; the reason, as a sentence.
    Differs(String),
    /// The comparison was stopped before the end.
    Interrupted,
}

impl Verification {
    /// Describes the outcome for people.
    pub fn describe(&self) -> &str {
        match self {
            Verification::Matches(words) | Verification::Differs(words) => words,
            Verification::Interrupted => "interrupted while hashes were compared",
        }
    }
}

/// Reads the whole image and compares it with its stored hashes. `progress` receives the number of
/// bytes read and the total, and returns `false` to stop.
///
/// # Errors
/// [`Error::Unsupported`] if the image has another format or stores no hash; [`Error::Source`] if it
/// cannot be opened.
pub fn verify(path: &Path, progress: &mut dyn FnMut(u64, u64) -> bool) -> Result<Verification> {
    let refuse = |reason: &str| {
        let (name, reason) = (name::of_path(path), reason.to_string());
        Err(Error::Unsupported { name, reason })
    };
    let file = quarrier_core::source::open(path)?;
    match Kind::of(&*file, false) {
        Some(Kind::Ewf) => {}
        Some(Kind::Aff4) => {
            let stored = aff4::StoredHashes::read(&Arc::from(file))?;
            return match stored.is_empty() {
                true => refuse("has no hash of its bytes stored in it; carve it without --verify"),
                false => Ok(verify_aff4(&stored, progress)),
            };
        }
        _ => {
            return refuse(
                "only EWF images (image.E01) and AFF4 images (image.aff4) have hashes to --verify",
            );
        }
    }
    let image = EwfSource::open(path).map_err(quarrier_core::Error::from)?;
    let stored = image.stored_hashes();
    if stored.md5.is_none() && stored.sha1.is_none() {
        // `verify` below reports a damaged hash section, which looks like a missing hash here.
        if let Err(error) = image.verify(&mut |_| false) {
            return Err(Error::Source(error.into()));
        }
        return refuse("has no hash stored in it; carve it without --verify");
    }
    let length = image.length();
    Ok(match image.verify(&mut |done| progress(done, length)) {
        Ok(Some(verified)) if verified.holds() => Verification::Matches(describe(&verified)),
        Ok(Some(verified)) => Verification::Differs(describe(&verified)),
        Ok(None) => Verification::Interrupted,
        Err(error) => Verification::Differs(format!("stored hashes cannot be compared: {error}")),
    })
}

/// Compares the hashes of an AFF4 image with its bytes.
fn verify_aff4(
    stored: &aff4::StoredHashes,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Verification {
    let bytes = stored.bytes();
    let checks = match stored.verify(&mut |done| progress(done, bytes)) {
        Ok(Some(checks)) => checks,
        Ok(None) => return Verification::Interrupted,
        Err(error) => {
            return Verification::Differs(format!("stored hashes cannot be compared: {error}"));
        }
    };
    let words: Vec<String> = checks
        .iter()
        .map(|check| {
            let name = format!("{} of the {}", check.name, check.of);
            outcome(&name, &check.stored, &check.computed)
        })
        .collect();
    match checks.iter().all(|check| check.stored == check.computed) {
        true => Verification::Matches(words.join("; ")),
        false => Verification::Differs(words.join("; ")),
    }
}

/// `stored MD5 2f5ec589…: matches; stored SHA-1 …: does not match (the bytes have …)`.
fn describe(verified: &Verified) -> String {
    let md5 = verified.md5.map(|check| one("MD5", &check));
    let sha1 = verified.sha1.map(|check| one("SHA-1", &check));
    [md5, sha1].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn one<const N: usize>(name: &str, check: &Check<N>) -> String {
    outcome(name, &hex::encode(&check.stored), &hex::encode(&check.computed))
}

fn outcome(name: &str, stored: &str, computed: &str) -> String {
    match stored == computed {
        true => format!("stored {name} {stored}: matches"),
        false => format!("stored {name} {stored}: does not match (the bytes have {computed})"),
    }
}
