//! One object of the cache on disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard};
use std::time::SystemTime;

use quarrier_core::hex;
use quarrier_core::sync::lock;
use quarrier_sparse::Span;

use super::list::held_bytes;
use super::{About, Folder, Patience, locked};
use crate::flight::without;
use crate::journal::{BLOCK_BYTES_MAX, Claim, Claims, HEADER_BYTES, Header, Key, RECORD_BYTES};

/// Maximum size of a claimed block: a read verifies whole blocks, so they must be small.
const BLOCK_BYTES: usize = 256 << 10;
const _: () = assert!(BLOCK_BYTES <= BLOCK_BYTES_MAX as usize);

/// The open cached part of an object.
#[derive(Debug)]
pub(crate) struct Entry {
    folder: Folder,
    header: Header,
    /// Holds a shared lock as long as it is open.
    data: File,
    journal_name: String,
    journal: File,
    known: Mutex<JournalProgress>,
}

/// How far the journal was read, and the claims up to there.
#[derive(Debug)]
struct JournalProgress {
    claims: Claims,
    read_bytes: u64,
}

impl Entry {
    /// Opens or creates the entry; `None` if another process holds its lock.
    pub(super) fn open(folder: Folder, key: Key, about: &About) -> io::Result<Option<Entry>> {
        let Ok(_lock) = folder.file("lock").and_then(|file| locked(file, Patience::Some)) else {
            return Ok(None);
        };
        let name = hex::encode(&key);
        let header = Header { key, length: about.version.length };
        let journal_name = format!("{name}.journal");
        let (data, journal) = (folder.file(&format!("{name}.data"))?, folder.file(&journal_name)?);
        if data.try_lock_shared().is_err() {
            return Ok(None);
        }
        let mut first = [0; HEADER_BYTES];
        let is_ours = journal.read_exact_at(&mut first, 0).is_ok() && first == header.to_bytes();
        if !is_ours {
            // The entry is new, or its journal does not match its name: trust nothing in it.
            journal.set_len(0)?;
            journal.write_all_at(&header.to_bytes(), 0)?;
        }
        about.keep(&folder.path().join(format!("{name}.about")))?;
        // Eviction finds the least recently used objects by this time.
        let _ = journal.set_modified(SystemTime::now());
        let known = JournalProgress { claims: Claims::default(), read_bytes: HEADER_BYTES as u64 };
        let known = Mutex::new(known);
        Ok(Some(Entry { folder, header, data, journal_name, journal, known }))
    }

    /// The number of bytes claimed by any process, without verification.
    pub(crate) fn held_bytes(&self) -> u64 {
        let mut known = self.known();
        self.read_on(&mut known);
        held_bytes(&known.claims)
    }

    /// The parts of `span` that are claimed by any process, without verification.
    pub(crate) fn claimed(&self, span: Span) -> Vec<Span> {
        let mut known = self.known();
        self.read_on(&mut known);
        known.claims.overlapping(span).map(|claim| claim.span()).collect()
    }

    /// Passes to `take` the blocks that overlap `span` and match their checksums.
    pub(crate) fn load(&self, span: Span, mut take: impl FnMut(u64, &[u8])) {
        let mut known = self.known();
        self.read_on(&mut known);
        let claims: Vec<Claim> = known.claims.overlapping(span).collect();
        drop(known);
        let mut bytes = Vec::new();
        for claim in claims {
            bytes.resize(claim.length as usize, 0);
            let is_read = self.data.read_exact_at(&mut bytes, claim.offset).is_ok();
            if is_read && Claim::of(claim.offset, &bytes) == Some(claim) {
                take(claim.offset, &bytes);
            } else {
                self.known().claims.remove(&claim);
            }
        }
    }

    /// Stores bytes fetched from the server, except those already stored.
    pub(crate) fn store(&self, offset: u64, bytes: &[u8]) {
        for (n, block) in bytes.chunks(BLOCK_BYTES).enumerate() {
            if self.folder.is_closed() {
                return;
            }
            let offset = offset + (n * BLOCK_BYTES) as u64;
            let span = Span { offset, length: block.len() as u64 };
            if without(vec![span], self.claimed(span).into_iter()).is_empty() {
                continue;
            }
            match self.store_block(offset, block) {
                Ok(()) => self.folder.count(block.len() as u64),
                // Another process holds the journal's lock for long: skip this block.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => self.folder.turn_off(&error),
            }
        }
    }

    /// Writes the bytes first, then the claim.
    fn store_block(&self, offset: u64, block: &[u8]) -> io::Result<()> {
        let Some(claim) = Claim::of(offset, block) else { return Ok(()) };
        self.data.write_all_at(block, offset)?;
        // Opened again, because locks belong to descriptors, and threads share the entry's
        // descriptor.
        let journal = locked(self.folder.file(&self.journal_name)?, Patience::Some)?;
        let length = journal.metadata()?.len();
        let Some(records) = length.checked_sub(HEADER_BYTES as u64) else {
            // Another process removed the journal, and created it again without a header.
            return Err(io::ErrorKind::WouldBlock.into());
        };
        // Overwrite a torn record, left by a kill or a full disk.
        let end = length - records % RECORD_BYTES as u64;
        journal.write_all_at(&self.header.record(&claim), end)?;
        if end != length {
            journal.set_len(end + RECORD_BYTES as u64)?;
        }
        self.known().claims.add(claim);
        Ok(())
    }

    /// Reads the records appended since the last call.
    fn read_on(&self, known: &mut JournalProgress) {
        let Ok(meta) = self.journal.metadata() else { return };
        let new = meta.len().saturating_sub(known.read_bytes);
        let mut left = new - new % RECORD_BYTES as u64;
        let mut records = vec![0; left.min(1 << 20) as usize];
        while left > 0 {
            let part = &mut records[..left.min(1 << 20) as usize];
            if self.journal.read_exact_at(part, known.read_bytes).is_err() {
                return;
            }
            self.header.claims(part).for_each(|claim| known.claims.add(claim));
            known.read_bytes += part.len() as u64;
            left -= part.len() as u64;
        }
    }

    fn known(&self) -> MutexGuard<'_, JournalProgress> {
        lock(&self.known)
    }
}
