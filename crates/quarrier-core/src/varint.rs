//! Integers of variable length.

/// Reads an integer of seven bits per byte, the lowest first, in which all bytes but the last have
/// their highest bit set (LEB128). `next` supplies the bytes. `None` if they end early, or if the
/// integer has more than `bytes_max` bytes; ten bytes hold 64 bits.
///
/// ```
/// let mut bytes = [0xE5, 0x8E, 0x26].into_iter();
/// assert_eq!(quarrier_core::varint::read(9, || bytes.next()), Some(624_485));
/// ```
pub fn read(bytes_max: u32, mut next: impl FnMut() -> Option<u8>) -> Option<u64> {
    let mut value = 0u64;
    for place in 0..bytes_max {
        let byte = next()?;
        value |= u64::from(byte & 0x7F).checked_shl(7 * place)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Reads an integer as [`read`] does, and removes its bytes from the front of `bytes`.
pub fn take(bytes_max: u32, bytes: &mut &[u8]) -> Option<u64> {
    read(bytes_max, || {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        Some(*byte)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The naive twin: writes the number.
    fn written(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value > 0x7F {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    proptest! {
        #[test]
        fn every_number_is_read_back_and_later_bytes_are_left(
            value: u64,
            bits in 0u32..64,
            rest: Vec<u8>,
        ) {
            let value = value >> bits;
            let bytes = written(value);
            let count = bytes.len() as u32;
            let all = [&bytes[..], &rest].concat();
            let mut left = &all[..];
            prop_assert_eq!(take(10, &mut left), Some(value));
            prop_assert_eq!(left, &rest[..]);
            prop_assert_eq!(take(count - 1, &mut &all[..]), None);
            prop_assert_eq!(take(10, &mut &bytes[..bytes.len() - 1]), None);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>, most in 0u32..100) {
            let _ = take(most, &mut &bytes[..]);
            let _ = take(most, &mut &[0xFF; 100][..]);
        }
    }
}
