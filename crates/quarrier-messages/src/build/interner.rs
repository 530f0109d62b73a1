//! Dictionary encoding: an interner that numbers strings in the order of their first appearance.
//!
//! Most strings are short. They are hashed and compared as four words under a mask, without a
//! branch on their length, which the processor would mispredict for every other string.

use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::fast::RandomState;
use quarrier_core::region::prefer_large_pages;

/// A growing dictionary from strings to codes. The caller limits its size.
#[derive(Debug)]
pub(super) struct Interner {
    /// The hash table: a power of two slots, at most half of them in use.
    slots: Vec<Slot>,
    /// The end of each string in `bytes`.
    ends: Vec<u32>,
    /// The strings, followed by [`SHORT_BYTES`] zeros.
    bytes: Vec<u8>,
    /// Seeded randomly in each process, so that no input can force collisions.
    state: RandomState,
    seeds: [u64; 4],
}

/// A slot of the hash table. It includes the string's position, so that a lookup touches two cache
/// lines: the slot's and the string's.
#[derive(Debug, Clone, Copy)]
struct Slot {
    tag: u32,
    /// [`NO_CODE`] in an empty slot.
    code: u32,
    start: u32,
    bytes: u32,
}

const FREE: Slot = Slot { tag: 0, code: NO_CODE, start: 0, bytes: 0 };

/// The code of a row without a value.
pub(super) const NO_CODE: u32 = u32::MAX;
const SLOTS_MIN: usize = 64;
/// Number of strings to move to a larger table together.
const MOVED_AT_ONCE: usize = 64;

/// The length of a short string, and the number of zeros that must follow strings to look up.
pub(super) const SHORT_BYTES: usize = 32;

/// Strings that wait for a lookup, one row each.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) rows: Vec<u32>,
    /// The end of each string in `bytes`.
    pub(super) ends: Vec<u32>,
    /// The strings; after [`fetch`](Interner::fetch), [`SHORT_BYTES`] zeros follow them.
    pub(super) bytes: Vec<u8>,
    hashes: Vec<u64>,
}

impl Waiting {
    /// Yields the start and length of each string.
    pub(super) fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let from = std::mem::replace(&mut start, end as usize);
            (from, start - from)
        })
    }

    /// Removes the last string if it belongs to this row; returns whether it did.
    pub(super) fn pop_if(&mut self, row: usize) -> bool {
        let is_last = self.rows.pop_if(|last| *last as usize == row).is_some();
        if is_last {
            self.ends.pop();
            self.hashes.truncate(self.rows.len());
            self.bytes.truncate(self.ends.last().map_or(0, |&end| end as usize));
            if !self.hashes.is_empty() {
                self.bytes.extend_from_slice(&[0; SHORT_BYTES]);
            }
        }
        is_last
    }

    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.ends.clear();
        self.bytes.clear();
        self.hashes.clear();
    }
}

impl Default for Interner {
    fn default() -> Self {
        let state = RandomState::default();
        let seeds = [1u64, 2, 3, 4].map(|number| state.hash_one(number) | 1);
        Interner { slots: Vec::new(), ends: Vec::new(), bytes: vec![0; SHORT_BYTES], state, seeds }
    }
}

