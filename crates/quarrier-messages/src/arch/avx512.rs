//! AVX-512: 64 bytes at a time. Requires VBMI2, which compresses vectors of bytes; processors
//! without it are as fast with AVX2.

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
        // SAFETY: the caller promises AVX-512, and the AHEAD_BYTES (64) that the unaligned load
        // reads at `p`.
        unsafe { _mm512_loadu_si512(p.cast()) }
    }

    #[inline(always)]
    unsafe fn starts_with(ahead: __m512i, text: &Short) -> bool {
        // SAFETY: the caller promises AVX-512. `text.bytes` is an array of the 64 bytes that the
        // unaligned load reads.
        unsafe {
            let own = _mm512_loadu_si512(text.bytes.as_ptr().cast());
            (!_mm512_cmpeq_epi8_mask(ahead, own)).trailing_zeros() as usize >= text.len
        }
    }

    const HAS_DIGITS: bool = true;

    #[inline(always)]
    unsafe fn digits(ahead: __m512i, skip: usize) -> u64 {
        // SAFETY: the caller promises AVX-512, the only condition of these intrinsics.
        unsafe {
            let values = _mm512_sub_epi8(ahead, _mm512_set1_epi8(b'0' as i8));
            _mm512_cmple_epu8_mask(values, _mm512_set1_epi8(9)) >> skip
        }
    }

    #[inline(always)]
    unsafe fn value(p: *const u8, whole: usize, digits: usize) -> u64 {
        // SAFETY: the caller promises AVX-512, which includes AVX2, and 17 readable bytes at `p`,
        // of which `digits::value` needs 16.
        unsafe { digits::value(p, whole, digits) }
    }

    #[inline(always)]
    unsafe fn checked(p: *const u8, len: usize) -> Option<u64> {
        // SAFETY: the caller promises AVX-512, which includes AVX2, and AHEAD_BYTES at `p`, of
        // which `digits::checked` needs 16.
        unsafe { digits::checked(p, len) }
    }

    #[inline(always)]
    unsafe fn text(ahead: __m512i, skip: usize) -> Text {
        // SAFETY: the caller promises AVX-512, the only condition of these intrinsics.
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
