//! One pass over a whole message whose fields end with SOH: finds the ends of fields, sums the
//! bytes, and tests whether they are ASCII.

#[cfg(target_arch = "aarch64")]
use super::Neon;
use super::{AHEAD_BYTES, Lanes, Portable};
#[cfg(target_arch = "x86_64")]
use super::{Avx2, Avx512};

/// Maximum length of a message for one pass.
pub(crate) const MARKED_BYTES_MAX: usize = 4_096;

/// Number of positions to write at a time.
const PLACES_AT_ONCE: usize = 8;

/// Maximum number of entries written past the positions of a block.
const PLACES_SPARE: usize = AHEAD_BYTES;

/// The positions of a message's separators.
#[derive(Debug)]
pub(crate) struct Ends {
    places: Box<[u16; MARKED_BYTES_MAX + PLACES_SPARE]>,
    count: usize,
}

impl Ends {
    pub(crate) fn new() -> Self {
        Ends { places: Box::new([0; MARKED_BYTES_MAX + PLACES_SPARE]), count: 0 }
    }

    /// Returns the positions, ascending.
    #[inline(always)]
    pub(crate) fn places(&self) -> &[u16] {
        &self.places[..self.count]
    }

    /// Appends the positions of a block's separators, given as a mask; the block starts at `base`.
    /// Writes eight positions at a time to avoid a branch per separator; later calls overwrite the
    /// extra entries.
    #[inline(always)]
    fn add(&mut self, base: usize, separators: u64) {
        let mut left = separators;
        let mut at = self.count;
        self.count += separators.count_ones() as usize;
        while left != 0 {
            let Some(places) = self.places.get_mut(at..at + PLACES_AT_ONCE) else { return };
            for place in places {
                *place = (base + left.trailing_zeros() as usize) as u16;
                left &= left.wrapping_sub(1);
            }
            at += PLACES_AT_ONCE;
        }
    }

    /// Like [`add`](Self::add), but compresses half a block's positions at a time.
    ///
    /// # Safety
    /// AVX-512 with VBMI2 is available. The positions, including the block's, are at most
    /// [`MARKED_BYTES_MAX`].
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn add_pressed(&mut self, base: usize, separators: u64) {
        use std::arch::x86_64::{
            _mm512_add_epi16, _mm512_castsi512_si256, _mm512_cvtepu8_epi16,
            _mm512_extracti64x4_epi64, _mm512_loadu_si512, _mm512_maskz_compress_epi8,
            _mm512_set1_epi16, _mm512_storeu_si512,
        };
        const HALF: usize = AHEAD_BYTES / 2;
        let count = separators.count_ones() as usize;
        debug_assert!(self.count + count <= MARKED_BYTES_MAX);
        // SAFETY: the caller promises the features. `PLACES` has the 64 bytes of the first load.
        // Before this block there are at most MARKED_BYTES_MAX positions less its own, and `places`
        // has PLACES_SPARE (64) entries more: the stores of 32 entries at `count` and, if the block
        // has more than 32 positions, at `count + 32`, stay within it. Loads and stores are
        // unaligned ones.
        unsafe {
            let all = _mm512_loadu_si512(PLACES.as_ptr().cast());
            let own = _mm512_maskz_compress_epi8(separators, all);
            let base = _mm512_set1_epi16(base as i16);
            let to = self.places.as_mut_ptr().add(self.count);
            let first = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(own));
            _mm512_storeu_si512(to.cast(), _mm512_add_epi16(first, base));
            if count > HALF {
                let others = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64::<1>(own));
                _mm512_storeu_si512(to.add(HALF).cast(), _mm512_add_epi16(others, base));
            }
        }
        self.count += count;
    }
}

/// Bytes equal to their indexes in a block.
#[cfg(target_arch = "x86_64")]
static PLACES: [u8; AHEAD_BYTES] = {
    let mut places = [0; AHEAD_BYTES];
    let mut at = 0;
    while at < AHEAD_BYTES {
        places[at] = at as u8;
        at += 1;
    }
    places
};

/// The result of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marked {
    /// The sum of all bytes, modulo 256.
    pub(crate) sum: u8,
    pub(crate) is_ascii: bool,
    pub(crate) line_feeds: u32,
}

const SEPARATOR: u8 = 1;

