//! Chooses each needle's anchor and its bucket in the packed filter.
//!
//! A position passes the filter if one bucket allows all K bytes, so the needles of a bucket should
//! allow the same few, rare bytes. The cost of an assignment is the expected share of positions
//! that pass, summed over buckets and over the types of data in the sample; within a type, bytes
//! count as independent:
//!
//! ```text
//!  cost = Σ kinds share(kind) · Σ buckets Π places frequency(kind, allowed bytes at the place)
//! ```
//!
//! Each needle in turn goes to the window and bucket that raise the cost least (small sets take a
//! second round, in which the other needles are known). For 10,000 random words over a mixed disk
//! image this passes 0.2 % of positions; anchors at the first bytes pass 30 %.

use super::verify::{Anchor, fold_of, key_bytes};
use crate::arch::ByteSets;
use crate::error::Result;
use crate::pattern::{Needle, Needles};
use crate::sample::{KINDS, PerKind, Sample};
use crate::wanted::Wanted;

const BUCKETS: usize = 8;

/// Number of windows to try per needle, the rarest first.
const WINDOWS_TRIED: usize = 6;

/// Anchors, and the byte sets that belong to them.
pub(super) struct Assignment {
    pub(super) anchors: Vec<Anchor>,
    pub(super) sets: Vec<ByteSets>,
}

/// Chooses anchors of `width` bytes.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped)
pub(super) fn assign(
    needles: &Needles,
    width: usize,
    sample: &Sample,
    wanted: Wanted<'_>,
) -> Result<Assignment> {
    let mut state = State::new(width, sample);
    let keys = KeyCounts::new(needles, wanted)?;
    let tried = if needles.len() > 20_000 { 2 } else { WINDOWS_TRIED };
    let mut chosen: Vec<Choice> = Vec::with_capacity(needles.len());
    for needle in needles.iter() {
        wanted.check()?;
        let windows = rarest_windows(needle, &state, &keys, tried);
        let choice = state.best(needle, &windows);
        state.enter(needle, choice);
        chosen.push(choice);
    }
    if needles.len() <= 2_000 {
        for (needle, choice) in needles.iter().zip(&mut chosen) {
            wanted.check()?;
            state.leave(needle, *choice);
            *choice = state.best(needle, &rarest_windows(needle, &state, &keys, tried));
            state.enter(needle, *choice);
        }
    }
    let anchors = chosen
        .iter()
        .enumerate()
        .map(|(needle, choice)| Anchor { needle: needle as u32, offset: choice.offset as u32 })
        .collect();
    Ok(Assignment { anchors, sets: state.sets })
}

/// Returns the rarest anchor of each needle for each residue of its offset modulo `stride`, with
/// `key_bytes` fixed bytes. `None` if there is no such anchor for some residue.
pub(super) fn anchors_by_residue(
    needle: Needle<'_>,
    stride: usize,
    fixed_bytes: usize,
    fold: u32,
    rarity: impl Fn(&[u8]) -> f32,
) -> Option<Vec<u32>> {
    (0..stride)
        .map(|residue| {
            (residue..=needle.len().checked_sub(fixed_bytes)?)
                .step_by(stride)
                .filter(|&at| key_bytes(&needle.mask[at..], fold) >= fixed_bytes)
                .min_by(|&a, &b| {
                    let of = |at: usize| rarity(&needle.value[at..at + fixed_bytes]);
                    of(a).total_cmp(&of(b))
                })
                .map(|at| at as u32)
        })
        .collect()
}

#[derive(Clone, Copy)]
struct Choice {
    offset: usize,
    bucket: usize,
}

struct State<'s> {
    sample: &'s Sample,
    width: usize,
    /// Number of needles that allow a byte, by position, byte and bucket.
    users: Vec<[[u32; BUCKETS]; 256]>,
    sets: Vec<ByteSets>,
    /// Frequency of the allowed bytes, by position and bucket.
    allowed: Vec<[PerKind; BUCKETS]>,
    used: [u32; BUCKETS],
}

impl<'s> State<'s> {
    fn new(width: usize, sample: &'s Sample) -> Self {
        State {
            sample,
            width,
            users: vec![[[0; BUCKETS]; 256]; width],
            sets: vec![[0; 256]; width],
            allowed: vec![[[0.0; KINDS]; BUCKETS]; width],
            used: [0; BUCKETS],
        }
    }

    /// Returns the frequency of the bytes that a value under a mask allows, except those already
    /// allowed in `bucket` at `place`.
    fn added(&self, place: usize, bucket: usize, value: u8, mask: u8) -> PerKind {
        let mut sum = [0.0; KINDS];
        for byte in matching(value, mask) {
            if self.sets[place][byte as usize] & (1 << bucket) == 0 {
                add(&mut sum, &self.sample.frequency[byte as usize]);
            }
        }
        sum
    }

    /// Returns the window and bucket that raise the cost least.
    fn best(&self, needle: Needle<'_>, windows: &[(f32, usize)]) -> Choice {
        let mut best = (f32::INFINITY, Choice { offset: 0, bucket: 0 });
        for bucket in 0..BUCKETS {
            let before = if self.used[bucket] == 0 { 0.0 } else { self.passing(bucket) };
            for &(penalty, offset) in windows {
                let mut product = self.sample.share;
                for place in 0..self.width {
                    let (value, mask) = at(needle, offset + place);
                    let mut sum = self.added(place, bucket, value, mask);
                    add(&mut sum, &self.allowed[place][bucket]);
                    product.iter_mut().zip(sum).for_each(|(p, s)| *p *= s);
                }
                let cost = product.iter().sum::<f32>() - before + penalty;
                if cost < best.0 {
                    best = (cost, Choice { offset, bucket });
                }
            }
            if self.used[bucket] == 0 {
                break; // all empty buckets are alike
            }
        }
        best.1
    }

