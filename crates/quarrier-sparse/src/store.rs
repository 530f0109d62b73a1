//! Many sparse files under one memory budget.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::{Counters, Error, Merge, Result, Span, SparseFile, stored};

/// With a budget of at least this size, an eviction frees slightly more than necessary, so that not
/// every further write has to search for the least recently used bytes.
const SLACK_FROM_BYTES: u64 = 16 << 20;

/// Sparse files by name, which together hold at most a budget of bytes.
///
/// Clones share the same store. All methods may be called from many threads.
#[derive(Debug, Clone)]
pub struct SparseStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    files: RwLock<HashMap<String, Arc<Slot>>>,
    bytes_max: Option<u64>,
    /// Bytes held by all files of the store.
    held_bytes: AtomicU64,
    /// Shared by all files, so that their uses can be compared.
    clock: Arc<AtomicU64>,
    /// Held by the thread that evicts.
    evicting: Mutex<()>,
}

/// A file, and whether it is still in the store.
#[derive(Debug)]
struct Slot {
    entry: RwLock<Entry>,
}

#[derive(Debug)]
struct Entry {
    file: SparseFile,
    is_in_store: bool,
}

/// A file of a store, for use by many threads: reads run in parallel, writes one at a time.
///
/// Clones share the same file. After removal from the store it lives on, outside of the budget.
#[derive(Debug, Clone)]
pub struct SharedFile {
    slot: Arc<Slot>,
    store: Arc<Inner>,
}

/// Protects a range from eviction and erasure until dropped.
#[derive(Debug)]
pub struct Pin {
    file: SharedFile,
    span: Span,
}

impl SparseStore {
    /// Creates an empty store whose files together hold at most `bytes_max` bytes; `None` means no
    /// limit.
    pub fn new(bytes_max: Option<u64>) -> Self {
        SparseStore {
            inner: Arc::new(Inner {
                files: RwLock::default(),
                bytes_max,
                held_bytes: AtomicU64::new(0),
                clock: Arc::default(),
                evicting: Mutex::new(()),
            }),
        }
    }

    /// Adds a file under its name.
    ///
    /// # Errors
    /// [`Error::Exists`].
    pub fn insert(&self, mut file: SparseFile) -> Result<SharedFile> {
        let id = file.id().to_string();
        let mut files = write(&self.inner.files);
        if files.contains_key(&id) {
            return Err(Error::Exists { id });
        }
        // Rebase the file's uses on the store's clock, keeping their order.
        let of_file = file.clock.load(Relaxed);
        let of_store = self.inner.clock.fetch_max(of_file, Relaxed).max(of_file);
        file.clock = Arc::clone(&self.inner.clock);
        file.map.shift_uses(of_store - of_file);
        self.inner.held_bytes.fetch_add(file.num_bytes(), Relaxed);
        let slot = Arc::new(Slot { entry: RwLock::new(Entry { file, is_in_store: true }) });
        files.insert(id, Arc::clone(&slot));
        drop(files);
        self.inner.keep_budget();
        Ok(SharedFile { slot, store: Arc::clone(&self.inner) })
    }

    /// The file with this name.
    pub fn get(&self, id: &str) -> Option<SharedFile> {
        let slot = Arc::clone(read(&self.inner.files).get(id)?);
        Some(SharedFile { slot, store: Arc::clone(&self.inner) })
    }

    /// Removes the file with this name from the store.
    pub fn remove(&self, id: &str) -> Option<SharedFile> {
        let slot = write(&self.inner.files).remove(id)?;
        let mut entry = write(&slot.entry);
        entry.is_in_store = false;
        self.inner.held_bytes.fetch_sub(entry.file.num_bytes(), Relaxed);
        drop(entry);
        Some(SharedFile { slot, store: Arc::clone(&self.inner) })
    }

