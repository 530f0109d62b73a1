//! The lookup tables of the search kernel, built once for a set.
//!
//! Each needle has one anchor: the run of four fixed bytes that is rarest in the sample and among
//! the needles. Needles without such a run have an anchor of three bytes, or two; each length is a
//! separate class, which costs every position another lookup. Needles without two adjacent fixed
//! bytes are left to the CPU.

use quarrier_gpu::kernels::BITMAP_BITS;

use crate::error::Result;
use crate::multi::{GramEngine, GramRarity, fold_of, load_word};
use crate::pattern::{Needle, Needles};
use crate::sample::Sample;
use crate::wanted::Wanted;

/// The multiplier of the kernel's hash.
const HASH: u32 = 0x9E37_79B1;
const HASH_SECOND: u32 = 0x85EB_CA6B;
const NOWHERE: u32 = u32::MAX;

/// Bytes of an anchor, by class.
const CLASSES: [usize; 3] = [4, 3, 2];
/// With at least this many anchors, the bitmap in local memory passes too many positions, so the
/// kernel also checks a second one, in the device's memory, before the table.
const FILTERED_MIN: usize = 4096;
/// Maximum number of offsets in a needle to try for its anchor.
const OFFSETS_MAX: usize = 4096;

/// The tables, named as the kernel's parameters.
pub(super) struct Tables {
    pub(super) bitmap: Vec<u32>,
    pub(super) filter: Vec<u32>,
    pub(super) filter_bits: u32,
    pub(super) heads: Vec<u32>,
    pub(super) table_shift: u32,
    pub(super) entries: Vec<u32>,
    pub(super) values: Vec<u8>,
    pub(super) masks: Vec<u8>,
    /// A mask for each class that has needles.
    pub(super) class_masks: Vec<u32>,
    /// The greatest distance from a needle's start to its anchor.
    pub(super) reach: usize,
    /// Number of needles that the kernel finds.
    pub(super) count: usize,
    pub(super) rest: Option<Rest>,
}

/// Needles without an anchor, and the CPU engine for them.
pub(crate) struct Rest {
    pub(crate) needles: Needles,
    pub(crate) engine: GramEngine,
}

/// A needle and its anchor.
struct Entered {
    needle: usize,
    class: usize,
    offset: usize,
}

impl Tables {
    /// Builds the tables of these needles.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped)
    pub(super) fn new(needles: &Needles, sample: &Sample, wanted: Wanted<'_>) -> Result<Self> {
        let fold = fold_of(needles);
        let rarity =
            Rarity { in_data: GramRarity::new(sample, fold), keys: KeyCounts::new(needles, fold) };
        let mut entered = Vec::with_capacity(needles.len());
        let mut rest = Vec::new();
        for (index, needle) in needles.iter().enumerate() {
            wanted.check()?;
            match anchor(needle, fold, &rarity) {
                Some((class, offset)) => entered.push(Entered { needle: index, class, offset }),
                None => rest.push(index),
            }
        }
        // Only classes in use cost anything.
        let used: Vec<usize> =
            (0..CLASSES.len()).filter(|class| entered.iter().any(|e| e.class == *class)).collect();
        let class_masks: Vec<u32> =
            used.iter().map(|&class| fold & low_bytes(CLASSES[class])).collect();
        let keys: Vec<u32> = entered
            .iter()
            .map(|entered| {
                let set = used.iter().position(|class| *class == entered.class).unwrap_or(0);
                let value = &needles.get(entered.needle).value[entered.offset..];
                (load_word(&value[..value.len().min(8)]) as u32 & class_masks[set]) ^ set as u32
            })
            .collect();
        let mut tables = Tables {
            bitmap: bitmap(&keys, BITMAP_BITS),
            filter: Vec::new(),
            filter_bits: 0,
            heads: Vec::new(),
            table_shift: 0,
            entries: Vec::new(),
            values: Vec::new(),
            masks: Vec::new(),
            class_masks,
            reach: entered.iter().map(|entered| entered.offset).max().unwrap_or(0),
            count: entered.len(),
            rest: match rest.is_empty() {
                true => None,
                false => {
                    let needles = needles.subset(&rest);
                    Some(Rest { engine: GramEngine::new(&needles, sample, wanted)?, needles })
                }
            },
        };
        if keys.len() > FILTERED_MIN {
            // At least 16 bits per anchor.
            tables.filter_bits = (keys.len() / 2).next_power_of_two().ilog2().clamp(11, 22);
            tables.filter = bitmap(&keys, tables.filter_bits);
        }
        tables.enter(needles, &entered, &keys);
        Ok(tables)
    }

