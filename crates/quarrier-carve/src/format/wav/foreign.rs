//! Tells what is no sound: text, noise where there was none before, zeros that begin and end
//! where blocks of a file system do. A file that is cut, or lies in fragments, has such things
//! between its samples, and nothing else shows it.

use std::ops::Range;

use super::super::foreign::{SECTOR_BYTES, is_noise, text_sector};
use crate::view::View;

/// What is judged to be noise or not: enough bytes to say.
const BLOCK_BYTES: u64 = 4096;
/// Of two samples of 16 bits, or one of each channel.
const SAMPLES_BYTES: usize = 4;
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
    zeros.end(data.end)
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
    /// Whether the last sample before was not zero.
    is_sound_before: bool,
    /// Whether they begin where blocks do, and not a sample before.
    is_cut: bool,
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
                    let is_loud = self.is_loud_before && is_loud(&sector[..8.min(sector.len())]);
                    let ends_cut = at.is_multiple_of(BLOCK_BYTES) && is_sound(sector.iter());
                    if is_long && (is_loud || self.is_cut || ends_cut) {
                        return Err(from);
                    }
                }
                None if is_zero && self.is_begun => {
                    self.from = Some(at);
                    self.is_cut = self.is_sound_before && at.is_multiple_of(BLOCK_BYTES);
                }
                None => {}
            }
            if !is_zero {
                self.is_loud_before = is_loud(&sector[sector.len().saturating_sub(8)..]);
                self.is_sound_before = is_sound(sector.iter().rev());
            }
            self.is_begun = true;
        }
        Ok(())
    }
}

impl Zeros {
    /// Samples end at `end`. Sound that dies away does not do so at a block of all places.
    fn end(&self, end: u64) -> Result<(), u64> {
        match self.from {
            Some(from) if self.is_cut && end - from >= ZEROS_BYTES_MIN => Err(from),
            _ => Ok(()),
        }
    }
}

/// Whether a sample of the first two is not zero.
fn is_sound<'b>(mut bytes: impl Iterator<Item = &'b u8>) -> bool {
    bytes.by_ref().take(SAMPLES_BYTES).any(|byte| *byte != 0)
}

/// Whether hardly a byte is zero.
fn is_loud(bytes: &[u8]) -> bool {
    bytes.iter().filter(|byte| **byte != 0).count() >= 6
}
