//! Any machine: loops that compilers make vectors of.

use super::{AHEAD_BYTES, Lanes, Short, Text};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Portable;

impl Lanes for Portable {
    const TEXT_BYTES: usize = 16;

    #[inline(always)]
    unsafe fn starts_with(p: *const u8, text: &Short) -> bool {
        // SAFETY: the caller promised 64 readable bytes, and `len` is at most 64.
        let ahead = unsafe { std::slice::from_raw_parts(p, text.len.min(AHEAD_BYTES)) };
        ahead == &text.bytes[..ahead.len()]
    }

    const HAS_DIGITS: bool = false;

    #[inline(always)]
    unsafe fn no_digits(p: *const u8) -> u64 {
        // SAFETY: the caller promised 64 readable bytes.
        let ahead = unsafe { p.cast::<[u8; 32]>().read_unaligned() };
        let bit = |(bit, byte): (usize, u8)| u64::from(!byte.is_ascii_digit()) << bit;
        ahead.into_iter().enumerate().map(bit).fold(!0 << 32, |bits, bit| bits | bit)
    }

    #[inline(always)]
    unsafe fn value(p: *const u8, whole: usize, digits: usize) -> u64 {
        // SAFETY: the caller promised 64 readable bytes.
        let ahead = unsafe { p.cast::<[u8; 17]>().read_unaligned() };
        let digit = |place: usize| u64::from(ahead[place + usize::from(place >= whole)] - b'0');
        (0..digits).map(digit).fold(0, |value, digit| 10 * value + digit)
    }

    #[inline(always)]
    unsafe fn text(p: *const u8) -> Text {
        // SAFETY: the caller promised 64 readable bytes.
        let ahead = unsafe { p.cast::<[u8; 16]>().read_unaligned() };
        let mut text = Text { stops: 0, wide: 0 };
        for (bit, byte) in ahead.into_iter().enumerate() {
            let is_stop = (byte == b'"') | (byte == b'\\') | (byte < 0x20);
            text.stops |= u64::from(is_stop) << bit;
            text.wide |= u64::from(byte >> 7) << bit;
        }
        text
    }
}
