//! AVX-512: 64 bytes at a time.

use std::arch::x86_64::{
    _mm512_cmpeq_epi8_mask, _mm512_cmplt_epu8_mask, _mm512_loadu_si512, _mm512_movepi8_mask,
    _mm512_set1_epi8,
};

use super::{Lanes, Short, Text, digits};

pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx512;

impl Lanes for Avx512 {
    const TEXT_BYTES: usize = 64;

    #[inline(always)]
    unsafe fn starts_with(p: *const u8, text: &Short) -> bool {
        // SAFETY: the caller promised the feature and 64 readable bytes; `text` has 64.
        unsafe {
            let ahead = _mm512_loadu_si512(p.cast());
            let own = _mm512_loadu_si512(text.bytes.as_ptr().cast());
            (!_mm512_cmpeq_epi8_mask(ahead, own)).trailing_zeros() as usize >= text.len
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
            let ahead = _mm512_loadu_si512(p.cast());
            let quote = _mm512_cmpeq_epi8_mask(ahead, _mm512_set1_epi8(b'"' as i8));
            let back = _mm512_cmpeq_epi8_mask(ahead, _mm512_set1_epi8(b'\\' as i8));
            let control = _mm512_cmplt_epu8_mask(ahead, _mm512_set1_epi8(0x20));
            Text { stops: quote | back | control, wide: _mm512_movepi8_mask(ahead) }
        }
    }
}
