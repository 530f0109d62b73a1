//! A request to carve for workers on other machines, which do not have its file of signatures.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use quarrier::Carve as Request;
use quarrier::carve::{Signatures, read_known};
use quarrier_units::WhatToTry;
use serde::{Deserialize, Serialize};

use super::Bytes;
use crate::args::{Carve, hash_kinds};
use crate::commands::carve::what_to_try;
use crate::host;

/// Everything that determines the files that are found and written. It holds no credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedCarve {
    /// The output folder, as all workers find it.
    folder: Option<Vec<u8>>,
    is_single: bool,
    types: Option<Vec<String>>,
    signatures: Option<(String, Bytes)>,
    embedded: bool,
    file_bytes_max: Option<u64>,
    keeps_broken: bool,
    thorough: bool,
    memory_bytes_max: u64,
    range: (u64, u64),
    unallocated: bool,
    locates: bool,
    /// Files of hashes, as all workers find them: they may be too large to send.
    known: Vec<Vec<u8>>,
    skips_known: bool,
    hashes: Vec<String>,
    line: String,
    /// Whether lines about a source name options that may help.
    has_options: bool,
    /// Whether rows have digests.
    is_digested: bool,
}

/// The memory for carving without a command line, in bytes: the default of [`Request`].
const MEMORY_BYTES_MAX: u64 = 1 << 30;

impl PackedCarve {
    /// Reads the signatures of a request over several sources.
    ///
    /// # Errors
    /// A message for the user, if the file cannot be read.
    pub(crate) fn of(carve: &Carve, stop: &AtomicBool) -> Result<Self, String> {
        let absolute = |path: &PathBuf| {
            let whole = std::path::absolute(path);
            let whole = whole.map_err(|error| format!("{}: {error}", path.display()))?;
            Ok::<_, String>(whole.as_os_str().as_bytes().to_vec())
        };
        let signatures = carve.signatures.as_deref().map(|path: &Path| {
            Ok::<_, String>((path.display().to_string(), Bytes::read(path, "signatures", stop)?))
        });
        Ok(PackedCarve {
            folder: carve.folder.as_ref().map(absolute).transpose()?,
            is_single: false,
            types: carve.types.clone(),
            signatures: signatures.transpose()?,
            embedded: carve.embedded,
            file_bytes_max: carve.file_bytes_max,
            keeps_broken: carve.keeps_broken,
            thorough: carve.thorough,
            memory_bytes_max: carve.memory_bytes_max,
            range: (carve.range.start, carve.range.end),
            unallocated: carve.unallocated,
            locates: carve.locates,
            known: carve.known.iter().map(absolute).collect::<Result<_, _>>()?,
            skips_known: carve.skips_known,
            hashes: carve.hashes.clone(),
            line: carve.line.clone(),
            has_options: true,
            is_digested: true,
        })
    }

    /// Packs a request without a command line, for rows only: files of these types, broken ones too if
    /// `keeps_broken`, with their SHA-256 if `is_digested`.
    #[must_use]
    pub fn of_types(types: Option<Vec<String>>, keeps_broken: bool, is_digested: bool) -> Self {
        PackedCarve {
            folder: None,
            is_single: true,
            types,
            signatures: None,
            embedded: false,
            file_bytes_max: None,
            keeps_broken,
            thorough: false,
            memory_bytes_max: MEMORY_BYTES_MAX,
            range: (0, u64::MAX),
            unallocated: false,
            locates: false,
            known: Vec::new(),
            skips_known: false,
            hashes: Vec::new(),
            line: String::new(),
            has_options: false,
            is_digested,
        }
    }

    /// What a user may do about ranges that were examined less closely.
    #[must_use]
    pub fn hint(&self) -> WhatToTry {
        match self.has_options {
            true => what_to_try,
            false => |_| "",
        }
    }

    /// Sets whether a single source has the output folder for itself.
    pub(crate) fn single(self, is_single: bool) -> Self {
        PackedCarve { is_single, ..self }
    }

    /// Whether a single source has the output folder for itself.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.is_single
    }

    /// The request. `workers` is the number of threads for a source.
    ///
    /// # Errors
    /// A message for the user, if the signatures are invalid, or a file of hashes cannot be read.
    pub fn request(&self, workers: usize) -> Result<Request, String> {
        let path = |bytes: &Vec<u8>| PathBuf::from(OsString::from_vec(bytes.clone()));
        let signatures = self.signatures.as_ref().map(|(name, bytes)| {
            let parsed = Signatures::parse(name, &bytes.to_vec()?);
            parsed.map_err(|error| error.to_string())
        });
        let known: Vec<PathBuf> = self.known.iter().map(path).collect();
        let known = match known.is_empty() {
            true => None,
            false => Some(read_known(&known).map_err(|error| error.to_string())?),
        };
        Ok(Request::new()
            .folder(self.folder.as_ref().map(path))
            .types(self.types.clone())
            .signatures(signatures.transpose()?)
            .keep_broken(self.keeps_broken)
            .file_bytes_max(self.file_bytes_max)
            .range(self.range.0..self.range.1)
            .embedded(self.embedded)
            .unallocated(self.unallocated)
            .locate(self.locates)
            .known(known)
            .skip_known(self.skips_known)
            .hashes(hash_kinds(&self.hashes))
            .notes(host::notes(&self.line))
            .digests(self.is_digested)
            .thorough(self.thorough)
            .workers(workers)
            .memory_bytes_max(self.memory_bytes_max))
    }
}
