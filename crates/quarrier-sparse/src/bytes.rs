//! The bytes of a leaf, optionally wiped before their memory is freed.

/// A vector of bytes that, if requested, leaves no stale copy in memory: not when it grows, not
/// when bytes are removed, and not when it is dropped.
#[derive(Debug)]
pub(crate) struct Bytes {
    bytes: Vec<u8>,
    wipe: bool,
}

impl Bytes {
    pub(crate) fn new(wipe: bool) -> Self {
        Bytes { bytes: Vec::new(), wipe }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of allocated memory, used or not.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Appends `data`. The capacity doubles, but does not exceed `capacity_max` unless necessary.
    pub(crate) fn append(&mut self, data: &[u8], capacity_max: usize) {
        self.reserve(data.len(), capacity_max);
        self.bytes.extend_from_slice(data);
    }

    /// Inserts `data` before the byte at `at`.
    pub(crate) fn insert(&mut self, at: usize, data: &[u8], capacity_max: usize) {
        let length = self.bytes.len();
        self.append(data, capacity_max);
        if at < length {
            self.bytes.copy_within(at..length, at + data.len());
            self.bytes[at..at + data.len()].copy_from_slice(data);
        }
    }

    /// Removes the bytes `from..to`.
    pub(crate) fn remove(&mut self, from: usize, to: usize) {
        let length = self.bytes.len();
        self.bytes.copy_within(to..length, from);
        let left = length - (to - from);
        if self.wipe {
            wipe(&mut self.bytes[left..]);
        }
        self.bytes.truncate(left);
    }

    /// Splits off the bytes from `at` on.
    pub(crate) fn split_off(&mut self, at: usize) -> Bytes {
        let mut tail = Bytes::new(self.wipe);
        tail.reserve(self.bytes.len() - at, usize::MAX);
        tail.bytes.extend_from_slice(&self.bytes[at..]);
        self.remove(at, self.bytes.len());
        self.shrink();
        tail
    }

    /// Frees unused memory if at least half of it is unused.
    pub(crate) fn shrink(&mut self) {
        if self.bytes.capacity() >= 64 && self.bytes.len() <= self.bytes.capacity() / 2 {
            self.move_to(self.bytes.len());
        }
    }

    fn reserve(&mut self, more: usize, capacity_max: usize) {
        let needed = self.bytes.len() + more;
        if needed > self.bytes.capacity() {
            self.move_to(needed.max((self.bytes.capacity() * 2).min(capacity_max)));
        }
    }

    fn move_to(&mut self, capacity: usize) {
        if self.wipe {
            let mut roomier = Vec::with_capacity(capacity);
            roomier.extend_from_slice(&self.bytes);
            wipe(&mut self.bytes);
            self.bytes = roomier;
        } else if capacity > self.bytes.capacity() {
            self.bytes.reserve_exact(capacity - self.bytes.len());
        } else {
            self.bytes.shrink_to(capacity);
        }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        if self.wipe {
            wipe(&mut self.bytes);
        }
    }
}

/// Overwrites with zeros, in a way that the compiler does not optimise away.
fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    std::hint::black_box(bytes);
}
