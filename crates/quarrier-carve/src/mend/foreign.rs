//! Recognises bytes of other files by their contents alone: formats without checksums show no other
//! sign of fragmentation.

use crate::view::SECTOR_BYTES;

/// Random data have a χ² of 255 ± 23 over byte values; samples of sound, however loud, have more
/// than a thousand.
const NOISE_CHI_SQUARE_MAX: f64 = 420.0;

/// Returns the place of the first sector of `block` that is all text.
pub(crate) fn text_sector(block: &[u8]) -> Option<u64> {
    let is_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7E);
    let is_all =
        |sector: &[u8]| sector.iter().all(is_text) && sector.iter().any(|byte| *byte != sector[0]);
    let index = block.chunks_exact(SECTOR_BYTES as usize).position(is_all)?;
    Some(index as u64 * SECTOR_BYTES)
}

/// Returns the place of the first `count` consecutive sectors of `block` that are all text.
pub(crate) fn text_sectors(block: &[u8], count: u64) -> Option<u64> {
    let mut at = 0;
    loop {
        let from = at + text_sector(block.get(at as usize..)?)?;
        let is_text = |number: &u64| {
            let sector = (from + number * SECTOR_BYTES) as usize;
            let sector = block.get(sector..sector + SECTOR_BYTES as usize);
            sector.is_some_and(|sector| text_sector(sector).is_some())
        };
        match (1..count).find(|number| !is_text(number)) {
            None => return Some(from),
            Some(number) => at = from + number * SECTOR_BYTES,
        }
    }
}

/// Whether all byte values are about equally frequent; `block` has thousands of bytes.
pub(crate) fn is_noise(block: &[u8]) -> bool {
    let mut counts = [0u32; 256];
    for byte in block {
        counts[usize::from(*byte)] += 1;
    }
    let expected = block.len() as f64 / 256.0;
    let square = |count: &u32| (f64::from(*count) - expected).powi(2) / expected;
    counts.iter().map(square).sum::<f64>() < NOISE_CHI_SQUARE_MAX
}
