//! The packed filter's inner loop: written once over [`Lanes`], compiled for each
//! instruction set, chosen at run time.
//!
//! K consecutive bytes have K tables. Each maps a byte value to eight bits, one for each bucket of needles:
//! the bit is set if some needle of the bucket allows that value at that position. A position passes when one
//! bucket's bit is set in all K tables.
//! (The Teddy algorithm of Hyperscan, Wang et al., NSDI 2019, with 128-entry tables if the CPU supports such
//! lookups.)
//!
//! A single needle without wildcards allows one value at each position: comparing bytes with it takes half the
//! time of the lookups.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

use quarrier_core::isa::Isa;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod gather;
#[cfg(target_arch = "aarch64")]
mod neon;

/// For each byte value, the buckets that allow it.
pub(crate) type ByteSets = [u8; 256];

/// Maximum number of consecutive bytes to examine.
pub(crate) const WIDTH_MAX: usize = 6;

/// Bytes that must be readable after the last position filtered.
pub(crate) const SLACK_BYTES: usize = 64 + WIDTH_MAX;

/// The operations of one instruction set on the vectors of 64 positions.
pub(crate) trait Lanes {
    /// A table of byte sets in the form that this instruction set needs.
    type Table: Copy;

    fn table(sets: &ByteSets) -> Self::Table;

    /// Returns a mask of the positions, of the 64 bytes at `p`, where any bucket remains after the AND over
    /// all tables.
    ///
    /// # Safety
    /// The instruction set is available, and `64 + K - 1` bytes are readable at `p`.
    unsafe fn passing<const K: usize>(tables: &[Self::Table; K], p: *const u8) -> u64;

    /// Returns a mask of the positions, of the 64 bytes at `p`, where these bytes are.
    ///
    /// # Safety
    /// The contract of [`passing`](Self::passing).
    unsafe fn equal<const K: usize>(bytes: &[u8; K], p: *const u8) -> u64;
}

/// Maximum number of consecutive bytes to compare: more would reject next to nothing.
const EQUAL_MAX: usize = 4;

/// Returns the bytes to compare with, if few sets allow one value each, all of them for the same bucket.
pub(crate) fn only_bytes(sets: &[ByteSets]) -> Option<Vec<u8>> {
    let only = |sets: &ByteSets| {
        let mut allowed = (0..=u8::MAX).filter(|byte| sets[usize::from(*byte)] != 0);
        allowed.next().filter(|_| allowed.next().is_none())
    };
    let bytes: Vec<u8> = sets.iter().map(only).collect::<Option<_>>()?;
    let buckets =
        sets.iter().zip(&bytes).fold(!0, |all, (sets, byte)| all & sets[usize::from(*byte)]);
    (bytes.len() <= EQUAL_MAX && buckets != 0).then_some(bytes)
}

/// Makes two tables of half-bytes: a byte passes a bucket if both its halves do, which accepts more than the
/// byte set itself. For instruction sets that look bytes up in tables of 16.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn half_byte_tables(sets: &ByteSets) -> [[u8; 16]; 2] {
    let mut tables = [[0; 16]; 2];
    for (byte, buckets) in sets.iter().enumerate() {
        tables[0][byte & 15] |= buckets;
        tables[1][byte >> 4] |= buckets;
    }
    tables
}

/// A packed filter, ready to run.
#[allow(clippy::large_enum_variant, reason = "each set of patterns has only one")]
pub(crate) enum Packed {
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Filter),
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Filter),
    #[cfg(target_arch = "aarch64")]
    Neon(neon::Filter),
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    Absent(std::convert::Infallible),
}

impl Packed {
    /// Makes a filter for `sets` (1 to [`WIDTH_MAX`] of them) on `isa`; `None` if the CPU lacks it,
    /// or if no packed filter exists for it.
    pub(crate) fn new(isa: Isa, sets: &[ByteSets]) -> Option<Self> {
        if !isa.is_available() || sets.is_empty() || sets.len() > WIDTH_MAX {
            return None;
        }
        #[cfg(target_arch = "x86_64")]
        return match isa {
            Isa::Avx512 => Some(Packed::Avx512(avx512::Filter::new(sets))),
            Isa::Avx2 => Some(Packed::Avx2(avx2::Filter::new(sets))),
            Isa::Neon | Isa::Portable => None,
        };
        #[cfg(target_arch = "aarch64")]
        return (isa == Isa::Neon).then(|| Packed::Neon(neon::Filter::new(sets)));
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        None
    }

