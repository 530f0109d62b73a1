//! Verifies an output folder, and the source it came from, against the case file.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_core::name;
use quarrier_core::source::Source;
use serde_json::Value;

use super::hash::{of_file, of_source};
use super::{CASE, SEAL};
use crate::{Error, Result};
use quarrier_files::{Digests, HashKinds, Hasher};

/// Maximum size of a case file.
const CASE_BYTES_MAX: u64 = 4 << 30;
/// Maximum number of differences in the list; the rest are only counted.
const TOLD_MAX: usize = 1000;

/// Differences from the case file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differences {
    /// The first differences, a line each.
    pub lines: Vec<String>,
    /// The number of differences.
    pub count: u64,
    /// The number of files that were compared.
    pub files: u64,
    /// Items that could not be compared, a line each, such as a missing source.
    pub left_out: Vec<String>,
    /// Whether the comparison was stopped before the end.
    pub stopped: bool,
}

impl Differences {
    fn add(&mut self, line: String) {
        self.count += 1;
        if self.lines.len() < TOLD_MAX {
            self.lines.push(line);
        }
    }
}

/// The name of the source in a case file.
struct Case {
    value: Value,
    is_sealed: bool,
}

/// Compares every file in `folder`, its case file, and the source that `open` opens by its name.
///
/// # Errors
/// [`Error::Request`] if the case file is missing or cannot be read.
pub fn verify(
    folder: &Path,
    open: &mut dyn FnMut(&str) -> Result<Box<dyn Source>>,
    stop: &AtomicBool,
) -> Result<Differences> {
    let case = read(folder)?;
    let mut found = Differences::default();
    if !case.is_sealed {
        found.add(format!("{CASE}: was changed: its seal does not match its contents"));
    }
    let mut known = HashSet::from([CASE.to_string()]);
    for output in case.value["outputs"].as_array().into_iter().flatten() {
        if stop.load(Ordering::Relaxed) {
            found.stopped = true;
            return Ok(found);
        }
        let Some(path) = output["path"].as_str() else {
            found.add(format!("{CASE}: an output without a path"));
            continue;
        };
        known.insert(path.to_string());
        found.files += 1;
        let kinds = kinds_in(output);
        match open_inside(folder, path).and_then(|file| of_file(file, kinds)) {
            Err(error) => found.add(format!("{path}: {error}")),
            Ok((bytes, _)) if Some(bytes) != output["bytes"].as_u64() => {
                let before = output["bytes"].as_u64().unwrap_or(0);
                found.add(format!("{path}: has {bytes} bytes, and had {before}"));
            }
            Ok((_, digests)) => {
                if let Some(hash) = difference(output, &digests, kinds) {
                    found.add(format!("{path}: was changed: its {hash}"));
                }
            }
        }
    }
    others(folder, &known, &mut found);
    let several = case.value["sources"].as_array();
    for one in several.map_or_else(|| vec![&case.value["source"]], |all| all.iter().collect()) {
        if stop.load(Ordering::Relaxed) {
            found.stopped = true;
            break;
        }
        source(one, open, stop, &mut found);
    }
    Ok(found)
}

/// Reads the case file.
fn read(folder: &Path) -> Result<Case> {
    let refused =
        |why: &str| Error::Request(format!("{}: {why}", name::of_path(folder.join(CASE))));
    let file = open_inside(folder, CASE).map_err(|error| refused(&error.to_string()))?;
    if file.metadata().is_ok_and(|meta| meta.len() > CASE_BYTES_MAX) {
        return Err(refused("is too large for a case file"));
    }
    let text = io::read_to_string(file).map_err(|error| refused(&error.to_string()))?;
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| refused(&format!("is not a case file: {error}")))?;
    if !value["outputs"].is_array() {
        return Err(refused("is not a case file of quarrier"));
    }
    let end = text.rfind(&format!("\n{SEAL}")).map_or(text.len(), |at| at + 1);
    let mut hasher = Hasher::sha256();
    hasher.update(&text.as_bytes()[..end]);
    let is_sealed = value["seal"].as_str() == Some(&hasher.finish().sha256_hex());
    Ok(Case { value, is_sealed })
}

/// Opens a file of the folder; refuses paths that leave it or pass a link.
fn open_inside(folder: &Path, path: &str) -> io::Result<File> {
    let relative = Path::new(path);
    let mut whole = folder.to_path_buf();
    for part in relative.components() {
        let Component::Normal(name) = part else {
            return Err(io::Error::other("leads out of the folder"));
        };
        whole.push(name);
        if fs::symlink_metadata(&whole)?.is_symlink() {
            return Err(io::Error::other("is a link"));
        }
    }
    if !fs::metadata(&whole)?.is_file() {
        return Err(io::Error::other("is not a regular file"));
    }
    File::open(&whole)
}

/// Reports files that are not in the case file.
fn others(folder: &Path, known: &HashSet<String>, found: &mut Differences) {
    let mut folders: Vec<PathBuf> = vec![PathBuf::new()];
    while let Some(place) = folders.pop() {
        let Ok(entries) = fs::read_dir(folder.join(&place)) else { continue };
        let mut names: Vec<_> = entries.flatten().collect();
        names.sort_by_key(|entry| entry.file_name());
        for entry in names {
            let path = place.join(entry.file_name());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if !path.to_str().is_some_and(|path| known.contains(path)) {
                found.add(format!("{}: is not in {CASE}", name::of_path(path)));
            }
        }
    }
}

/// Compares the source.
fn source(
    recorded: &Value,
    open: &mut dyn FnMut(&str) -> Result<Box<dyn Source>>,
    stop: &AtomicBool,
    found: &mut Differences,
) {
    let Some(name) = recorded["name"].as_str() else { return };
    let source = match open(name) {
        Ok(source) => source,
        Err(error) => return found.left_out.push(format!("the source was not compared: {error}")),
    };
    let Some(before) = recorded["bytes"].as_u64() else {
        return found.left_out.push(format!("{name}: its length was not recorded"));
    };
    if source.length() != before {
        return found.add(format!("{name}: has {} bytes, and had {before}", source.length()));
    }
    if recorded["sha256"].as_str().is_none() {
        return found
            .left_out
            .push(format!("{name}: its hash was not recorded, so only its length is compared"));
    }
    let kinds = kinds_in(recorded);
    match of_source(&*source, kinds, stop) {
        Some(digests) => {
            if let Some(hash) = difference(recorded, &digests, kinds) {
                found.add(format!("{name}: was changed: its {hash}"));
            }
        }
        None if stop.load(Ordering::Relaxed) => found.stopped = true,
        None => found.left_out.push(format!("{name}: cannot be read as a whole")),
    }
}

/// The hashes that `recorded`, an entry of the case file, has besides SHA-256.
fn kinds_in(recorded: &Value) -> HashKinds {
    let has = |name: &str| !recorded[name].is_null();
    HashKinds { md5: has("md5"), sha1: has("sha1"), blake3: has("blake3") }
}

/// The first hash that differs from `recorded`, in words.
fn difference(recorded: &Value, digests: &Digests, kinds: HashKinds) -> Option<String> {
    let all = digests.named(kinds).into_iter().chain([("sha256", digests.sha256_hex())]);
    let (name, hash) =
        all.into_iter().find(|(name, hash)| recorded[*name].as_str() != Some(hash.as_str()))?;
    let name = match name {
        "md5" => "MD5",
        "sha1" => "SHA-1",
        "blake3" => "BLAKE3",
        _ => "SHA-256",
    };
    Some(format!("{name} is {hash}"))
}
