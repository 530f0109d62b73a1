//! Finds bytes that are not sound: text, noise in a file that had none before, zeros that begin and
//! end at blocks of a file system. A cut or fragmented file has such bytes between its samples, and
//! nothing else reveals that.

use std::ops::Range;

use crate::mend::text_sector;
use crate::view::{SECTOR_BYTES, View};

/// Bytes per step.
const BLOCK_BYTES: u64 = 4096;
/// Minimum number of samples to detect noise: with fewer, it may be chance.
const NOISE_SAMPLES: usize = 128;
/// Minimum number of consecutive sectors of noise that are not chance.
const NOISE_SECTORS: u32 = 2;
/// The size of two samples of 16 bits, or one of each channel.
const SAMPLES_BYTES: usize = 4;
/// Minimum length of a run of zeros, in bytes.
const ZEROS_BYTES_MIN: u64 = 4096;

/// The kind of samples, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Samples {
    /// Consecutive integers of this many bytes: noise is rare among them, and text never occurs.
    Plain(u64),
    /// Compressed samples, or floats: no check is possible.
    Other,
}

impl Samples {
    /// Reads the format chunk of `bytes` bytes at `at`, if it is one.
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
        // The subtype of an extensible format begins with the actual tag.
        let tag = if tag == 0xFFFE && bytes >= 26 { view.u16_le(at + 24)? } else { tag };
        let is_plain = tag == 1 && (8..=16).contains(&bits);
        Some(if is_plain { Samples::Plain(u64::from(bits).div_ceil(8)) } else { Samples::Other })
    }
}

/// Examines all samples. `Err` with the byte of the file at which foreign data begin.
pub(super) fn find(view: &mut View<'_>, data: Range<u64>, samples: Samples) -> Result<(), u64> {
    let Samples::Plain(width) = samples else { return Ok(()) };
    let mut noise = Noise::new(data.start, width);
    let mut zeros = Zeros::default();
    // Fragments begin at blocks of the file, not of its samples.
    let mut at = data.start.next_multiple_of(SECTOR_BYTES);
    if let Some(head) = view.take(data.start, (at.min(data.end) - data.start) as usize) {
        noise.take(data.start, head)?;
    }
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
    noise.end()?;
    zeros.end(data.end)
}

/// Runs of noisy sectors, and whether other sound occurred: in a file of noise only, noise is not
/// foreign.
struct Noise {
    /// Samples begin at multiples of `width` bytes from here.
    start: u64,
    width: u64,
    /// Consecutive sectors of noise, from this one on.
    run: Option<(u64, u32)>,
    first: Option<u64>,
    is_sound_seen: bool,
}

impl Noise {
    fn new(start: u64, width: u64) -> Self {
        Noise { start, width, run: None, first: None, is_sound_seen: false }
    }

    fn take(&mut self, at: u64, block: &[u8]) -> Result<(), u64> {
        for (index, sector) in block.chunks(SECTOR_BYTES as usize).enumerate() {
            let at = at + index as u64 * SECTOR_BYTES;
            let skipped =
                ((at - self.start).next_multiple_of(self.width) - (at - self.start)) as usize;
            let samples = sector.get(skipped..).unwrap_or_default();
            match is_noise(samples, self.width) {
                Some(true) => {
                    let (from, count) = self.run.unwrap_or((at, 0));
                    self.run = Some((from, count + 1));
                    if count + 1 >= NOISE_SECTORS {
                        self.first = self.first.or(Some(from));
                    }
                }
                Some(false) => (self.run, self.is_sound_seen) = (None, true),
                // Too few samples: other sectors must decide.
                None => {}
            }
            if let Some(first) = self.first.filter(|_| self.is_sound_seen) {
                return Err(first);
            }
        }
        Ok(())
    }
}

impl Noise {
    /// Checks the end of the samples. Noise in the last sector only does not count.
    fn end(&self) -> Result<(), u64> {
        match self.run {
            Some((from, _)) if self.is_sound_seen => Err(from),
            _ => Ok(()),
        }
    }
}

/// Whether samples look like random bytes: all values are equally frequent, and none predicts the
/// next. `None` if there are too few to decide.
fn is_noise(bytes: &[u8], width: u64) -> Option<bool> {
    let mut values = [0.0f32; SECTOR_BYTES as usize];
    // From -1 to 1; samples of 8 bits are unsigned.
    let of_byte = |byte: &u8| (f32::from(*byte) - 127.5) / 128.0;
    let of_pair = |pair: &[u8]| f32::from(i16::from_le_bytes([pair[0], pair[1]])) / 32768.0;
    let count = match width {
        1 => values.iter_mut().zip(bytes).map(|(value, byte)| *value = of_byte(byte)).count(),
        _ => {
            let pairs = bytes.chunks_exact(2);
            values.iter_mut().zip(pairs).map(|(value, pair)| *value = of_pair(pair)).count()
        }
    };
    let values = &values[..count];
    if count < NOISE_SAMPLES {
        return None;
    }
    // Noise has the values 1/2, a quarter of all, and 2/3. The ranges allow four standard
    // deviations at this number of samples.
    let loudness = values.iter().map(|value| value.abs()).sum::<f32>() / count as f32;
    let quiet = || values.iter().filter(|value| value.abs() < 0.25).count() as f32 / count as f32;
    // The steps to the next sample, and to the next one of the same channel.
    let step = |lag: usize| {
        let steps = values.iter().zip(&values[lag..]).map(|(one, other)| (one - other).abs());
        steps.sum::<f32>() / (count - lag) as f32
    };
    let is_loud = (0.4..0.6).contains(&loudness);
    Some(is_loud && (0.1..0.4).contains(&quiet()) && step(1) > 0.56 && step(2) > 0.56)
}

/// Zeros that begin and end at blocks, with sound directly before and after them.
#[derive(Default)]
struct Zeros {
    from: Option<u64>,
    is_loud_before: bool,
    /// Whether the sample before was not zero.
    is_sound_before: bool,
    /// Whether they begin exactly at a block.
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
    /// Checks the end of the samples, at `end`. Sound that fades out does not end exactly at a
    /// block.
    fn end(&self, end: u64) -> Result<(), u64> {
        match self.from {
            Some(from) if self.is_cut && end - from >= ZEROS_BYTES_MIN => Err(from),
            _ => Ok(()),
        }
    }
}

/// Whether one of the first two samples is not zero.
fn is_sound<'b>(mut bytes: impl Iterator<Item = &'b u8>) -> bool {
    bytes.by_ref().take(SAMPLES_BYTES).any(|byte| *byte != 0)
}

/// Whether most bytes are not zero.
fn is_loud(bytes: &[u8]) -> bool {
    bytes.iter().filter(|byte| **byte != 0).count() >= 6
}