    /// Sets bit `i % 64` of `masks[i / 64]` if position `from + i` passes, for all of `masks`. Positions past
    /// the end of `text` never pass.
    pub(crate) fn run(&self, text: &[u8], from: usize, masks: &mut [u64]) {
        let positions = text.len().saturating_sub(from);
        // The number of words that can be filtered without reading past the text.
        let safe = positions.saturating_sub(SLACK_BYTES - 1).div_ceil(64).min(masks.len());
        let (bulk, tail) = masks.split_at_mut(safe);
        if !bulk.is_empty() {
            // SAFETY: `bulk` has `safe` words, and `(safe - 1) * 64 + SLACK_BYTES <= positions`,
            // the number of bytes of `text` from `from` on.
            unsafe { self.run_unchecked(text.as_ptr().add(from), bulk) };
        }
        if !tail.is_empty() {
            self.run_tail(text, from + safe * 64, tail);
        }
    }

    /// Filters the last words, on a copy followed by zeros.
    #[cold]
    fn run_tail(&self, text: &[u8], from: usize, masks: &mut [u64]) {
        for (index, mask) in masks.iter_mut().enumerate() {
            let rest = text.get(from + index * 64..).unwrap_or_default();
            let mut copy = [0u8; 64 + SLACK_BYTES];
            let bytes = rest.len().min(copy.len());
            copy[..bytes].copy_from_slice(&rest[..bytes]);
            let mut word = [0u64];
            // SAFETY: one word requires SLACK_BYTES readable bytes, and the copy has 64 + SLACK_BYTES.
            unsafe { self.run_unchecked(copy.as_ptr(), &mut word) };
            *mask = word[0] & if rest.len() >= 64 { !0 } else { (1 << rest.len()) - 1 };
        }
    }

    /// # Safety
    /// `(masks.len() - 1) * 64 + SLACK_BYTES` bytes are readable at `p`.
    unsafe fn run_unchecked(&self, p: *const u8, masks: &mut [u64]) {
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        match self {
            // SAFETY: only `new` makes this filter, after it has detected all features of `Isa::Avx512`; the
            // caller promises the readable bytes.
            #[cfg(target_arch = "x86_64")]
            Packed::Avx512(filter) => unsafe { filter.run(p, masks) },
            // SAFETY: only `new` makes this filter, after it has detected all features of `Isa::Avx2`; the
            // caller promises the readable bytes.
            #[cfg(target_arch = "x86_64")]
            Packed::Avx2(filter) => unsafe { filter.run(p, masks) },
            // SAFETY: only `new` makes this filter, after it has detected all features of `Isa::Neon`; the
            // caller promises the readable bytes.
            #[cfg(target_arch = "aarch64")]
            Packed::Neon(filter) => unsafe { filter.run(p, masks) },
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let _ = (p, masks);
    }
}

/// A set of windows of up to four bytes, as a blocked Bloom filter, to look up many positions at once.
pub(crate) struct WindowSet<'b> {
    #[cfg_attr(
        not(target_arch = "x86_64"),
        allow(dead_code, reason = "only AVX-512 has a loop for it")
    )]
    bitmap: &'b [u32],
    shift: u32,
    key_mask: u32,
    add: u32,
    factor: u32,
}

impl<'b> WindowSet<'b> {
    /// Bytes that must be readable from the first position on.
    pub(crate) const BYTES: usize = 67;

    /// Whether this CPU can look windows up.
    pub(crate) fn is_available() -> bool {
        Isa::Avx512.is_available()
    }

    /// Makes a set: the hash of a window is `((window & key_mask) ^ add) * factor`, its upper bits above `shift` choose
    /// a word of the bitmap, and the five bits below and the five below these choose its bits. `None` if the CPU
    /// cannot look windows up, or the bitmap has another length.
    pub(crate) fn new(
        bitmap: &'b [u32],
        shift: u32,
        key_mask: u32,
        add: u32,
        factor: u32,
    ) -> Option<Self> {
        let has_length = (10..32).contains(&shift) && bitmap.len() == 1 << (32 - shift);
        (has_length && Self::is_available()).then_some(WindowSet {
            bitmap,
            shift,
            key_mask,
            add,
            factor,
        })
    }

    /// Returns a mask of the 64 positions from `at` on whose windows may be in the set; if `every` is 4, only of every
    /// fourth.
    ///
    /// # Panics
    /// If fewer than [`BYTES`](Self::BYTES) follow `at`.
    #[inline]
    pub(crate) fn may_have(&self, text: &[u8], at: usize, every: usize) -> u64 {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: only `new` makes a set, after it has detected all features of `Isa::Avx512`.
        return unsafe { gather::may_have(self, text, at, every) };
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = (text, at, every, self.shift, self.key_mask, self.add, self.factor);
            unreachable!("`new` makes no set on this CPU")
        }
    }
}

