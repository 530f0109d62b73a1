//! HFS+: the allocation file, a bit per block, highest bit first.

use super::free::{Free, Units};
use crate::error::Result;
use crate::hfs::{Volume, allocation, volume};
use crate::part::{BOOT_BYTES, Part};

pub(super) fn read(
    part: &Part<'_>,
    boot: &[u8; BOOT_BYTES],
    free: &mut Free,
) -> Result<Option<&'static str>> {
    let Some(volume) = volume(part, boot)? else { return Ok(None) };
    let Volume { block_bytes, blocks, .. } = volume;
    let mut units = Units::new(part, free, 0, block_bytes, blocks);
    for (at, length) in allocation(part, &volume)? {
        let bytes = length.min(units.left().div_ceil(8));
        part.stream(at, bytes, "the bitmap of blocks", &mut |bits| {
            let bits: Vec<u8> = bits.iter().map(|byte| byte.reverse_bits()).collect();
            units.bits(&bits)
        })?;
    }
    if units.left() > 0 {
        return Err(part.refused(0, "a bitmap too short for its blocks"));
    }
    units.finish()?;
    let end = blocks.saturating_mul(block_bytes).min(part.length());
    free.add(part.place(end)..part.span().end, part)?;
    Ok(Some("HFS+"))
}
