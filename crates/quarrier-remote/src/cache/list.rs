//! The cache on disk as people see it: objects that are listed, verified and removed.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use quarrier_sparse::Span;

use super::about::About;
use super::{Evictable, Folder};
use crate::journal::{Claim, Claims, HEADER_BYTES, Header, RECORD_BYTES};
use crate::options::CacheOptions;

/// Records of a journal that are read at once.
const RECORDS_BYTES: u64 = 1 << 20;
const _: () = assert!(RECORDS_BYTES.is_multiple_of(RECORD_BYTES as u64));

/// A cache folder, as [`Remote`](crate::Remote) uses it.
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
    /// When it was last modified, as its server says.
    pub last_modified: Option<String>,
    /// The length of the object in bytes.
    pub length: u64,
    /// How many of these bytes are in the cache.
    pub held_bytes: u64,
    /// The bytes that it takes on disk.
    pub disk_bytes: u64,
    /// When it was last opened.
    pub used: SystemTime,
    files: Evictable,
}

/// The outcome of a comparison of cached bytes with their checksums.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// Bytes that were compared.
    pub bytes: u64,
    /// Ranges of the object whose cached bytes are damaged; readers fetch them again.
    pub damaged: Vec<std::ops::Range<u64>>,
    /// Whether it was stopped before its end.
    pub stopped: bool,
}

impl Cache {
    /// Opens a cache folder, and makes it if it does not exist.
    ///
    /// # Errors
    /// In words, if it cannot be made or written.
    pub fn open(options: CacheOptions) -> Result<Self, String> {
        let folder = Folder::open(options);
        match folder.warning() {
            Some(warning) => Err(warning),
            None => Ok(Cache { folder }),
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// All objects, by their names.
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

    /// Compares all cached bytes with their checksums. Soon after `stop` becomes true it ends.
    ///
    /// # Errors
    /// The system's error, if the object is gone.
    pub fn verify(&self, stop: &AtomicBool) -> io::Result<Checked> {
        let data = File::open(&self.files.data)?;
        // Eviction leaves it alone as long as it is open here; without a lock it may go, and is damaged then.
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
                match checked.damaged.last_mut() {
                    Some(last) if last.end >= offset => last.end = last.end.max(offset + length),
                    _ => checked.damaged.push(offset..offset + length),
                }
            }
        }
        Ok(checked)
    }

    /// Removes it, unless a process uses it. Returns whether it is gone.
    pub fn remove(&self) -> bool {
        self.files.remove()
    }
}

/// The journal at `path`.
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

/// How many bytes claims cover together.
pub(super) fn held_bytes(claims: &Claims) -> u64 {
    let mut covered_until = 0;
    claims.iter().fold(0, |sum, claim| {
        let Span { offset, length } = claim.span();
        let new = (offset + length).saturating_sub(covered_until.max(offset));
        covered_until = covered_until.max(offset + length);
        sum + new
    })
}
