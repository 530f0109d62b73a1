//! Processes eight bytes at a time.

use super::SEPARATOR;

/// Returns the first separator at or after `at`; the end if there is none.
#[inline(always)]
pub(super) fn find_separator(bytes: &[u8], at: usize) -> usize {
    let mut at = at;
    while let Some(eight) = bytes.get(at..at + 8) {
        let differs = word(eight) ^ (ONES * SEPARATOR as u64);
        // Zero bytes become 0x80; a borrow only affects bytes after the first of them.
        let zeros = differs.wrapping_sub(ONES) & !differs & (ONES << 7);
        if zeros != 0 {
            return at + zeros.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while at < bytes.len() && bytes[at] != SEPARATOR {
        at += 1;
    }
    at.min(bytes.len())
}

const ONES: u64 = u64::from_le_bytes([1; 8]);

/// Returns the eight bytes at `at`, with 0 after the end.
#[inline(always)]
pub(super) fn load(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..at + 8) {
        Some(eight) => word(eight),
        None => load_last(bytes, at),
    }
}

#[inline]
fn load_last(bytes: &[u8], at: usize) -> u64 {
    match (bytes.last_chunk::<8>(), bytes.len().saturating_sub(at)) {
        (_, 0) => 0,
        (Some(eight), rest @ 1..8) => u64::from_le_bytes(*eight) >> (8 * (8 - rest)),
        _ => {
            let mut eight = [0; 8];
            eight[..bytes.len() - at].copy_from_slice(&bytes[at..]);
            u64::from_le_bytes(eight)
        }
    }
}

#[inline(always)]
fn word(eight: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(eight);
    u64::from_le_bytes(word)
}

/// Parses an integer of 1 to 19 digits that fits 64 bits, and nothing else.
#[inline]
pub(super) fn digits(text: &[u8]) -> Option<i64> {
    if text.is_empty() || text.len() > 19 {
        return None;
    }
    let (eights, rest) = text.as_chunks::<8>();
    let mut value = 0u64;
    for eight in eights {
        value = value * 100_000_000 + eight_digits(u64::from_le_bytes(*eight))?;
    }
    for byte in rest {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    i64::try_from(value).ok()
}

/// Converts eight digits, the first in the lowest byte.
#[inline]
fn eight_digits(word: u64) -> Option<u64> {
    let digits = word ^ (ONES * b'0' as u64);
    // Not a digit: the low half plus 6 carries into the high half, or the high half was not 0.
    if (digits | digits.wrapping_add(ONES * 6)) & (ONES * 0xF0) != 0 {
        return None;
    }
    let pairs = (digits * 10 + (digits >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
    Some((fours * 10_000 + (fours >> 32)) & 0xFFFF_FFFF)
}

#[cfg(test)]
mod tests {
    use super::{digits, find_separator};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn eight_bytes_at_a_time_equal_one_at_a_time(
            bytes in proptest::collection::vec(prop_oneof![Just(1u8), 0u8..4, Just(0x81)], 0..40),
            at in 0usize..50,
        ) {
            let naive = (at..bytes.len()).find(|&at| bytes[at] == 1).unwrap_or(bytes.len());
            prop_assert_eq!(find_separator(&bytes, at), naive);
        }

        #[test]
        fn digits_equal_those_of_the_standard_library(text in "[0-9]{0,25}|[0-9:/a\u{80}]{1,12}") {
            let naive = text.parse::<i64>().ok().filter(|_| text.len() <= 19);
            prop_assert_eq!(digits(text.as_bytes()), naive);
        }
    }
}
