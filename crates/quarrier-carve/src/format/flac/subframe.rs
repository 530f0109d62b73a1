//! Finds the end of a frame by reading its codes, without computing samples.

use super::header::{Channels, Frame};

/// Returns the size of the frame at the start of `bytes`, without its checksum. `None` if its codes
/// are invalid or extend beyond `bytes`.
pub(super) fn frame_bytes(bytes: &[u8], frame: &Frame) -> Option<usize> {
    let mut bits = Bits { bytes, at: frame.bytes * 8 };
    for channel in 0..frame.channels.count() {
        let more = u32::from(frame.channels == Channels::Difference(channel));
        subframe(&mut bits, frame.samples, frame.sample_bits + more)?;
    }
    let end = bits.at.div_ceil(8);
    (end <= bytes.len()).then_some(end)
}

fn subframe(bits: &mut Bits<'_>, samples: u32, mut sample_bits: u32) -> Option<()> {
    let header = bits.get(8)?;
    if header & 0x80 != 0 {
        return None;
    }
    if header & 1 != 0 {
        let wasted = bits.unary()? + 1;
        sample_bits = sample_bits.checked_sub(wasted)?;
    }
    let kind = (header >> 1 & 0x3F) as u32;
    match kind {
        0 => bits.skip(u64::from(sample_bits)),
        1 => bits.skip(u64::from(samples) * u64::from(sample_bits)),
        8..=12 => {
            let order = kind - 8;
            bits.skip(u64::from(order * sample_bits))?;
            residual(bits, samples, order)
        }
        32.. => {
            let order = kind - 31;
            bits.skip(u64::from(order * sample_bits))?;
            let precision = bits.get(4)? as u32 + 1;
            if precision == 16 {
                return None;
            }
            bits.skip(5 + u64::from(order * precision))?;
            residual(bits, samples, order)
        }
        _ => None,
    }
}

fn residual(bits: &mut Bits<'_>, samples: u32, order: u32) -> Option<()> {
    let parameter_bits = match bits.get(2)? {
        0 => 4,
        1 => 5,
        _ => return None,
    };
    let partitions = 1u32 << bits.get(4)?;
    if !samples.is_multiple_of(partitions) || samples / partitions < order {
        return None;
    }
    for partition in 0..partitions {
        let count = samples / partitions - if partition == 0 { order } else { 0 };
        let parameter = bits.get(parameter_bits)? as u32;
        if parameter == (1 << parameter_bits) - 1 {
            let raw_bits = bits.get(5)?;
            bits.skip(u64::from(count) * raw_bits)?;
            continue;
        }
        for _ in 0..count {
            bits.unary()?;
            bits.skip(u64::from(parameter))?;
        }
    }
    Some(())
}

/// Reads bits, the most significant first.
struct Bits<'b> {
    bytes: &'b [u8],
    /// The position in bits.
    at: usize,
}

impl Bits<'_> {
    /// Returns the next bits at the top of a word: at least 56 of them, with zeros after the end.
    fn peek(&self) -> u64 {
        let from = (self.at / 8).min(self.bytes.len());
        let rest = &self.bytes[from..];
        let word = match rest.first_chunk::<8>() {
            Some(bytes) => u64::from_be_bytes(*bytes),
            None => {
                let mut bytes = [0; 8];
                bytes[..rest.len()].copy_from_slice(rest);
                u64::from_be_bytes(bytes)
            }
        };
        word << (self.at % 8)
    }

    /// Reads at most 32 bits.
    fn get(&mut self, count: u32) -> Option<u64> {
        let word = self.peek();
        self.skip(u64::from(count))?;
        Some(if count == 0 { 0 } else { word >> (64 - count) })
    }

    fn skip(&mut self, count: u64) -> Option<()> {
        let at = self.at as u64 + count;
        if at > self.bytes.len() as u64 * 8 {
            return None;
        }
        self.at = at as usize;
        Some(())
    }

    /// Counts the zeros before the next one, and skips both.
    fn unary(&mut self) -> Option<u32> {
        let mut zeros = 0;
        loop {
            let here = self.peek().leading_zeros().min(56);
            if here < 56 {
                self.skip(u64::from(here) + 1)?;
                return Some(zeros + here);
            }
            self.skip(56)?;
            zeros += 56;
        }
    }
}