#[cfg(target_arch = "x86_64")]
const AHEAD_BYTES: usize = 4096;

/// Prefetches the bytes that the filter will need soon.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn fetch_ahead(at: *const u8) {
    // SAFETY: a prefetch dereferences nothing, and does not fault on any address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(AHEAD_BYTES).cast()) };
}

/// Does nothing: Rust has no stable prefetch for this processor, whose hardware prefetches.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn fetch_ahead(_at: *const u8) {}

/// Makes the facade of an instruction set: a filter of any width, and its loop compiled with the
/// features of the set.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! facade {
    ($lanes:ty, $isa:ident, $features:literal) => {
        const _: () = assert!(quarrier_core::isa::Isa::$isa.has($features));

        /// Tables for one of the widths.
        pub(crate) enum Filter {
            W1([<$lanes as Lanes>::Table; 1]),
            W2([<$lanes as Lanes>::Table; 2]),
            W3([<$lanes as Lanes>::Table; 3]),
            W4([<$lanes as Lanes>::Table; 4]),
            W5([<$lanes as Lanes>::Table; 5]),
            W6([<$lanes as Lanes>::Table; 6]),
            E1([u8; 1]),
            E2([u8; 2]),
            E3([u8; 3]),
            E4([u8; 4]),
        }

        impl Filter {
            /// Makes a filter for 1 to 6 sets.
            pub(super) fn new(sets: &[ByteSets]) -> Self {
                let table = |i: usize| <$lanes as Lanes>::table(&sets[i]);
                match super::only_bytes(sets).as_deref() {
                    Some(&[a]) => return Filter::E1([a]),
                    Some(&[a, b]) => return Filter::E2([a, b]),
                    Some(&[a, b, c]) => return Filter::E3([a, b, c]),
                    Some(&[a, b, c, d]) => return Filter::E4([a, b, c, d]),
                    _ => {}
                }
                match sets.len() {
                    1 => Filter::W1(std::array::from_fn(table)),
                    2 => Filter::W2(std::array::from_fn(table)),
                    3 => Filter::W3(std::array::from_fn(table)),
                    4 => Filter::W4(std::array::from_fn(table)),
                    5 => Filter::W5(std::array::from_fn(table)),
                    _ => Filter::W6(std::array::from_fn(table)),
                }
            }

            /// # Safety
            /// The instruction set is available, and
            /// `(masks.len() - 1) * 64 + SLACK_BYTES` bytes are readable at `p`.
            pub(super) unsafe fn run(&self, p: *const u8, masks: &mut [u64]) {
                // SAFETY: the caller promises that the instruction set is available, and that the bytes are
                // readable; neither depends on the width.
                unsafe {
                    match self {
                        Filter::W1(tables) => fill(tables, p, masks),
                        Filter::W2(tables) => fill(tables, p, masks),
                        Filter::W3(tables) => fill(tables, p, masks),
                        Filter::W4(tables) => fill(tables, p, masks),
                        Filter::W5(tables) => fill(tables, p, masks),
                        Filter::W6(tables) => fill(tables, p, masks),
                        Filter::E1(bytes) => fill_equal(bytes, p, masks),
                        Filter::E2(bytes) => fill_equal(bytes, p, masks),
                        Filter::E3(bytes) => fill_equal(bytes, p, masks),
                        Filter::E4(bytes) => fill_equal(bytes, p, masks),
                    }
                }
            }
        }

        /// # Safety
        /// The contract of [`Filter::run`].
        #[target_feature(enable = $features)]
        unsafe fn fill_equal<const K: usize>(bytes: &[u8; K], p: *const u8, masks: &mut [u64]) {
            for (word, mask) in masks.iter_mut().enumerate() {
                let at = p.wrapping_add(word * 64);
                super::fetch_ahead(at);
                // SAFETY: the caller promises the instruction set, and readable bytes up to SLACK_BYTES after
                // the last word's start, which is at least the `64 + K - 1` that `equal` reads.
                *mask = unsafe { <$lanes as Lanes>::equal(bytes, at) };
            }
        }

        /// # Safety
        /// The contract of [`Filter::run`].
        #[target_feature(enable = $features)]
        unsafe fn fill<const K: usize>(
            tables: &[<$lanes as Lanes>::Table; K],
            p: *const u8,
            masks: &mut [u64],
        ) {
            let tables = *tables;
            for (word, mask) in masks.iter_mut().enumerate() {
                let at = p.wrapping_add(word * 64);
                super::fetch_ahead(at);
                // SAFETY: the caller promises the instruction set, and readable bytes up to SLACK_BYTES after
                // the last word's start, which is at least the `64 + K - 1` that `passing` reads.
                *mask = unsafe { <$lanes as Lanes>::passing(&tables, at) };
            }
        }
    };
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use facade;

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets of one value each are compared, others looked up; a position passes if a bucket remains, and may pass
    /// if only half-bytes or low bits are alike.
    #[test]
    fn positions_pass_where_all_bytes_are_allowed() {
        let mut state = 0x9E37_79B9_7F4A_7C15u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state >> 32
        };
        let text: Vec<u8> = (0..1_000).map(|_| b"abz\xE1"[random() as usize % 4]).collect();
        for isa in [Isa::Avx512, Isa::Avx2, Isa::Neon] {
            for round in 0..200 {
                let width = 1 + round % WIDTH_MAX;
                let mut sets = vec![[0u8; 256]; width];
                let values = 1 + round / WIDTH_MAX % 2;
                for set in &mut sets {
                    (0..values)
                        .for_each(|_| set[usize::from(b"abz\xE1"[random() as usize % 4])] |= 1);
                }
                let Some(packed) = Packed::new(isa, &sets) else { continue };
                let is_compared = values == 1 && width <= EQUAL_MAX;
                assert!(!is_compared || only_bytes(&sets).is_some());
                let from = random() as usize % 100;
                let mut masks = [0u64; 17];
                packed.run(&text, from, &mut masks);
                for at in from..from + masks.len() * 64 {
                    let allowed = sets.iter().enumerate().fold(1u8, |left, (place, set)| {
                        left & text.get(at + place).map_or(0, |byte| set[usize::from(*byte)])
                    });
                    let passes = masks[(at - from) / 64] >> ((at - from) % 64) & 1 == 1;
                    assert!(passes || allowed == 0, "{isa:?} {round} {at}");
                    assert!(!passes || at < text.len(), "{isa:?} {round} {at}");
                    let is_whole = at + width <= text.len();
                    assert!(
                        !(is_compared && is_whole) || passes == (allowed != 0),
                        "{isa:?} {round} {at}"
                    );
                }
            }
        }
    }

    #[test]
    fn only_sets_of_one_value_and_a_common_bucket_are_compared() {
        let set = |values: &[(u8, u8)]| {
            let mut set = [0u8; 256];
            values.iter().for_each(|&(byte, buckets)| set[usize::from(byte)] = buckets);
            set
        };
        let (a, b) = (set(&[(b'a', 1)]), set(&[(b'b', 3)]));
        assert_eq!(only_bytes(&[a, b]), Some(b"ab".to_vec()));
        assert_eq!(only_bytes(&[a; 4]), Some(b"aaaa".to_vec()));
        assert_eq!(only_bytes(&[a; 5]), None);
        assert_eq!(only_bytes(&[a, set(&[(b'b', 2)])]), None);
        assert_eq!(only_bytes(&[a, set(&[(b'b', 1), (b'c', 1)])]), None);
        assert_eq!(only_bytes(&[set(&[])]), None);
    }

    #[test]
    fn windows_are_looked_up_as_one_at_a_time() {
        let mut state = 0x9E37_79B9_7F4A_7C15u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u32
        };
        let bitmap: Vec<u32> = (0..1 << 11).map(|_| random() | random()).collect();
        let text: Vec<u8> = (0..400).map(|_| random() as u8).collect();
        let (add, factor) = (random(), random() | 1);
        assert!(WindowSet::new(&bitmap[1..], 21, !0, add, factor).is_none(), "another length");
        for key_mask in [!0, 0xFFFF, 0xDFDF_DFDF] {
            let Some(set) = WindowSet::new(&bitmap, 21, key_mask, add, factor) else { return };
            let passes = |at: usize| {
                let window = u32::from_le_bytes(std::array::from_fn(|i| text[at + i]));
                let hash = (window & key_mask ^ add).wrapping_mul(factor);
                let word = bitmap[(hash >> 21) as usize];
                word >> (hash >> 16 & 31) & word >> (hash >> 11 & 31) & 1 != 0
            };
            for (every, at) in [(1, 0), (4, 0), (1, 7), (4, 9), (1, 400 - WindowSet::BYTES)] {
                let expected = (0..64).step_by(every).filter(|i| passes(at + i));
                let expected = expected.fold(0u64, |mask, i| mask | 1 << i);
                assert_eq!(set.may_have(&text, at, every), expected, "{key_mask:x} {every} {at}");
            }
        }
    }
}
