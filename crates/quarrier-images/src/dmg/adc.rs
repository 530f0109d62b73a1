//! ADC (Apple Data Compression): literals, and copies of earlier bytes.

use std::io;

use crate::fault::invalid;

/// Decompresses exactly `block.len()` bytes.
///
/// # Errors
/// If the data is damaged or has another length.
pub(super) fn unpack(mut packed: &[u8], block: &mut [u8]) -> io::Result<()> {
    let short = || invalid("it is truncated");
    let mut filled = 0;
    while filled < block.len() {
        let (&first, rest) = packed.split_first().ok_or_else(short)?;
        let (used, length, distance) = match first {
            0x80.. => {
                let length = usize::from(first & 0x7F) + 1;
                let bytes = rest.get(..length).ok_or_else(short)?;
                let out = block.get_mut(filled..filled + length);
                out.ok_or_else(|| invalid("it is too long"))?.copy_from_slice(bytes);
                filled += length;
                packed = &rest[length..];
                continue;
            }
            0x40.. => {
                let [high, low] = *rest.first_chunk().ok_or_else(short)?;
                (2, usize::from(first & 0x3F) + 4, usize::from(u16::from_be_bytes([high, low])) + 1)
            }
            _ => {
                let low = usize::from(*rest.first().ok_or_else(short)?);
                (1, usize::from(first >> 2 & 0xF) + 3, usize::from(first & 3) * 256 + low + 1)
            }
        };
        if distance > filled || filled + length > block.len() {
            return Err(invalid("it copies from before its start"));
        }
        // A copy may overlap its own output.
        for at in filled..filled + length {
            block[at] = block[at - distance];
        }
        filled += length;
        packed = &rest[used..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::unpack;

    #[test]
    fn copies_may_reach_into_themselves() {
        let mut block = [0; 11];
        unpack(&[0x81, b'a', b'b', 0x04, 1, 0x40, 0, 0, 0x80, b'c'], &mut block).unwrap();
        assert_eq!(&block, b"abababbbbbc");
        assert!(unpack(&[0x40, 0, 9], &mut block).is_err());
        assert!(unpack(&[0x81, b'a'], &mut block).is_err());
    }
}