    /// The names of all files, sorted.
    pub fn ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = read(&self.inner.files).keys().cloned().collect();
        ids.sort_unstable();
        ids
    }

    /// The number of files.
    pub fn len(&self) -> usize {
        read(&self.inner.files).len()
    }

    /// Whether the store has no files.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of bytes held by all files.
    pub fn num_bytes(&self) -> u64 {
        self.inner.held_bytes.load(Relaxed)
    }

    /// The budget: the maximum number of bytes that all files may hold.
    pub fn bytes_max(&self) -> Option<u64> {
        self.inner.bytes_max
    }

    /// Evicts the least recently used bytes of any file until at most `bytes_max` are held or only
    /// pinned ones are left. Returns the number of evicted bytes. Sorts all held blocks by use.
    pub fn evict(&self, bytes_max: u64) -> u64 {
        self.inner.evict(bytes_max)
    }

    /// Serializes all files except their pins; see [`SparseStore::from_bytes`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let files = self.ids().into_iter().filter_map(|id| self.get(&id));
        stored::files_to_bytes(&files.map(|file| file.to_bytes()).collect::<Vec<_>>())
    }

    /// Restores a store from the bytes of [`SparseStore::to_bytes`].
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the bytes are anything else, [`Error::Exists`] if two files have the
    /// same name.
    pub fn from_bytes(bytes: &[u8], bytes_max: Option<u64>) -> Result<SparseStore> {
        let store = SparseStore::new(bytes_max);
        for file in stored::files_from_bytes(bytes)? {
            store.insert(file)?;
        }
        Ok(store)
    }
}

impl Inner {
    fn keep_budget(&self) {
        let Some(bytes_max) = self.bytes_max else { return };
        if self.held_bytes.load(Relaxed) > bytes_max {
            let slack = if bytes_max >= SLACK_FROM_BYTES { bytes_max / 16 } else { 0 };
            self.evict(bytes_max - slack);
        }
    }

    fn evict(&self, bytes_max: u64) -> u64 {
        let _one_at_a_time = self.evicting.lock().unwrap_or_else(PoisonError::into_inner);
        let slots: Vec<Arc<Slot>> = read(&self.files).values().cloned().collect();
        let mut evicted = 0;
        loop {
            let held = self.held_bytes.load(Relaxed);
            let Some(mut excess) = held.checked_sub(bytes_max).filter(|&n| n > 0) else { break };
            let mut uses = Vec::new();
            slots.iter().for_each(|slot| read(&slot.entry).file.add_uses(&mut uses));
            // Evict parts of files in the order of their use, no more than necessary; everything,
            // if pins or other threads interfere.
            let mut gone = self.evict_upto(&slots, last_use_to_go(&mut uses, excess), &mut excess);
            if gone == 0 {
                gone = self.evict_upto(&slots, u64::MAX, &mut excess);
            }
            if gone == 0 {
                break;
            }
            evicted += gone;
        }
        evicted
    }

    fn evict_upto(&self, slots: &[Arc<Slot>], last_used_max: u64, excess: &mut u64) -> u64 {
        // Blocks used before the last use to evict are evicted whole, from any file.
        let mut gone = 0;
        for last_used_max in [last_used_max.saturating_sub(1), last_used_max] {
            for slot in slots {
                let mut entry = write(&slot.entry);
                if entry.is_in_store {
                    let here = entry.file.evict_some(last_used_max, excess);
                    self.held_bytes.fetch_sub(here, Relaxed);
                    gone += here;
                }
            }
        }
        gone
    }
}

/// The use up to which all parts must be evicted to free `excess` bytes.
fn last_use_to_go(uses: &mut [(u64, u64)], excess: u64) -> u64 {
    uses.sort_unstable();
    let mut gone = 0u64;
    let enough = uses.iter().find(|(_, bytes)| {
        gone = gone.saturating_add(*bytes);
        gone >= excess
    });
    enough.map_or(u64::MAX, |&(last_used, _)| last_used)
}

impl SharedFile {
    /// Runs `look` on the file; other threads may read meanwhile.
    pub fn with<R>(&self, look: impl FnOnce(&SparseFile) -> R) -> R {
        look(&read(&self.slot.entry).file)
    }