    /// Fills the hash table: buckets end to end, each a run of entries.
    fn enter(&mut self, needles: &Needles, entered: &[Entered], keys: &[u32]) {
        // Four buckets per anchor: most candidates meet an empty one.
        let bits = (keys.len() * 4).next_power_of_two().ilog2().clamp(1, 24);
        self.table_shift = 32 - bits;
        let bucket = |key: u32| (key.wrapping_mul(HASH) >> (32 - bits)) as usize;
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_by_key(|&index| bucket(keys[index]));
        self.heads = vec![0; (1 << bits) + 1];
        keys.iter().for_each(|&key| self.heads[bucket(key) + 1] += 1);
        for bucket in 1..self.heads.len() {
            self.heads[bucket] += self.heads[bucket - 1];
        }
        for index in order {
            self.push(needles, &entered[index]);
        }
    }

    fn push(&mut self, needles: &Needles, entered: &Entered) {
        let needle = needles.get(entered.needle);
        let seen = entered.offset..needle.len().min(entered.offset + 8);
        let value = load_word(&needle.value[seen.clone()]);
        let mask = load_word(&needle.mask[seen]);
        let is_whole = entered.offset == 0 && needle.len() <= 8;
        let bytes_at = if is_whole { NOWHERE } else { self.values.len() as u32 };
        if !is_whole {
            self.values.extend_from_slice(needle.value);
            self.masks.extend_from_slice(needle.mask);
        }
        self.entries.extend([
            value as u32,
            mask as u32,
            (value >> 32) as u32,
            (mask >> 32) as u32,
            entered.needle as u32,
            entered.offset as u32,
            needle.len() as u32,
            bytes_at,
        ]);
    }
}

fn low_bytes(count: usize) -> u32 {
    u32::MAX >> (32 - 8 * count)
}

/// Sets two bits of one word for each key, as HOLDS in the kernel tests them.
fn bitmap(keys: &[u32], bits: u32) -> Vec<u32> {
    let mut words = vec![0u32; 1 << bits];
    for &key in keys {
        let hash = key.wrapping_mul(HASH);
        let first = hash >> (27 - bits) & 31;
        let second = key.wrapping_mul(HASH_SECOND) >> 27;
        words[(hash >> (32 - bits)) as usize] |= 1 << first | 1 << second;
    }
    words
}

/// Returns the class of a needle, and the offset of its anchor.
fn anchor(needle: Needle<'_>, fold: u32, rarity: &Rarity<'_>) -> Option<(usize, usize)> {
    let fold = fold.to_le_bytes();
    let is_fixed = |at: usize, bytes: usize| {
        needle.mask[at..at + bytes].iter().zip(fold).all(|(mask, fold)| mask & fold == fold)
    };
    CLASSES.iter().enumerate().find_map(|(class, &bytes)| {
        (0..=needle.len().checked_sub(bytes)?)
            .take(OFFSETS_MAX)
            .filter(|&at| is_fixed(at, bytes))
            .map(|at| (rarity.of(&needle.value[at..at + bytes]), at))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, at)| (class, at))
    })
}

/// The cost of a window as an anchor: how often it passes, times the needles to verify then.
struct Rarity<'s> {
    in_data: GramRarity<'s>,
    keys: KeyCounts,
}

impl Rarity<'_> {
    fn of(&self, window: &[u8]) -> f32 {
        self.in_data.of(window) * (1.0 + self.keys.of(window))
    }
}

/// The number of needles that contain each window of four bytes, by hash.
struct KeyCounts {
    counts: Vec<u16>,
    fold: u32,
}

impl KeyCounts {
    const BITS: u32 = 18;

    fn new(needles: &Needles, fold: u32) -> Self {
        let mut keys = KeyCounts { counts: vec![0; 1 << Self::BITS], fold };
        for needle in needles.iter() {
            for window in needle.value.windows(4).take(OFFSETS_MAX) {
                let slot = keys.slot(window);
                keys.counts[slot] = keys.counts[slot].saturating_add(1);
            }
        }
        keys
    }

    fn slot(&self, window: &[u8]) -> usize {
        let key = load_word(window) as u32 & self.fold;
        (key.wrapping_mul(HASH) >> (32 - Self::BITS)) as usize
    }

    fn of(&self, window: &[u8]) -> f32 {
        if window.len() < 4 { 0.0 } else { f32::from(self.counts[self.slot(window)]) }
    }
}
