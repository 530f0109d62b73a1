//! AVX-512: 64 bytes at a time. With VBMI2, which presses bytes together; processors that lack it
//! do as well with AVX2.

use std::arch::x86_64::{
    __m512i, _mm512_cmpeq_epi8_mask, _mm512_cmple_epu8_mask, _mm512_cmplt_epu8_mask,
    _mm512_loadu_si512, _mm512_movepi8_mask, _mm512_set1_epi8, _mm512_sub_epi8,
};

use super::{Lanes, Short, Text, digits};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx512;

impl Lanes for Avx512 {
    type Ahead = __m512i;

    const TEXT_BYTES: usize = 64;

    #[inline(always)]
    unsafe fn look(p: *const u8) -> __m512i {
        // SAFETY: the caller promised the feature and the bytes.
        unsafe { _mm512_loadu_si512(p.cast()) }
    }

    #[inline(always)]
    unsafe fn starts_with(ahead: __m512i, text: &Short) -> bool {
        // SAFETY: the caller promised the feature; `text` has 64 bytes.
        unsafe {
            let own = _mm512_loadu_si512(text.bytes.as_ptr().cast());
            (!_mm512_cmpeq_epi8_mask(ahead, own)).trailing_zeros() as usize >= text.len
        }
    }

    const HAS_DIGITS: bool = true;

    #[inline(always)]
    unsafe fn digits(ahead: __m512i, skip: usize) -> u64 {
        // SAFETY: the caller promised the feature.
        unsafe {
            let values = _mm512_sub_epi8(ahead, _mm512_set1_epi8(b'0' as i8));
            _mm512_cmple_epu8_mask(values, _mm512_set1_epi8(9)) >> skip
        }
    }

    #[inline(always)]
    unsafe fn value(p: *const u8, whole: usize, digits: usize) -> u64 {
        // SAFETY: the caller promised the feature, which comes with AVX2, and the bytes.
        unsafe { digits::value(p, whole, digits) }
    }

    #[inline(always)]
    unsafe fn checked(p: *const u8, len: usize) -> Option<u64> {
        // SAFETY: as of `value`.
        unsafe { digits::checked(p, len) }
    }

    #[inline(always)]
    unsafe fn text(ahead: __m512i, skip: usize) -> Text {
        // SAFETY: the caller promised the feature.
        unsafe {
            let quote = _mm512_cmpeq_epi8_mask(ahead, _mm512_set1_epi8(b'"' as i8));
            let back = _mm512_cmpeq_epi8_mask(ahead, _mm512_set1_epi8(b'\\' as i8));
            let control = _mm512_cmplt_epu8_mask(ahead, _mm512_set1_epi8(0x20));
            Text {
                stops: (quote | back | control) >> skip,
                wide: _mm512_movepi8_mask(ahead) >> skip,
            }
        }
    }
}
