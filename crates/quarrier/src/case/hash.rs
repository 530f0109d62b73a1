//! The hash of a whole source, computed while another reader uses the source.

use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_core::source::{Source, read_full_at};
use quarrier_core::threads::{in_scope, joined};
use quarrier_files::{Digests, HashKinds, Hasher};

/// Bytes per read.
const STEP_BYTES: usize = 1 << 20;

/// Runs `work`, and hashes `source` in parallel if requested: each finds the other's reads in the page
/// cache. Returns no hashes if stopped, or if part of the source cannot be read.
pub(crate) fn while_hashing<R>(
    source: Option<&dyn Source>,
    kinds: HashKinds,
    stop: &AtomicBool,
    work: impl FnOnce() -> R,
) -> (R, Option<Digests>) {
    let Some(source) = source else { return (work(), None) };
    std::thread::scope(|scope| {
        let hashing = in_scope(scope, "hash", || of_source(source, kinds, stop));
        let done = work();
        let hash = match hashing {
            Ok(hashing) => joined(hashing),
            // The system refused a thread.
            Err(_) => of_source(source, kinds, stop),
        };
        (done, hash)
    })
}

/// Computes the hashes of a source; `None` if stopped, or if part of it cannot be read.
pub(super) fn of_source(
    source: &dyn Source,
    kinds: HashKinds,
    stop: &AtomicBool,
) -> Option<Digests> {
    let mut hasher = Hasher::new(kinds);
    let mut buffer = vec![0; STEP_BYTES];
    let mut at = 0;
    while at < source.length() {
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        let step = STEP_BYTES.min(usize::try_from(source.length() - at).unwrap_or(STEP_BYTES));
        let read = read_full_at(source, at, &mut buffer[..step]).ok()?;
        if read < step {
            return None;
        }
        hasher.update(&buffer[..step]);
        at += step as u64;
    }
    Some(hasher.finish())
}

/// Computes length and hashes of a file.
///
/// # Errors
/// The system's error.
pub(crate) fn of_file(mut file: File, kinds: HashKinds) -> io::Result<(u64, Digests)> {
    let mut hasher = Hasher::new(kinds);
    let mut buffer = vec![0; STEP_BYTES];
    let mut length = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok((length, hasher.finish())),
            Ok(bytes) => {
                hasher.update(&buffer[..bytes]);
                length += bytes as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
