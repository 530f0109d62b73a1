//! AVX-512: hashes 16 windows of four bytes at a time, and looks them up in a Bloom filter by `vpgatherdd`.

use std::arch::x86_64::{
    _mm_cvtsi32_si128, _mm512_and_si512, _mm512_cmpeq_epi32_mask, _mm512_i32gather_epi32,
    _mm512_loadu_si512, _mm512_mullo_epi32, _mm512_or_si512, _mm512_set1_epi32, _mm512_sllv_epi32,
    _mm512_srl_epi32, _mm512_xor_si512,
};

use quarrier_core::isa::Isa;

use super::WindowSet;

const _: () = assert!(Isa::Avx512.has("avx512f"));

/// Returns a mask of the positions of the 64 bytes from `at` on whose windows may be in the set; if `every` is 4, only
/// of those divisible by four from `at` on.
///
/// # Panics
/// If fewer than 67 bytes of `text` follow `at`.
///
/// # Safety
/// AVX-512 F is available.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn may_have(set: &WindowSet<'_>, text: &[u8], at: usize, every: usize) -> u64 {
    let bytes = &text[at..at + 67];
    let shift = |less: u32| _mm_cvtsi32_si128((set.shift - less) as i32);
    let (one, last) = (_mm512_set1_epi32(1), _mm512_set1_epi32(31));
    let mut found = 0u64;
    for start in (0..4).step_by(every) {
        // SAFETY: `start` is at most 3, and 64 bytes from there on are in `bytes`. The load is unaligned.
        let windows = unsafe { _mm512_loadu_si512(bytes.as_ptr().add(start).cast()) };
        let keys = _mm512_and_si512(windows, _mm512_set1_epi32(set.key_mask as i32));
        let keys = _mm512_xor_si512(keys, _mm512_set1_epi32(set.add as i32));
        let hashes = _mm512_mullo_epi32(keys, _mm512_set1_epi32(set.factor as i32));
        let places = _mm512_srl_epi32(hashes, shift(0));
        // SAFETY: a place has `32 - shift` bits, and `WindowSet::new` checked that the bitmap has as many words.
        let words = unsafe { _mm512_i32gather_epi32::<4>(places, set.bitmap.as_ptr().cast()) };
        let bit = |less: u32| {
            _mm512_sllv_epi32(one, _mm512_and_si512(_mm512_srl_epi32(hashes, shift(less)), last))
        };
        let bits = _mm512_or_si512(bit(5), bit(10));
        let mut passing = _mm512_cmpeq_epi32_mask(_mm512_and_si512(words, bits), bits);
        while passing != 0 {
            found |= 1 << (start as u32 + 4 * passing.trailing_zeros());
            passing &= passing - 1;
        }
    }
    found
}
