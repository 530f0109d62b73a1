//! Texts numbered in the order of first sight.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

/// A dictionary that grows: text → code, without a limit of its own.
#[derive(Debug, Default)]
pub(super) struct Interner {
    /// A power of two of them, at most half in use.
    slots: Vec<Slot>,
    /// Where each text ends in `bytes`.
    ends: Vec<u32>,
    bytes: Vec<u8>,
    /// Seeded anew in each process, so that no input can be made to collide.
    state: RandomState,
}

/// A place of the hash table. The text's place stands here too, so that a look-up touches two
/// cache lines: the slot's and the text's.
#[derive(Debug, Clone, Copy)]
struct Slot {
    tag: u32,
    /// [`FREE`] where there is none.
    code: u32,
    start: u32,
    bytes: u32,
}

const FREE: u32 = u32::MAX;
/// What a row without a value has for a code.
pub(super) const NO_CODE: u32 = u32::MAX;
const SLOTS_MIN: usize = 64;

impl Interner {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Where each text ends, and all of them.
    pub(super) fn texts(&self) -> (&[u32], &[u8]) {
        (&self.ends, &self.bytes)
    }

    pub(super) fn into_texts(self) -> (Vec<u32>, Vec<u8>) {
        (self.ends, self.bytes)
    }

    /// The text of a code.
    pub(super) fn text(&self, code: u32) -> &[u8] {
        let code = code as usize;
        let start = if code == 0 { 0 } else { self.ends[code - 1] };
        &self.bytes[start as usize..self.ends[code] as usize]
    }

    /// Appends the code of each text of `texts` to `codes`. Hashes first and asks for the slots,
    /// so that the misses of a batch overlap.
    pub(super) fn codes<'t>(
        &mut self,
        hashes: &mut Vec<u64>,
        texts: impl Iterator<Item = Option<&'t [u8]>> + Clone,
        codes: &mut Vec<u32>,
    ) {
        hashes.clear();
        for text in texts.clone() {
            let hash = text.map_or(0, |text| self.state.hash_one(text));
            self.fetch(hash);
            hashes.push(hash);
        }
        for (text, &hash) in texts.zip(&*hashes) {
            codes.push(text.map_or(NO_CODE, |text| self.code(hash, text)));
        }
    }

    #[inline(always)]
    fn fetch(&self, hash: u64) {
        #[cfg(target_arch = "x86_64")]
        if !self.slots.is_empty() {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let slot = &raw const self.slots[hash as usize & (self.slots.len() - 1)];
            // SAFETY: a prefetch reads nothing and faults nowhere.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(slot.cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = hash;
    }

    #[inline]
    fn code(&mut self, hash: u64, text: &[u8]) -> u32 {
        if self.slots.len() < 2 * (self.ends.len() + 1) {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let tag = (hash >> 32) as u32;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot.code == FREE {
                return self.insert(at, tag, text);
            }
            if slot.tag == tag && slot.bytes as usize == text.len() {
                let start = slot.start as usize;
                if &self.bytes[start..start + text.len()] == text {
                    return slot.code;
                }
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn insert(&mut self, at: usize, tag: u32, text: &[u8]) -> u32 {
        let code = self.ends.len() as u32;
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len() as u32);
        self.slots[at] = Slot { tag, code, start, bytes: text.len() as u32 };
        code
    }

    #[cold]
    fn grow(&mut self) {
        let count = (self.slots.len() * 2).max(SLOTS_MIN);
        let free = Slot { tag: 0, code: FREE, start: 0, bytes: 0 };
        self.slots = vec![free; count];
        for code in 0..self.ends.len() as u32 {
            let text = self.text(code);
            let hash = self.state.hash_one(text);
            let start = text.as_ptr() as usize - self.bytes.as_ptr() as usize;
            let slot = Slot {
                tag: (hash >> 32) as u32,
                code,
                start: start as u32,
                bytes: text.len() as u32,
            };
            let mut at = hash as usize & (count - 1);
            while self.slots[at].code != FREE {
                at = (at + 1) & (count - 1);
            }
            self.slots[at] = slot;
        }
    }
}
