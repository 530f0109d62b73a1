//! Checks whether sound continues across a joint of two fragments.

use std::ops::Range;

use crate::view::View;

/// Frames on each side that represent the sound.
const KNOWN_FRAMES: u64 = 256;
/// Frames directly after the joint, which would reveal another file.
const FIRST_FRAMES: u64 = 12;
/// Maximum growth of the steps between samples directly after the joint, and in all known frames
/// after it.
const FIRST_TIMES: u64 = 2;
const KNOWN_TIMES: u64 = 4;

/// Size of a block before a joint, which belongs to another file either entirely or not at all.
const BLOCK_BYTES: u64 = 4096;

/// Integer samples of 8 or 16 bits.
pub(super) struct Frames {
    start: u64,
    sample_bytes: u64,
    channels: u64,
}

impl Frames {
    /// Reads the format of the samples from byte `start` on from the chunk at the beginning of the
    /// file.
    pub(super) fn read(view: &mut View<'_>, start: u64) -> Option<Frames> {
        let channels = u64::from(view.u16_le(22)?);
        let sample_bytes = match view.u16_le(34)? {
            8 => 1,
            16 => 2,
            _ => return None,
        };
        (channels > 0).then_some(Frames { start, sample_bytes, channels })
    }

    /// Whether the sound continues across byte `joint`.
    pub(super) fn continues(&self, view: &mut View<'_>, joint: u64) -> bool {
        let frame_bytes = self.sample_bytes * self.channels;
        let Some(data) = joint.checked_sub(self.start) else { return false };
        let (joint, block) = (data / frame_bytes, BLOCK_BYTES.div_ceil(frame_bytes));
        let Some(first) = joint.checked_sub(KNOWN_FRAMES) else { return false };
        let earlier = first.saturating_sub(block).max(1);
        let steps = [
            self.step(view, earlier, earlier + KNOWN_FRAMES),
            self.step(view, first.max(1), joint),
            self.step(view, joint, joint + FIRST_FRAMES),
            self.step(view, joint, joint + KNOWN_FRAMES),
        ];
        let [Some(earlier), Some(before), Some(right_after), Some(after)] = steps else {
            return false;
        };
        // The mean step of random bytes is a third of the range.
        let (still, loud) = if self.sample_bytes == 1 { (2, 32) } else { (96, 8192) };
        let is_like = |one, other| one <= KNOWN_TIMES * other + still;
        before.max(after) < loud
            && right_after <= FIRST_TIMES * before + still
            && is_like(before, earlier)
            && is_like(after, before)
            && is_like(before, after)
    }

    /// Whether whole blocks in bytes `range` of the file are zero: silence, or a gap.
    pub(super) fn has_silence(view: &mut View<'_>, range: Range<u64>) -> bool {
        let mut at = range.start.next_multiple_of(BLOCK_BYTES);
        while at + BLOCK_BYTES <= range.end {
            let block = view.take(at, BLOCK_BYTES as usize);
            if block.is_none_or(|block| block.iter().all(|byte| *byte == 0)) {
                return true;
            }
            at += BLOCK_BYTES;
        }
        false
    }

    /// Returns the mean difference between each sample of the frames `from..to` and the one before
    /// it in the same channel.
    fn step(&self, view: &mut View<'_>, from: u64, to: u64) -> Option<u64> {
        let mut sum = 0;
        for sample in from * self.channels..to * self.channels {
            let [one, before] = [sample, sample.checked_sub(self.channels)?];
            sum += u64::from(self.sample(view, one)?.abs_diff(self.sample(view, before)?));
        }
        Some(sum / ((to - from) * self.channels).max(1))
    }

    fn sample(&self, view: &mut View<'_>, sample: u64) -> Option<i32> {
        let at = self.start + sample * self.sample_bytes;
        match self.sample_bytes {
            1 => view.byte(at).map(i32::from),
            _ => view.u16_le(at).map(|value| i32::from(value.cast_signed())),
        }
    }
}
