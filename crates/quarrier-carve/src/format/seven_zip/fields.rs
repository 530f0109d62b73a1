//! The elements of headers: numbers, and lists of them.

use crate::unpack::Failed;

/// A header that ends too early, or states something impossible.
pub(super) const WRONG: Failed = Failed::Wrong("the header at its end");

/// Reads a byte.
pub(super) fn byte(fields: &mut &[u8]) -> Result<u8, Failed> {
    let (byte, rest) = fields.split_first().ok_or(WRONG)?;
    *fields = rest;
    Ok(*byte)
}

/// Reads `count` bytes.
pub(super) fn bytes<'f>(fields: &mut &'f [u8], count: u64) -> Result<&'f [u8], Failed> {
    let count = usize::try_from(count).ok().filter(|count| *count <= fields.len()).ok_or(WRONG)?;
    let (bytes, rest) = fields.split_at(count);
    *fields = rest;
    Ok(bytes)
}

/// Reads a number. The leading ones of its first byte count the bytes that follow, the lowest
/// first; the rest of the first byte is the highest part.
pub(super) fn number(fields: &mut &[u8]) -> Result<u64, Failed> {
    let first = byte(fields)?;
    let more = first.leading_ones();
    let mut value = 0u64;
    for index in 0..more {
        value |= u64::from(byte(fields)?) << (8 * index);
    }
    let highest = u64::from(first) & (0x7F >> more.min(7));
    Ok(value | if more < 8 { highest << (8 * more) } else { 0 })
}

/// Reads a count; each counted item takes at least a byte of `fields`.
pub(super) fn count(fields: &mut &[u8]) -> Result<usize, Failed> {
    let count = number(fields)?;
    usize::try_from(count).ok().filter(|count| *count <= fields.len()).ok_or(WRONG)
}

/// Reads `count` checksums, some of which may be missing.
pub(super) fn checksums(fields: &mut &[u8], count: usize) -> Result<Vec<Option<u32>>, Failed> {
    let bits = match byte(fields)? {
        0 => Some(bytes(fields, count.div_ceil(8) as u64)?),
        _ => None,
    };
    let mut checksums = Vec::new();
    for index in 0..count {
        let is_there = bits.is_none_or(|bits| bits[index / 8] >> (7 - index % 8) & 1 != 0);
        let crc = match is_there {
            true => Some(bytes(fields, 4)?),
            false => None,
        };
        checksums.push(crc.map(|crc| u32::from_le_bytes([crc[0], crc[1], crc[2], crc[3]])));
    }
    Ok(checksums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_bytes_as_their_first_one_states() {
        let read = |mut fields: &[u8]| number(&mut fields).ok();
        assert_eq!(read(&[0x7F]), Some(0x7F));
        assert_eq!(read(&[0x81, 2]), Some(0x102));
        assert_eq!(read(&[0xC1, 2, 3]), Some(0x1_0302));
        assert_eq!(read(&[0xFE, 1, 0, 0, 0, 0, 0, 9]), Some(9 << 48 | 1));
        assert_eq!(read(&[[0xFF; 9]].concat()), Some(u64::MAX));
        assert_eq!(read(&[0x81]), None);
    }
}
