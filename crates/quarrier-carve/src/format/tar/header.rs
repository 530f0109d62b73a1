//! Headers of tapes.

pub(crate) const BLOCK_BYTES: usize = 512;

/// Whether `block` begins with the header of an entry.
pub(crate) fn is_header(block: &[u8]) -> bool {
    let Some(block) = block.get(..BLOCK_BYTES) else { return false };
    block[257..262] == *b"ustar" && number(&block[148..156]) == Some(checksum(block))
}

/// Returns the length of the content after the header in bytes, without padding.
pub(crate) fn content_bytes(header: &[u8; BLOCK_BYTES]) -> Option<u64> {
    match header[156] {
        // Links, devices and folders have none, whatever the header states.
        b'2'..=b'6' => Some(0),
        _ => number(&header[124..136]),
    }
}

/// Returns the sum of all bytes, with those of the checksum itself counted as spaces.
fn checksum(block: &[u8]) -> u64 {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    sum(&block[..148]) + 8 * 32 + sum(&block[156..])
}

/// Parses a number: octal digits up to the first other byte, or binary if the first byte marks it
/// so.
fn number(field: &[u8]) -> Option<u64> {
    if field.first()? & 0x80 != 0 {
        let (head, low) = field.split_at(field.len().checked_sub(8)?);
        let is_small = head.first() == Some(&0x80) && head[1..].iter().all(|byte| *byte == 0);
        return is_small.then(|| low.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)));
    }
    let digits = field.iter().skip_while(|byte| **byte == b' ');
    let mut digits = digits.take_while(|byte| (b'0'..=b'7').contains(*byte));
    digits.try_fold(0u64, |n, digit| n.checked_mul(8)?.checked_add(u64::from(digit - b'0')))
}
