//! Any machine: loops that compilers vectorize.

use super::{AHEAD_BYTES, Lanes, Short, Text};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Portable;

impl Lanes for Portable {
    type Ahead = *const u8;

    const TEXT_BYTES: usize = 16;

    #[inline(always)]
    unsafe fn look(p: *const u8) -> *const u8 {
        p
    }

    #[inline(always)]
    unsafe fn starts_with(ahead: *const u8, text: &Short) -> bool {
        // SAFETY: the caller promises AHEAD_BYTES at `ahead` that stay valid, and the length is at
        // most that.
        let ahead = unsafe { std::slice::from_raw_parts(ahead, text.len.min(AHEAD_BYTES)) };
        ahead == &text.bytes[..ahead.len()]
    }

    const HAS_DIGITS: bool = false;

    #[inline(always)]
    unsafe fn digits(ahead: *const u8, skip: usize) -> u64 {
        // SAFETY: the caller promises AHEAD_BYTES readable bytes at `ahead`; an unaligned read
        // needs no more.
        let ahead = unsafe { ahead.cast::<[u8; AHEAD_BYTES]>().read_unaligned() };
        let bit = |(bit, byte): (usize, u8)| u64::from(byte.is_ascii_digit()) << bit;
        ahead.into_iter().enumerate().map(bit).fold(0, |bits, bit| bits | bit) >> skip
    }

    #[inline(always)]
    unsafe fn value(p: *const u8, whole: usize, digits: usize) -> u64 {
        // SAFETY: the caller promises 17 readable bytes at `p`; an unaligned read needs no more.
        let ahead = unsafe { p.cast::<[u8; 17]>().read_unaligned() };
        let digit = |place: usize| u64::from(ahead[place + usize::from(place >= whole)] - b'0');
        (0..digits).map(digit).fold(0, |value, digit| 10 * value + digit)
    }

    #[inline(always)]
    unsafe fn text(ahead: *const u8, skip: usize) -> Text {
        // SAFETY: the caller promises AHEAD_BYTES at `ahead`, or twice as many if `skip` is not 0,
        // and `skip` is below AHEAD_BYTES: so 16 bytes are readable at `skip`.
        let ahead = unsafe { ahead.add(skip).cast::<[u8; 16]>().read_unaligned() };
        let mut text = Text { stops: 0, wide: 0 };
        for (bit, byte) in ahead.into_iter().enumerate() {
            let is_stop = (byte == b'"') | (byte == b'\\') | (byte < 0x20);
            text.stops |= u64::from(is_stop) << bit;
            text.wide |= u64::from(byte >> 7) << bit;
        }
        text
    }
}