    /// Runs `change` with exclusive access to the file, then enforces the store's budget.
    pub fn with_mut<R>(&self, change: impl FnOnce(&mut SparseFile) -> R) -> R {
        let mut entry = write(&self.slot.entry);
        let before = entry.file.num_bytes();
        let result = change(&mut entry.file);
        let after = entry.file.num_bytes();
        if entry.is_in_store {
            // Wraps if the file shrank.
            self.store.held_bytes.fetch_add(after.wrapping_sub(before), Relaxed);
        }
        drop(entry);
        if after > before {
            self.store.keep_budget();
        }
        result
    }

    /// The file's name.
    pub fn id(&self) -> String {
        self.with(|file| file.id().to_string())
    }

    /// The file's length in bytes, if known.
    pub fn length(&self) -> Option<u64> {
        self.with(SparseFile::length)
    }

    /// As [`SparseFile::has`].
    pub fn has(&self, offset: u64, length: u64) -> bool {
        self.with(|file| file.has(offset, length))
    }

    /// As [`SparseFile::write`]; bytes beyond the budget may be evicted at once.
    ///
    /// # Errors
    /// As [`SparseFile::write`].
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<u64> {
        self.with_mut(|file| file.write(offset, data))
    }

    /// As [`SparseFile::read`].
    ///
    /// # Errors
    /// As [`SparseFile::read`].
    pub fn read(&self, offset: u64, length: u64) -> Result<Vec<u8>> {
        self.with(|file| file.read(offset, length))
    }

    /// As [`SparseFile::read_into`].
    ///
    /// # Errors
    /// As [`SparseFile::read_into`].
    pub fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.with(|file| file.read_into(offset, buffer))
    }

    /// As [`SparseFile::need`].
    ///
    /// # Errors
    /// As [`SparseFile::need`].
    pub fn need(&self, offset: u64, length: u64) -> Result<Vec<Span>> {
        self.with(|file| file.need(offset, length))
    }

    /// As [`SparseFile::need_many`].
    ///
    /// # Errors
    /// As [`SparseFile::need_many`].
    pub fn need_many(&self, wanted: &[Span], merge: &Merge) -> Result<Vec<Span>> {
        self.with(|file| file.need_many(wanted, merge))
    }

    /// As [`SparseFile::erase`].
    ///
    /// # Errors
    /// As [`SparseFile::erase`].
    pub fn erase(&self, offset: u64, length: u64) -> Result<u64> {
        self.with_mut(|file| file.erase(offset, length))
    }

    /// As [`SparseFile::evict`].
    pub fn evict(&self, bytes_max: u64) -> u64 {
        self.with_mut(|file| file.evict(bytes_max))
    }

    /// Protects a range from eviction and erasure until the returned pin is dropped.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn pin(&self, span: Span) -> Result<Pin> {
        write(&self.slot.entry).file.pin(span)?;
        Ok(Pin { file: self.clone(), span })
    }

    /// As [`SparseFile::blocks`].
    pub fn blocks(&self) -> Vec<Span> {
        self.with(SparseFile::blocks)
    }

    /// The number of bytes held.
    pub fn num_bytes(&self) -> u64 {
        self.with(SparseFile::num_bytes)
    }

    /// As [`SparseFile::counters`].
    pub fn counters(&self) -> Counters {
        self.with(SparseFile::counters)
    }

    /// As [`SparseFile::to_bytes`].
    pub fn to_bytes(&self) -> Vec<u8> {
        self.with(SparseFile::to_bytes)
    }
}

impl Pin {
    /// The pinned range.
    pub fn span(&self) -> Span {
        self.span
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        // Unpinning cannot fail, since the range was pinned.
        let unpinned = write(&self.file.slot.entry).file.unpin(self.span);
        debug_assert!(unpinned.is_ok(), "unpinned behind the pin's back");
    }
}

// A thread that panics while it holds a lock leaves the data consistent: bytes are inserted before
// they are counted.

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
