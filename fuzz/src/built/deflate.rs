//! Writes deflated data (RFC 1951) in a simple way: stored blocks, and blocks with fixed codes.

use arbitrary::{Result, Unstructured};

use super::draft::Draft;

/// Writes bits, the first into the lowest of each byte.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    count: usize,
}

impl Bits {
    fn push(&mut self, value: u32, count: u32) {
        for bit in 0..count {
            if self.count.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let last = self.bytes.len() - 1;
            self.bytes[last] |= ((value >> bit & 1) as u8) << (self.count % 8);
            self.count += 1;
        }
    }

    /// Writes a code, the highest bit first.
    fn code(&mut self, code: u32, count: u32) {
        (0..count).rev().for_each(|bit| self.push(code >> bit, 1));
    }
}

/// Writes the fixed code of a literal or length.
fn symbol(bits: &mut Bits, symbol: u32) {
    match symbol {
        0..=143 => bits.code(0x30 + symbol, 8),
        144..=255 => bits.code(0x190 + symbol - 144, 9),
        256..=279 => bits.code(symbol - 256, 7),
        _ => bits.code(0xC0 + symbol - 280, 8),
    }
}

/// Deflates `data` into blocks.
pub(super) fn deflate(u: &mut Unstructured<'_>, draft: &mut Draft, data: &[u8]) -> Result<()> {
    if u.ratio(1, 2)? {
        let bytes = u.int_in_range(1..=200)?;
        let last = data.len().div_ceil(bytes).max(1) - 1;
        let mut blocks: Vec<&[u8]> = data.chunks(bytes).collect();
        if blocks.is_empty() {
            blocks.push(&[]);
        }
        for (place, block) in blocks.into_iter().enumerate() {
            draft.u8(u8::from(place == last));
            draft.le16(block.len());
            draft.le16(!block.len() & 0xFFFF);
            draft.put(block);
        }
        return Ok(());
    }
    let mut bits = Bits::default();
    bits.push(1, 1);
    bits.push(draft.number(1) as u32, 2);
    let mut at = 0;
    while at < data.len() {
        let run = data[at..].iter().take_while(|byte| at > 0 && **byte == data[at - 1]).count();
        if run >= 3 {
            // Lengths of 3 to 10 bytes have the symbols from 257 on; the distance of one byte has
            // code 0.
            let length = run.min(10);
            symbol(&mut bits, draft.number(257 + length as u64 - 3) as u32 % 288);
            bits.code(draft.number(0) as u32 % 32, 5);
            at += length;
        } else {
            symbol(&mut bits, u32::from(data[at]));
            at += 1;
        }
    }
    symbol(&mut bits, 256);
    draft.put(bits.bytes);
    Ok(())
}

/// Writes `data` as a zlib stream (RFC 1950).
pub(super) fn zlib(u: &mut Unstructured<'_>, draft: &mut Draft, data: &[u8]) -> Result<()> {
    draft.be16(0x7801);
    deflate(u, draft, data)?;
    let (mut low, mut high) = (1u32, 0u32);
    for byte in data {
        low = (low + u32::from(*byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    draft.be32((high << 16 | low) as usize);
    Ok(())
}

/// Draws data to compress: some runs, some words.
pub(super) fn data(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut data = Vec::new();
    for _ in 0..u.int_in_range(0..=6)? {
        match u.arbitrary::<bool>()? {
            true => data.resize(data.len() + u.int_in_range(1..=60)?, u.arbitrary()?),
            false => {
                let count = u.int_in_range(1..=12)?;
                data.extend_from_slice(u.bytes(count.min(u.len()))?);
            }
        }
    }
    Ok(data)
}
