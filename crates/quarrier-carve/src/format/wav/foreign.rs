//! Tells what is no sound: text, noise where there was none before, zeros that begin and end
//! where blocks of a file system do. A file that is cut, or lies in fragments, has such things
//! between its samples, and nothing else shows it.

use std::ops::Range;

use super::super::foreign::{SECTOR_BYTES, is_noise, text_sector};
use crate::view::View;

/// What is judged to be noise or not: enough bytes to say.
const BLOCK_BYTES: u64 = 4096;
/// Zeros shorter than this are not looked into.
const ZEROS_BYTES_MIN: u64 = 4096;

/// What samples are, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Samples {
    /// Whole numbers, one after the other: noise is rare in them, and text never.
    Plain,
    /// Compressed, or floats: nothing can be told.
    Other,
}

impl Samples {
    /// What the format chunk of `bytes` bytes at `at` says, if it is one.
    pub(super) fn read(view: &mut View<'_>, at: u64, bytes: u64) -> Option<Samples> {
        if !(14..=4096).contains(&bytes) {
            return None;
        }
        let [tag, channels] = [view.u16_le(at)?, view.u16_le(at + 2)?];
        let rate = view.u32_le(at + 4)?;
        if tag == 0 || !(1..=1024).contains(&channels) || rate == 0 {
            return None;
        }
        let bits = if bytes >= 16 { view.u16_le(at + 14)? } else { 0 };
        // The subtype of what is extensible begins with the tag proper.
        let tag = if tag == 0xFFFE && bytes >= 26 { view.u16_le(at + 24)? } else { tag };
        Some(if tag == 1 && (8..=16).contains(&bits) { Samples::Plain } else { Samples::Other })
    }
}

/// Looks at all samples; the byte of the file from which something foreign lies there.
pub(super) fn find(view: &mut View<'_>, data: Range<u64>, samples: Samples) -> Result<(), u64> {
    if samples == Samples::Other {
        return Ok(());
    }
    let mut noise = Noise::default();
    let mut zeros = Zeros::default();
    // Fragments begin at blocks of the file, not of its samples.
    let mut at = data.start.next_multiple_of(SECTOR_BYTES);
    while at < data.end {
        let end = (at + BLOCK_BYTES - at % BLOCK_BYTES).min(data.end);
        let block = view.take(at, (end - at) as usize).ok_or(at)?;
        if let Some(sector) = text_sector(block) {
            return Err(at + sector);
        }
        noise.take(at, block)?;
        zeros.take(at, block)?;
        at = end;
    }
    Ok(())
}

/// Where blocks were noise, and where not.
#[derive(Default)]
struct Noise {
    first: Option<u64>,
    is_sound_seen: bool,
    blocks: u32,
}

impl Noise {
    fn take(&mut self, at: u64, block: &[u8]) -> Result<(), u64> {
        if (block.len() as u64) < BLOCK_BYTES {
            // Too few bytes: what is known of the others must do.
            return Ok(());
        }
        if is_noise(block) {
            self.first = self.first.or(Some(at));
            self.blocks += 1;
        } else {
            self.is_sound_seen = true;
        }
        match self.first {
            Some(first) if self.is_sound_seen => Err(first),
            _ => Ok(()),
        }
    }
}

/// Zeros that begin and end where blocks do, with sound before and behind them at once.
#[derive(Default)]
struct Zeros {
    from: Option<u64>,
    is_loud_before: bool,
    is_begun: bool,
}

impl Zeros {
    fn take(&mut self, at: u64, block: &[u8]) -> Result<(), u64> {
        for (index, sector) in block.chunks(SECTOR_BYTES as usize).enumerate() {
            let at = at + index as u64 * SECTOR_BYTES;
            let is_zero = sector.iter().all(|byte| *byte == 0);
            match self.from {
                Some(_) if is_zero => {}
                Some(from) => {
                    self.from = None;
                    let is_long = at - from >= ZEROS_BYTES_MIN;
                    if is_long && self.is_loud_before && is_loud(&sector[..8.min(sector.len())]) {
                        return Err(from);
                    }
                }
                None if is_zero && self.is_begun => self.from = Some(at),
                None => {}
            }
            if !is_zero {
                self.is_loud_before = is_loud(&sector[sector.len().saturating_sub(8)..]);
            }
            self.is_begun = true;
        }
        Ok(())
    }
}

/// Whether hardly a byte is zero.
fn is_loud(bytes: &[u8]) -> bool {
    bytes.iter().filter(|byte| **byte != 0).count() >= 6
}
