//! AVX2: 32 bytes at a time.

use std::arch::x86_64::{
    __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_max_epu8, _mm256_movemask_epi8,
    _mm256_or_si256, _mm256_set1_epi8,
};

use super::{Lanes, Short, Text, digits};

pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2;

impl Lanes for Avx2 {
    const TEXT_BYTES: usize = 32;

    #[inline(always)]
    unsafe fn starts_with(p: *const u8, text: &Short) -> bool {
        // SAFETY: the caller promised the feature and 64 readable bytes; `text` has 64.
        unsafe {
            let equal = |at: usize| {
                let ahead = _mm256_loadu_si256(p.add(at).cast());
                let own = _mm256_loadu_si256(text.bytes.as_ptr().add(at).cast());
                _mm256_movemask_epi8(_mm256_cmpeq_epi8(ahead, own)) as u32
            };
            let mut same = u64::from(equal(0));
            if text.len > 32 {
                same |= u64::from(equal(32)) << 32;
            }
            (!same).trailing_zeros() as usize >= text.len
        }
    }

    const HAS_DIGITS: bool = true;

    #[inline(always)]
    unsafe fn no_digits(p: *const u8) -> u64 {
        // SAFETY: the caller promised the feature and 64 readable bytes.
        unsafe { digits::no_digits(p) }
    }

    #[inline(always)]
    unsafe fn value(p: *const u8, whole: usize, digits: usize) -> u64 {
        // SAFETY: as above.
        unsafe { digits::value(p, whole, digits) }
    }

    #[inline(always)]
    unsafe fn text(p: *const u8) -> Text {
        // SAFETY: the caller promised the feature and 64 readable bytes.
        unsafe {
            let ahead: __m256i = _mm256_loadu_si256(p.cast());
            let quote = _mm256_cmpeq_epi8(ahead, _mm256_set1_epi8(b'"' as i8));
            let back = _mm256_cmpeq_epi8(ahead, _mm256_set1_epi8(b'\\' as i8));
            let last = _mm256_set1_epi8(0x1F);
            let control = _mm256_cmpeq_epi8(_mm256_max_epu8(ahead, last), last);
            let stops = _mm256_or_si256(_mm256_or_si256(quote, back), control);
            Text {
                stops: u64::from(_mm256_movemask_epi8(stops) as u32),
                wide: u64::from(_mm256_movemask_epi8(ahead) as u32),
            }
        }
    }
}