    /// Returns the share of positions that pass a bucket.
    fn passing(&self, bucket: usize) -> f32 {
        let mut product = self.sample.share;
        for place in &self.allowed {
            product.iter_mut().zip(place[bucket]).for_each(|(p, s)| *p *= s);
        }
        product.iter().sum()
    }

    fn enter(&mut self, needle: Needle<'_>, choice: Choice) {
        self.used[choice.bucket] += 1;
        for place in 0..self.width {
            let (value, mask) = at(needle, choice.offset + place);
            for byte in matching(value, mask) {
                let users = &mut self.users[place][byte as usize][choice.bucket];
                *users += 1;
                if *users == 1 {
                    self.sets[place][byte as usize] |= 1 << choice.bucket;
                    let frequency = self.sample.frequency[byte as usize];
                    add(&mut self.allowed[place][choice.bucket], &frequency);
                }
            }
        }
    }

    fn leave(&mut self, needle: Needle<'_>, choice: Choice) {
        self.used[choice.bucket] -= 1;
        for place in 0..self.width {
            let (value, mask) = at(needle, choice.offset + place);
            for byte in matching(value, mask) {
                let users = &mut self.users[place][byte as usize][choice.bucket];
                *users -= 1;
                if *users == 0 {
                    self.sets[place][byte as usize] &= !(1 << choice.bucket);
                    let frequency = self.sample.frequency[byte as usize];
                    let sum = &mut self.allowed[place][choice.bucket];
                    sum.iter_mut().zip(frequency).for_each(|(s, f)| *s = (*s - f).max(0.0));
                }
            }
        }
    }
}

fn add(sum: &mut PerKind, more: &PerKind) {
    sum.iter_mut().zip(more).for_each(|(s, m)| *s += m);
}

/// Returns value and mask at a position of the needle; any byte is allowed past its end.
fn at(needle: Needle<'_>, place: usize) -> (u8, u8) {
    if place < needle.len() { (needle.value[place], needle.mask[place]) } else { (0, 0) }
}

/// Yields the byte values that a value under a mask allows.
fn matching(value: u8, mask: u8) -> impl Iterator<Item = u8> {
    // Counts through the free bits: (x | mask) + 1 carries over the fixed ones.
    let mut free = Some(0u8);
    std::iter::from_fn(move || {
        let now = free?;
        let next = (now | mask).wrapping_add(1) & !mask;
        free = (next != 0).then_some(next);
        Some(value | now)
    })
}

/// Returns the needle's windows, rarest first, each with a penalty for the cost of verification:
/// few fixed bytes in the key, or many needles with the same key.
fn rarest_windows(
    needle: Needle<'_>,
    state: &State<'_>,
    keys: &KeyCounts,
    count: usize,
) -> Vec<(f32, usize)> {
    let last = needle.len().saturating_sub(state.width);
    let mut rated: Vec<(f32, f32, usize)> = (0..=last.min(4096))
        .map(|offset| {
            let mut product = state.sample.share;
            let places = offset..needle.len().min(offset + state.width);
            for place in places {
                let (value, mask) = at(needle, place);
                let mut sum = [0.0; KINDS];
                matching(value, mask)
                    .for_each(|byte| add(&mut sum, &state.sample.frequency[byte as usize]));
                product.iter_mut().zip(sum).for_each(|(p, s)| *p *= s);
            }
            let rarity = product.iter().sum::<f32>();
            let work = keys.work(needle, offset);
            (rarity * work, rarity * (work - 1.0), offset)
        })
        .collect();
    rated.sort_by(|a, b| a.0.total_cmp(&b.0));
    rated.truncate(count);
    rated.into_iter().map(|(_, penalty, offset)| (penalty, offset)).collect()
}

/// The number of needles that contain each 4-byte key, by hash.
struct KeyCounts {
    counts: Vec<u16>,
    fold: u32,
}

impl KeyCounts {
    const BITS: u32 = 18;

    fn new(needles: &Needles, wanted: Wanted<'_>) -> Result<Self> {
        let mut keys = KeyCounts { counts: vec![0; 1 << Self::BITS], fold: fold_of(needles) };
        if needles.len() > 16 {
            for needle in needles.iter() {
                wanted.check()?;
                for window in needle.value.windows(4).take(4096) {
                    let slot = keys.slot(window);
                    keys.counts[slot] = keys.counts[slot].saturating_add(1);
                }
            }
        }
        Ok(keys)
    }

    fn slot(&self, window: &[u8]) -> usize {
        let key = u32::from_le_bytes([window[0], window[1], window[2], window[3]]);
        (super::verify::hash(key & self.fold) >> (32 - Self::BITS)) as usize
    }

    /// Returns the relative cost of verifying a candidate at this window: 1 for the cheapest.
    fn work(&self, needle: Needle<'_>, offset: usize) -> f32 {
        match key_bytes(&needle.mask[offset..], self.fold) {
            4 => 1.0 + f32::from(self.counts[self.slot(&needle.value[offset..offset + 4])]) / 8.0,
            2 => 16.0,
            1 => 64.0,
            _ => 256.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::matching;

    #[test]
    fn matching_lists_exactly_the_bytes_under_the_mask() {
        for (value, mask) in [(0x41, 0xFF), (0x41, 0xDF), (0x0A, 0x0F), (0xA0, 0xF0), (0, 0)] {
            let mut listed: Vec<u8> = matching(value, mask).collect();
            listed.sort_unstable();
            let expected: Vec<u8> = (0..=255).filter(|t| t & mask == value).collect();
            assert_eq!(listed, expected);
        }
    }
}