/// The pass of one instruction set.
///
/// # Safety
/// For every function, the instruction set is available, and [`AHEAD_BYTES`] are readable at `p`.
pub(crate) trait Marks: Lanes {
    /// Bit i is set if byte i of the next 64 is SOH.
    unsafe fn separators(p: *const u8) -> u64;

    /// Examines `len` bytes, at most [`MARKED_BYTES_MAX`]; [`AHEAD_BYTES`] more are readable after
    /// them.
    unsafe fn mark(p: *const u8, len: usize, ends: &mut Ends) -> Marked;
}

#[cfg(target_arch = "x86_64")]
impl Marks for Avx512 {
    #[inline(always)]
    unsafe fn separators(p: *const u8) -> u64 {
        use std::arch::x86_64::{_mm512_cmpeq_epi8_mask, _mm512_loadu_si512, _mm512_set1_epi8};
        // SAFETY: the caller promises AVX-512, and the 64 bytes at `p` that the unaligned load
        // reads.
        unsafe {
            _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(p.cast()), _mm512_set1_epi8(SEPARATOR as i8))
        }
    }

    #[inline(always)]
    unsafe fn mark(p: *const u8, len: usize, ends: &mut Ends) -> Marked {
        use std::arch::x86_64::{
            _mm512_add_epi64, _mm512_cmpeq_epi8_mask, _mm512_maskz_loadu_epi8, _mm512_movepi8_mask,
            _mm512_or_si512, _mm512_reduce_add_epi64, _mm512_sad_epu8, _mm512_set1_epi8,
            _mm512_setzero_si512,
        };
        // SAFETY: the caller promises AVX-512 with VBMI2, and `len` bytes at `p`. The masked load
        // reads only the bytes of `own`, which are below `len`. A block has at most as many
        // separators as bytes, so the positions are at most `len`, which is at most
        // MARKED_BYTES_MAX.
        unsafe {
            let (mut sums, mut all) = (_mm512_setzero_si512(), _mm512_setzero_si512());
            let mut line_feeds = 0;
            ends.count = 0;
            let mut base = 0;
            while base < len {
                let own = own_bits(len - base);
                let block = _mm512_maskz_loadu_epi8(own, p.add(base).cast());
                sums = _mm512_add_epi64(sums, _mm512_sad_epu8(block, _mm512_setzero_si512()));
                all = _mm512_or_si512(all, block);
                let feeds = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(b'\n' as i8));
                line_feeds += feeds.count_ones();
                let separators = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(SEPARATOR as i8));
                ends.add_pressed(base, separators);
                base += AHEAD_BYTES;
            }
            Marked {
                sum: _mm512_reduce_add_epi64(sums) as u8,
                is_ascii: _mm512_movepi8_mask(all) == 0,
                line_feeds,
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Marks for Avx2 {
    #[inline(always)]
    unsafe fn separators(p: *const u8) -> u64 {
        use std::arch::x86_64::_mm256_loadu_si256;
        // SAFETY: the caller promises AVX2, and 64 readable bytes at `p`: two unaligned loads of
        // 32.
        unsafe {
            let low = equal(_mm256_loadu_si256(p.cast()), SEPARATOR);
            let high = equal(_mm256_loadu_si256(p.add(32).cast()), SEPARATOR);
            low | high << 32
        }
    }

    #[inline(always)]
    unsafe fn mark(p: *const u8, len: usize, ends: &mut Ends) -> Marked {
        use std::arch::x86_64::{
            _mm_add_epi64, _mm_cvtsi128_si64, _mm_extract_epi64, _mm256_add_epi64,
            _mm256_and_si256, _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_loadu_si256,
            _mm256_movemask_epi8, _mm256_or_si256, _mm256_sad_epu8, _mm256_setzero_si256,
        };
        // SAFETY: the caller promises AVX2, and `len` bytes at `p` with AHEAD_BYTES more: each
        // block of 64 begins before `len`. `masks` points to at most index AHEAD_BYTES of
        // OWN_BYTES, so it has 64 bytes, too.
        unsafe {
            let (mut sums, mut all) = (_mm256_setzero_si256(), _mm256_setzero_si256());
            let mut line_feeds = 0;
            ends.count = 0;
            let mut base = 0;
            while base < len {
                let masks = OWN_BYTES.as_ptr().add(AHEAD_BYTES - (len - base).min(AHEAD_BYTES));
                let half = |at: usize| {
                    let mask = _mm256_loadu_si256(masks.add(at).cast());
                    _mm256_and_si256(_mm256_loadu_si256(p.add(base + at).cast()), mask)
                };
                let (low, high) = (half(0), half(32));
                sums = _mm256_add_epi64(sums, _mm256_sad_epu8(low, _mm256_setzero_si256()));
                sums = _mm256_add_epi64(sums, _mm256_sad_epu8(high, _mm256_setzero_si256()));
                all = _mm256_or_si256(all, _mm256_or_si256(low, high));
                line_feeds += (equal(low, b'\n') | equal(high, b'\n') << 32).count_ones();
                ends.add(base, equal(low, SEPARATOR) | equal(high, SEPARATOR) << 32);
                base += AHEAD_BYTES;
            }
            let sums =
                _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
            let sum = _mm_cvtsi128_si64(sums) + _mm_extract_epi64::<1>(sums);
            Marked { sum: sum as u8, is_ascii: _mm256_movemask_epi8(all) == 0, line_feeds }
        }
    }
}

#[cfg(target_arch = "aarch64")]
impl Marks for Neon {
    #[inline(always)]
    unsafe fn separators(p: *const u8) -> u64 {
        // SAFETY: the caller promises NEON, and the AHEAD_BYTES at `p` that `look` reads.
        unsafe { super::neon::equal(Self::look(p), SEPARATOR) }
    }

    #[inline(always)]
    unsafe fn mark(p: *const u8, len: usize, ends: &mut Ends) -> Marked {
        use std::arch::aarch64::{vaddq_u8, vaddvq_u8, vandq_u8, vdupq_n_u8, vmaxvq_u8, vorrq_u8};
        // SAFETY: the caller promises NEON, and `len` bytes at `p` with AHEAD_BYTES more: each
        // block of 64 begins before `len`. `masks` points to at most index AHEAD_BYTES of
        // OWN_BYTES, so it has 64 bytes, too.
        unsafe {
            // Lanes wrap, since only the last eight bits of the sum matter.
            let (mut sums, mut all) = (vdupq_n_u8(0), vdupq_n_u8(0));
            let mut line_feeds = 0;
            ends.count = 0;
            let mut base = 0;
            while base < len {
                let masks = OWN_BYTES.as_ptr().add(AHEAD_BYTES - (len - base).min(AHEAD_BYTES));
                let mut block = Self::look(p.add(base));
                for (bytes, mask) in block.iter_mut().zip(Self::look(masks)) {
                    *bytes = vandq_u8(*bytes, mask);
                    sums = vaddq_u8(sums, *bytes);
                    all = vorrq_u8(all, *bytes);
                }
                line_feeds += super::neon::equal(block, b'\n').count_ones();
                ends.add(base, super::neon::equal(block, SEPARATOR));
                base += AHEAD_BYTES;
            }
            Marked { sum: vaddvq_u8(sums), is_ascii: vmaxvq_u8(all) < 0x80, line_feeds }
        }
    }
}

/// Bit i is set if byte i is `byte`.
///
/// # Safety
/// AVX2 is available.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn equal(bytes: std::arch::x86_64::__m256i, byte: u8) -> u64 {
    use std::arch::x86_64::{_mm256_cmpeq_epi8, _mm256_movemask_epi8, _mm256_set1_epi8};
    // SAFETY: the caller promises AVX2, the only condition of these intrinsics.
    unsafe {
        let equal = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte as i8));
        u64::from(_mm256_movemask_epi8(equal) as u32)
    }
}

