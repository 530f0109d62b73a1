//! Builds the request from the options.

use std::sync::atomic::AtomicBool;

use quarrier::Carve as Request;
use quarrier::carve::{Signatures, read_known};

use crate::args::{Carve, hash_kinds};
use crate::host;

/// The request for these options.
///
/// # Errors
/// A message for the user, if the user's signatures or hashes cannot be read or are wrong.
pub(super) fn request(carve: &Carve, stop: &AtomicBool) -> Result<Request, String> {
    let read = |path: &std::path::Path| Signatures::read(path, stop);
    let signatures = carve.signatures.as_deref().map(read).transpose();
    let known = match carve.known.is_empty() {
        true => None,
        false => Some(read_known(&carve.known).map_err(|error| error.to_string())?),
    };
    Ok(Request::new()
        .folder(carve.folder.clone())
        .resume(carve.resume)
        .types(carve.types.clone())
        .signatures(signatures.map_err(|error| error.to_string())?)
        .keep_broken(carve.keeps_broken)
        .file_bytes_max(carve.file_bytes_max)
        .range(carve.range.clone())
        .embedded(carve.embedded)
        .unallocated(carve.unallocated)
        .locate(carve.locates)
        .known(known)
        .skip_known(carve.skips_known)
        .hashes(hash_kinds(&carve.hashes))
        .notes(host::notes(&carve.line))
        .thorough(carve.thorough)
        .workers(carve.workers)
        .memory_bytes_max(carve.memory_bytes_max))
}
