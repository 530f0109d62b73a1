//! Managing the cache on disk: listing, verifying and removing objects.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use quarrier_core::ranges::push_merged;
use quarrier_sparse::Span;

use super::about::About;
use super::{Evictable, Folder};
use crate::journal::{Claim, Claims, HEADER_BYTES, Header, RECORD_BYTES};
use crate::options::CacheOptions;

/// Bytes of journal records read at once.
const RECORDS_BYTES: u64 = 1 << 20;
const _: () = assert!(RECORDS_BYTES.is_multiple_of(RECORD_BYTES as u64));

/// A cache folder, in the format of [`Remote`](crate::Remote).
pub struct Cache {
    folder: Folder,
}

/// A version of an object in a cache folder.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CachedObject {
    /// Its URL, without query and password; `None` if an earlier version of this crate stored it.
    pub name: Option<String>,
    /// The ETag of this version.
    pub etag: Option<String>,
    /// Its Last-Modified date, as sent by the server.
    pub last_modified: Option<String>,
    /// The length of the object in bytes.
    pub length: u64,
    /// The number of its bytes in the cache.
    pub held_bytes: u64,
    /// Bytes used on disk.
    pub disk_bytes: u64,
    /// When it was last opened.
    pub used: SystemTime,
    files: Evictable,
}

/// The result of verifying cached bytes against their checksums.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// Number of bytes verified.
    pub bytes: u64,
    /// Ranges of the object whose cached bytes are damaged; readers fetch them again.
    pub damaged: Vec<std::ops::Range<u64>>,
    /// Whether verification was stopped early.
    pub stopped: bool,
}

impl Cache {
    /// Opens a cache folder, and creates it if it does not exist.
    ///
    /// # Errors
    /// A message if it cannot be created or written.
    pub fn open(options: CacheOptions) -> Result<Self, String> {
        let folder = Folder::open(options);
        match folder.warning() {
            Some(warning) => Err(warning),
            None => Ok(Cache { folder }),
        }
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// All objects, sorted by name.
    pub fn objects(&self) -> Vec<CachedObject> {
        let found = self.folder.objects().into_iter();
        let mut found: Vec<CachedObject> = found.filter_map(CachedObject::of).collect();
        found.sort_by(|a, b| (&a.name, a.used).cmp(&(&b.name, b.used)));
        found
    }
}

impl CachedObject {
    fn of(files: Evictable) -> Option<Self> {
        let (header, claims) = journal(&files.data.with_extension("journal")).ok()?;
        let about = About::read(&files.data.with_extension("about"));
        let about = about.filter(|about| about.version.length == header.length);
        let (name, version) = about.map(|about| (about.name, about.version)).unzip();
        let (etag, last_modified) =
            version.map_or((None, None), |version| (version.etag, version.last_modified));
        Some(CachedObject {
            name,
            etag,
            last_modified,
            length: header.length,
            held_bytes: held_bytes(&claims),
            disk_bytes: files.bytes,
            used: files.used,
            files,
        })
    }

    /// Verifies all cached bytes against their checksums. Returns soon after `stop` becomes true.
    ///
    /// # Errors
    /// Errors of the operating system, if the object is gone.
    pub fn verify(&self, stop: &AtomicBool) -> io::Result<Checked> {
        let data = File::open(&self.files.data)?;
        // The shared lock protects it from eviction; without the lock it may be removed, and then
        // counts as damaged.
        let _ = data.try_lock_shared();
        let (_, claims) = journal(&self.files.data.with_extension("journal"))?;
        let mut checked = Checked::default();
        let mut bytes = Vec::new();
        for claim in claims.iter() {
            if stop.load(Ordering::Relaxed) {
                checked.stopped = true;
                break;
            }
            bytes.resize(claim.length as usize, 0);
            let is_read = data.read_exact_at(&mut bytes, claim.offset).is_ok();
            checked.bytes += u64::from(claim.length);
            if !is_read || Claim::of(claim.offset, &bytes) != Some(claim) {
                let Span { offset, length } = claim.span();
                push_merged(&mut checked.damaged, offset..offset + length);
            }
        }
        Ok(checked)
    }

    /// Removes the object, unless a process uses it. Returns whether it was removed.
    pub fn remove(&self) -> bool {
        self.files.remove()
    }
}

/// Reads the journal at `path`.
fn journal(path: &Path) -> io::Result<(Header, Claims)> {
    let mut file = File::open(path)?;
    let mut first = [0; HEADER_BYTES];
    file.read_exact(&mut first)?;
    let header = Header::from_bytes(&first).ok_or(io::ErrorKind::InvalidData)?;
    let mut claims = Claims::default();
    loop {
        let mut records = Vec::new();
        file.by_ref().take(RECORDS_BYTES).read_to_end(&mut records)?;
        if records.len() < RECORD_BYTES {
            return Ok((header, claims));
        }
        header.claims(&records).for_each(|claim| claims.add(claim));
    }
}

/// The number of bytes that claims cover together.
pub(super) fn held_bytes(claims: &Claims) -> u64 {
    let mut covered_until = 0;
    claims.iter().fold(0, |sum, claim| {
        let Span { offset, length } = claim.span();
        let new = (offset + length).saturating_sub(covered_until.max(offset));
        covered_until = covered_until.max(offset + length);
        sum + new
    })
}