/// Masks of a block's own bytes: the mask for `n` bytes starts at index `64 - n`.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
static OWN_BYTES: [u8; 2 * AHEAD_BYTES] = {
    let mut bytes = [0; 2 * AHEAD_BYTES];
    let mut at = 0;
    while at < AHEAD_BYTES {
        bytes[at] = 0xFF;
        at += 1;
    }
    bytes
};

impl Marks for Portable {
    #[inline(always)]
    unsafe fn separators(p: *const u8) -> u64 {
        // SAFETY: the caller promises 64 readable bytes at `p`. An array of bytes has no alignment,
        // and the reference ends with the call.
        separators_of(unsafe { &*p.cast::<[u8; AHEAD_BYTES]>() })
    }

    #[inline(always)]
    unsafe fn mark(p: *const u8, len: usize, ends: &mut Ends) -> Marked {
        // SAFETY: the caller promises `len` readable bytes at `p`, which nobody changes meanwhile.
        let bytes = unsafe { std::slice::from_raw_parts(p, len) };
        ends.count = 0;
        for base in (0..len).step_by(AHEAD_BYTES) {
            // SAFETY: `base` is below `len`, and the caller promises `len` bytes at `p` with
            // AHEAD_BYTES more.
            let separators = unsafe { Self::separators(p.add(base)) };
            ends.add(base, separators & own_bits(len - base));
        }
        Marked {
            sum: bytes.iter().fold(0, |sum, &byte| sum.wrapping_add(byte)),
            is_ascii: bytes.is_ascii(),
            line_feeds: bytes.iter().map(|&byte| u32::from(byte == b'\n')).sum(),
        }
    }
}

