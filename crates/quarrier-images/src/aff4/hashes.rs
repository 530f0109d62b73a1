//! Verifies the hashes stored in an image.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use md5::Md5;
use quarrier_core::source::Source;
use quarrier_core::{Error, Result, hex};
use sha1::Sha1;
use sha1::digest::DynDigest;
use sha2::{Sha256, Sha512};

use super::graph::{SCHEMA, Thing};
use super::turtle::Term;
use super::{Parts, parts};
use crate::fault::damaged;

/// Bytes read at once.
const STEP_BYTES: usize = 1 << 20;

/// A stored hash and the computed one, both in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The hash function: `SHA-1`.
    pub name: &'static str,
    /// The hashed bytes: `disk`, or `data stream`, the stored bytes of the disk.
    pub of: &'static str,
    /// The hash stored in the image.
    pub stored: String,
    /// The hash computed from the bytes.
    pub computed: String,
}

/// The hashes stored in an AFF4 image, over the disk and over each of its streams. Excludes hashes over
/// other hashes.
pub struct StoredHashes {
    name: String,
    stored: Vec<Stored>,
}

/// The hashes of one source.
struct Stored {
    source: Arc<dyn Source>,
    of: &'static str,
    hashes: Vec<(&'static str, String)>,
}

impl std::fmt::Debug for StoredHashes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hashes: Vec<_> = self.stored.iter().flat_map(|stored| &stored.hashes).collect();
        f.debug_struct("StoredHashes").field("name", &self.name).field("hashes", &hashes).finish()
    }
}

impl StoredHashes {
    /// Finds the hashes of an image; reads its description and its map.
    ///
    /// # Errors
    /// Those of [`open`](crate::open).
    pub fn read(file: &Arc<dyn Source>) -> Result<Self> {
        let Parts { disk, described, streams, graph, .. } =
            parts(file, None, &AtomicBool::new(false))?;
        let mut stored = Vec::new();
        let mut add = |source: &Arc<dyn Source>, of: &'static str, urns: &[String]| {
            let mut hashes = Vec::new();
            for thing in urns.iter().filter_map(|urn| graph.get(urn)) {
                hashes.extend(of_thing(&**file, thing)?);
            }
            if !hashes.is_empty() {
                stored.push(Stored { source: Arc::clone(source), of, hashes });
            }
            Ok::<(), Error>(())
        };
        // If the disk is a single stream, its hash is stored with that stream.
        let (disk, mut streams): (Arc<dyn Source>, _) = (Arc::new(disk), streams);
        streams.retain(|(urn, _)| !described.contains(urn));
        add(&disk, "disk", &described)?;
        for (urn, stream) in streams {
            add(&stream, "data stream", &[urn])?;
        }
        Ok(StoredHashes { name: file.name().to_string(), stored })
    }

    /// Whether no hash is stored.
    pub fn is_empty(&self) -> bool {
        self.stored.is_empty()
    }

    /// The number of bytes that a full verification reads.
    pub fn bytes(&self) -> u64 {
        self.stored.iter().fold(0, |all, stored| all.saturating_add(stored.source.length()))
    }

    /// Reads the bytes, and compares their hashes with those stored. Decompresses and hashes every byte
    /// on the calling thread.
    ///
    /// `progress` gets the number of bytes done; if it returns `false`, the verification stops with
    /// `None`.
    ///
    /// # Errors
    /// [`Error::Io`] for the first bytes that cannot be read.
    pub fn verify(&self, progress: &mut dyn FnMut(u64) -> bool) -> Result<Option<Vec<Check>>> {
        let (mut checks, mut before) = (Vec::new(), 0);
        let mut buffer = vec![0; STEP_BYTES];
        for Stored { source, of, hashes } in &self.stored {
            let mut hashing: Vec<_> = hashes
                .iter()
                .filter_map(|(name, stored)| Some((*name, stored, function(name)?)))
                .collect();
            let mut done = 0;
            while done < source.length() {
                let read = match source.read_at(done, &mut buffer) {
                    Ok(0) => Err(std::io::ErrorKind::UnexpectedEof.into()),
                    read => read,
                };
                let what = || format!("read the {of} at byte {done}");
                let read = read.map_err(|error| Error::io(&self.name, what(), error))?;
                hashing.iter_mut().for_each(|(_, _, hash)| hash.update(&buffer[..read]));
                done += read as u64;
                if !progress(before + done) {
                    return Ok(None);
                }
            }
            before += done;
            for (name, stored, mut hash) in hashing {
                let mut computed = vec![0; hash.output_size()];
                if hash.finalize_into_reset(&mut computed).is_ok() {
                    let (stored, computed) = (stored.clone(), hex::encode(&computed));
                    checks.push(Check { name, of, stored, computed });
                }
            }
        }
        Ok(Some(checks))
    }
}

/// The hash function with this AFF4 name.
fn function(name: &str) -> Option<Box<dyn DynDigest>> {
    Some(match name {
        "MD5" => Box::new(Md5::default()),
        "SHA-1" => Box::new(Sha1::default()),
        "SHA-256" => Box::new(Sha256::default()),
        "SHA-512" => Box::new(Sha512::default()),
        _ => return None,
    })
}

/// The hashes stored with an object, in lower-case hexadecimal.
fn of_thing(file: &dyn Source, thing: &Thing) -> Result<Vec<(&'static str, String)>> {
    let mut hashes = Vec::new();
    for value in thing.all("hash") {
        let Term::Literal { text, kind } = value else { continue };
        let (name, digits) = match kind.strip_prefix(SCHEMA) {
            Some("MD5") => ("MD5", 32),
            Some("SHA1") => ("SHA-1", 40),
            Some("SHA256") => ("SHA-256", 64),
            Some("SHA512") => ("SHA-512", 128),
            _ => continue,
        };
        if text.len() != digits || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(damaged(file, 0, format!("a stored {name} is invalid")));
        }
        hashes.push((name, text.to_ascii_lowercase()));
    }
    hashes.sort_unstable();
    hashes.dedup();
    Ok(hashes)
}
