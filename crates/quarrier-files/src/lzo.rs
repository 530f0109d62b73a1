//! LZO1X decompression, for Btrfs. Existing crates do not fit: `lzo1x` is under the GPL, and
//! `lzokay-native` subtracts distances from the length without a check.

/// Decompresses a stream into the front of `plain`, and returns the number of bytes; `None` if the
/// stream is damaged or `plain` too small.
pub(crate) fn unpack(packed: &[u8], plain: &mut [u8]) -> Option<usize> {
    let mut stream = Stream { packed, at: 0, plain, filled: 0 };
    // Literals since the last match: the number in its instruction, or 4 after a run.
    let mut literals = 0;
    if let Some(first) = packed.first().filter(|first| **first > 17) {
        stream.at = 1;
        let count = usize::from(*first) - 17;
        stream.literals(count)?;
        literals = count.min(4);
    }
    loop {
        let code = usize::from(stream.byte()?);
        let (distance, length, more) = match code {
            0..16 if literals == 0 => {
                let count = if code == 0 { stream.long(15)? } else { code };
                stream.literals(count + 3)?;
                literals = 4;
                continue;
            }
            0..16 if literals < 4 => {
                (1 + (code >> 2) + (usize::from(stream.byte()?) << 2), 2, code)
            }
            0..16 => (2049 + (code >> 2) + (usize::from(stream.byte()?) << 2), 3, code),
            16..32 => {
                let length = if code & 7 == 0 { stream.long(7)? } else { code & 7 };
                let pair = stream.pair()?;
                let distance = ((code & 8) << 11) + (pair >> 2);
                if distance == 0 {
                    return Some(stream.filled);
                }
                (distance + 0x4000, length + 2, pair)
            }
            32..64 => {
                let length = if code & 31 == 0 { stream.long(31)? } else { code & 31 };
                let pair = stream.pair()?;
                (1 + (pair >> 2), length + 2, pair)
            }
            _ => {
                let distance = 1 + (code >> 2 & 7) + (usize::from(stream.byte()?) << 3);
                (distance, (code >> 5) + 1, code)
            }
        };
        stream.copy(distance, length)?;
        literals = more & 3;
        stream.literals(literals)?;
    }
}

struct Stream<'s> {
    packed: &'s [u8],
    at: usize,
    plain: &'s mut [u8],
    filled: usize,
}

impl Stream<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.packed.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn pair(&mut self) -> Option<usize> {
        Some(usize::from(self.byte()?) | usize::from(self.byte()?) << 8)
    }

    /// Decodes a length that does not fit in an instruction: a zero byte for each 255, then the rest.
    fn long(&mut self, least: usize) -> Option<usize> {
        let mut length = least;
        loop {
            match self.byte()? {
                0 => length += 255,
                rest => return Some(length + usize::from(rest)),
            }
        }
    }

    fn literals(&mut self, count: usize) -> Option<()> {
        let from = self.packed.get(self.at..self.at + count)?;
        self.plain.get_mut(self.filled..self.filled + count)?.copy_from_slice(from);
        self.at += count;
        self.filled += count;
        Some(())
    }

    /// Copies a match, which may overlap its own output.
    fn copy(&mut self, distance: usize, length: usize) -> Option<()> {
        let from = self.filled.checked_sub(distance)?;
        let end = self.filled + length;
        self.plain.get(..end)?;
        for at in from..from + length {
            self.plain[at + distance] = self.plain[at];
        }
        self.filled = end;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::unpack;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
        digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    /// Compressed by lzop 1.04 with -1 and -9.
    const FAST: &str =
        "03616263616263b4000014000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d
        48656c6c6f2c20682918000520776f726c642120201569000020a60000000c1d1c1b1a19181716151413121110
        0f0e0d0c0b0a09080706050403020100a82b00196162636c696e652031206f6620736f6d6520746578743b206c
        696e652032206f6620736f6d652074657874110000";
    const BEST: &str =
        "146162632708000014000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d4865
        6c6c6f2c20682918000520776f726c642120201569000020a60000000c1d1c1b1a191817161514131211100f0e
        0d0c0b0a0908070605040302010027740500036c696e652031206f6620736f6d6520746578743b209102322b50
        00110000";

    fn plain() -> Vec<u8> {
        let up: Vec<u8> = (0..30).collect();
        let down: Vec<u8> = (0..30).rev().collect();
        let hello = b"Hello, hello, hello world! ".repeat(3);
        let lines = b"line 1 of some text; line 2 of some text";
        [&b"abc".repeat(4), &up[..], &hello, &[0; 200], &down, &b"abc".repeat(3), lines].concat()
    }

    #[test]
    fn streams_of_lzop_are_unpacked() {
        let plain = plain();
        for hex in [FAST, BEST] {
            let mut room = vec![0xA5; plain.len() + 9];
            assert_eq!(unpack(&bytes(hex), &mut room), Some(plain.len()));
            assert_eq!(room[..plain.len()], plain);
        }
    }

    #[test]
    fn damaged_streams_end() {
        let whole = bytes(BEST);
        let length = plain().len();
        for end in 0..whole.len() {
            assert_eq!(unpack(&whole[..end], &mut vec![0; length]), None);
            // Corrupt one byte at a time: decompression must still terminate.
            for value in [0, 1, 16, 17, 32, 0x7F, 0xFF] {
                let mut changed = whole.clone();
                changed[end] = value;
                let bytes = unpack(&changed, &mut vec![0; length]);
                assert!(bytes.is_none_or(|bytes| bytes <= length));
            }
        }
        assert_eq!(unpack(&whole, &mut vec![0; length - 1]), None);
    }
}