#[inline(always)]
fn separators_of(bytes: &[u8; AHEAD_BYTES]) -> u64 {
    let (eights, _) = bytes.as_chunks::<8>();
    eights.iter().rev().fold(0, |bits, eight| {
        let differs = u64::from_le_bytes(*eight) ^ (ONES * u64::from(SEPARATOR));
        // Sets the high bit of every byte that is 0, and of no other.
        let zeros = !(((differs & (ONES * 0x7F)) + ONES * 0x7F) | differs) & (ONES << 7);
        bits << 8 | (zeros >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
    })
}

const ONES: u64 = u64::from_le_bytes([1; 8]);

/// Returns a bit for each byte of a block that is one of the `left` bytes; `left` is not 0.
#[inline(always)]
fn own_bits(left: usize) -> u64 {
    !0 >> (AHEAD_BYTES - left.min(AHEAD_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use quarrier_core::isa::Isa;

    fn pass(isa: Isa, bytes: &[u8], at: usize, len: usize, ends: &mut Ends) -> (u64, Marked) {
        assert!(at + len + AHEAD_BYTES <= bytes.len());
        let p = bytes[at..].as_ptr();
        // SAFETY: the assertion checks `len` bytes at `p` with AHEAD_BYTES more. The callers pass
        // only available instruction sets.
        unsafe {
            match isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => (Avx512::separators(p), Avx512::mark(p, len, ends)),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => (Avx2::separators(p), Avx2::mark(p, len, ends)),
                #[cfg(target_arch = "aarch64")]
                Isa::Neon => (Neon::separators(p), Neon::mark(p, len, ends)),
                _ => (Portable::separators(p), Portable::mark(p, len, ends)),
            }
        }
    }

    proptest! {
        #[test]
        fn one_pass_equals_a_loop_at_any_alignment(
            bytes in proptest::collection::vec(
                prop_oneof![Just(1u8), Just(b'\n'), 0u8..4, any::<u8>(), 0u8..128, 0x20u8..0x7F], 64..700),
            at in 0usize..64,
            len in any::<prop::sample::Index>(),
        ) {
            let at = at.min(bytes.len() - AHEAD_BYTES);
            let len = len.index(bytes.len() - AHEAD_BYTES - at + 1);
            let own = &bytes[at..at + len];
            let places: Vec<u16> =
                (0..len).filter(|&place| own[place] == 1).map(|place| place as u16).collect();
            let first = &bytes[at..at + AHEAD_BYTES];
            let separators = (0..AHEAD_BYTES).fold(0u64, |bits, bit| {
                bits | u64::from(first[bit] == 1) << bit
            });
            let marked = Marked {
                sum: (own.iter().map(|&byte| u32::from(byte)).sum::<u32>() % 256) as u8,
                is_ascii: own.iter().all(|&byte| byte < 128),
                line_feeds: own.iter().filter(|&&byte| byte == b'\n').count() as u32,
            };
            let mut ends = Ends::new();
            for isa in Isa::available() {
                prop_assert_eq!(pass(isa, &bytes, at, len, &mut ends), (separators, marked));
                prop_assert_eq!(ends.places(), &places[..]);
            }
        }
    }

    #[test]
    fn a_message_of_only_separators_is_marked_completely() {
        let bytes = [SEPARATOR; MARKED_BYTES_MAX + AHEAD_BYTES];
        let mut ends = Ends::new();
        for isa in Isa::available() {
            pass(isa, &bytes, 0, MARKED_BYTES_MAX, &mut ends);
            assert!(ends.places().iter().copied().eq(0..MARKED_BYTES_MAX as u16));
        }
    }
}