impl Interner {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.len() - SHORT_BYTES
    }

    /// Returns the end of each string, and the bytes of all strings.
    pub(super) fn strings(&self) -> (&[u32], &[u8]) {
        (&self.ends, &self.bytes[..self.bytes()])
    }

    pub(super) fn into_strings(mut self) -> (Vec<u32>, Vec<u8>) {
        self.bytes.truncate(self.bytes());
        (self.ends, self.bytes)
    }

    /// Returns the string of a code.
    pub(super) fn text(&self, code: u32) -> &[u8] {
        let (start, len) = self.place(code);
        &self.bytes[start..start + len]
    }

    fn place(&self, code: u32) -> (usize, usize) {
        let code = code as usize;
        let start = if code == 0 { 0 } else { self.ends[code - 1] };
        (start as usize, (self.ends[code] - start) as usize)
    }

    /// Hashes strings and prefetches their slots, then the strings that these refer to: all cache
    /// misses overlap with each other, and with the work until [`codes`](Self::codes) is called.
    pub(super) fn fetch(&self, strings: &mut Waiting) {
        strings.bytes.extend_from_slice(&[0; SHORT_BYTES]);
        let mut hashes = std::mem::take(&mut strings.hashes);
        hashes.extend(strings.places().map(|(start, len)| {
            let hash = self.hash(&strings.bytes, start, len);
            self.fetch_slot(hash);
            hash
        }));
        for &hash in &hashes {
            self.fetch_text(hash);
        }
        strings.hashes = hashes;
    }

    /// Writes the code of each fetched string to its row in `codes`.
    pub(super) fn codes(&mut self, strings: &Waiting, codes: &mut [u32]) {
        for (((start, len), &hash), &row) in
            strings.places().zip(&strings.hashes).zip(&strings.rows)
        {
            codes[row as usize] = self.code(hash, &strings.bytes, start, len);
        }
    }

    #[inline(always)]
    fn hash(&self, bytes: &[u8], start: usize, len: usize) -> u64 {
        if len > SHORT_BYTES {
            return self.state.hash_one(&bytes[start..start + len]);
        }
        let words = words(bytes, start, len);
        let [a, b, c, d] = self.seeds;
        let low = folded(words[0] ^ a, words[1] ^ b ^ len as u64);
        let high = folded(words[2] ^ c, words[3] ^ d);
        folded(low ^ b, high ^ a)
    }

    /// Prefetches the slot of a hash.
    #[inline(always)]
    fn fetch_slot(&self, hash: u64) {
        let mask = self.slots.len().wrapping_sub(1);
        fetch(self.slots.as_ptr().wrapping_add(hash as usize & mask).cast());
    }

    /// Prefetches the string of the slot with this hash, if there is one. With half of the slots in
    /// use, every fourth string is not in its first slot; its cache miss would not overlap with
    /// others.
    #[inline(always)]
    fn fetch_text(&self, hash: u64) {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hash as usize & mask;
        while let Some(slot) = self.slots.get(at).filter(|slot| slot.code != NO_CODE) {
            if slot.tag == (hash >> 32) as u32 {
                let text = self.bytes.as_ptr().wrapping_add(slot.start as usize);
                fetch(text);
                // A string may span two cache lines.
                return fetch(text.wrapping_add(slot.bytes as usize));
            }
            at = (at + 1) & mask;
        }
    }

    #[inline(always)]
    fn code(&mut self, hash: u64, bytes: &[u8], start: usize, len: usize) -> u32 {
        if self.slots.len() < 2 * (self.ends.len() + 1) {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let tag = (hash >> 32) as u32;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot.code == NO_CODE {
                return self.insert(at, tag, &bytes[start..start + len]);
            }
            if slot.tag == tag
                && slot.bytes as usize == len
                && self.is_same(slot.start as usize, bytes, start, len)
            {
                return slot.code;
            }
            at = (at + 1) & mask;
        }
    }

    #[inline(always)]
    fn is_same(&self, own: usize, bytes: &[u8], start: usize, len: usize) -> bool {
        if len > SHORT_BYTES {
            return self.bytes[own..own + len] == bytes[start..start + len];
        }
        words(&self.bytes, own, len) == words(bytes, start, len)
    }

    #[cold]
    #[inline(never)]
    fn insert(&mut self, at: usize, tag: u32, text: &[u8]) -> u32 {
        let code = self.ends.len() as u32;
        let start = self.bytes();
        self.bytes.truncate(start);
        if self.bytes.capacity() < start + text.len() + SHORT_BYTES {
            self.make_room(text.len() + SHORT_BYTES);
        }
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len() as u32);
        self.bytes.extend_from_slice(&[0; SHORT_BYTES]);
        self.slots[at] = Slot { tag, code, start: start as u32, bytes: text.len() as u32 };
        code
    }

    fn make_room(&mut self, more: usize) {
        let mut bytes = Vec::with_capacity(2 * (self.bytes.len() + more));
        prefer_large_pages(bytes.as_ptr(), bytes.capacity());
        bytes.extend_from_slice(&self.bytes);
        self.bytes = bytes;
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let count = (self.slots.len() * 2).max(SLOTS_MIN);
        let mut slots: Vec<Slot> = Vec::with_capacity(count);
        prefer_large_pages(slots.as_ptr().cast(), count * size_of::<Slot>());
        slots.resize(count, FREE);
        self.slots = slots;
        for first in (0..self.ends.len()).step_by(MOVED_AT_ONCE) {
            self.move_in(first..self.ends.len().min(first + MOVED_AT_ONCE));
        }
    }

    /// Moves a few strings into the new table together, so that their cache misses overlap.
    fn move_in(&mut self, codes: Range<usize>) {
        let mut hashes = [0; MOVED_AT_ONCE];
        for (hash, code) in hashes.iter_mut().zip(codes.clone()) {
            let (start, len) = self.place(code as u32);
            *hash = self.hash(&self.bytes, start, len);
            self.fetch_slot(*hash);
        }
        let mask = self.slots.len() - 1;
        for (hash, code) in hashes.into_iter().zip(codes) {
            let (start, len) = self.place(code as u32);
            let mut at = hash as usize & mask;
            while self.slots[at].code != NO_CODE {
                at = (at + 1) & mask;
            }
            let tag = (hash >> 32) as u32;
            self.slots[at] =
                Slot { tag, code: code as u32, start: start as u32, bytes: len as u32 };
        }
    }
}

/// Returns the string as words, padded with zeros; `len` is at most [`SHORT_BYTES`].
#[inline(always)]
fn words(bytes: &[u8], start: usize, len: usize) -> [u64; 4] {
    let masks = &MASKS[len];
    match bytes.get(start..start + SHORT_BYTES).and_then(|ahead| ahead.first_chunk()) {
        Some(ahead) => {
            let ahead: &[u8; SHORT_BYTES] = ahead;
            std::array::from_fn(|word| {
                let part = std::array::from_fn(|byte| ahead[8 * word + byte]);
                u64::from_le_bytes(part) & masks[word]
            })
        }
        None => unreachable!("zeros follow the strings"),
    }
}

/// For each length, the bytes of each word that belong to the string.
static MASKS: [[u64; 4]; SHORT_BYTES + 1] = {
    let mut masks = [[0; 4]; SHORT_BYTES + 1];
    let mut len = 0;
    while len <= SHORT_BYTES {
        let mut byte = 0;
        while byte < len {
            masks[len][byte / 8] |= 0xFF << (8 * (byte % 8));
            byte += 1;
        }
        len += 1;
    }
    masks
};

/// Prefetches a cache line.
#[inline(always)]
fn fetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch dereferences nothing, and does not fault on any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Multiplies, and combines both halves of the product.
#[inline(always)]
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}
