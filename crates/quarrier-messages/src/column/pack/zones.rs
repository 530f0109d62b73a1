//! Computes zone maps, block by block.

use crate::column::raw::BLOCK_ROWS;
use crate::column::strings::Strings;
use crate::column::zone::Zone;

/// The zone maps of a segment and its blocks.
#[derive(Debug, Clone)]
pub(crate) struct Zones {
    pub(crate) all: Zone,
    pub(crate) blocks: Vec<Zone>,
}

impl Zones {
    fn new(rows: usize) -> Self {
        Zones { all: Zone::EMPTY, blocks: Vec::with_capacity(rows.div_ceil(BLOCK_ROWS)) }
    }

    /// Adds the zone map of the next block.
    #[inline(always)]
    fn push(&mut self, zone: Zone) {
        self.all = self.all.joined(zone);
        self.blocks.push(zone);
    }

    /// Returns the zone maps with all bounds mapped by a function that keeps their order.
    pub(crate) fn moved(mut self, by: impl Fn(i128) -> i128) -> Zones {
        self.all = self.all.moved(&by);
        self.blocks.iter_mut().for_each(|zone| *zone = zone.moved(&by));
        self
    }
}

/// A zone map of 64-bit keys, which are faster to compare.
#[derive(Clone, Copy)]
struct Narrow {
    min: i64,
    max: i64,
    nulls: u32,
}

impl Narrow {
    const EMPTY: Narrow = Narrow { min: i64::MAX, max: i64::MIN, nulls: 0 };

    #[inline(always)]
    fn joined(self, other: Narrow) -> Narrow {
        Narrow {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            nulls: self.nulls + other.nulls,
        }
    }

    #[inline(always)]
    fn zone(self) -> Zone {
        if self.min > self.max {
            return Zone { nulls: self.nulls, ..Zone::EMPTY };
        }
        Zone { min: self.min.into(), max: self.max.into(), nulls: self.nulls }
    }
}

/// Returns the zone maps of numbers of 128 bits.
pub(crate) fn wide_zones(values: &[i128], valid: &[u64]) -> Zones {
    let mut zones = Zones::new(values.len());
    for (block, values) in values.chunks(BLOCK_ROWS).enumerate() {
        let mut zone = Zone::EMPTY;
        for (at, &value) in values.iter().enumerate() {
            let row = block * BLOCK_ROWS + at;
            if valid.is_empty() || valid[row / 64] >> (row % 64) & 1 == 1 {
                (zone.min, zone.max) = (zone.min.min(value), zone.max.max(value));
            } else {
                zone.nulls += 1;
            }
        }
        zones.push(zone);
    }
    zones
}

/// Returns the zone maps of values, given their keys.
#[inline(always)]
pub(crate) fn zones_of<T: Copy>(values: &[T], valid: &[u64], key: impl Fn(T) -> i64) -> Zones {
    let mut zones = Zones::new(values.len());
    let mut words = valid.chunks(BLOCK_ROWS / 64);
    // Loops rather than closures: a loop is compiled for the instruction set of the function around
    // it.
    for block in values.chunks(BLOCK_ROWS) {
        let Some(words) = words.next() else {
            zones.push(full_zone(block, &key).zone());
            continue;
        };
        let mut zone = Narrow::EMPTY;
        for (rows, &word) in block.chunks(64).zip(words) {
            zone = zone.joined(if word.count_ones() as usize == rows.len() {
                full_zone(rows, &key)
            } else {
                partial_zone(rows, word, &key)
            });
        }
        zones.push(zone.zone());
    }
    zones
}

/// Returns the zone maps of plain strings.
pub(crate) fn text_zones(strings: &Strings, valid: &[u64]) -> Zones {
    let mut zones = Zones::new(strings.len());
    for first in (0..strings.len()).step_by(BLOCK_ROWS) {
        let mut zone = Narrow::EMPTY;
        for row in first..strings.len().min(first + BLOCK_ROWS) {
            if valid.is_empty() || valid[row / 64] >> (row % 64) & 1 == 1 {
                let key = strings.key(row);
                (zone.min, zone.max) = (zone.min.min(key), zone.max.max(key));
            } else {
                zone.nulls += 1;
            }
        }
        zones.push(zone.zone());
    }
    zones
}

#[inline(always)]
fn full_zone<T: Copy>(rows: &[T], key: impl Fn(T) -> i64) -> Narrow {
    let (mut min, mut max) = (i64::MAX, i64::MIN);
    for &value in rows {
        let key = key(value);
        (min, max) = (min.min(key), max.max(key));
    }
    Narrow { min, max, nulls: 0 }
}

#[inline(always)]
fn partial_zone<T: Copy>(rows: &[T], word: u64, key: impl Fn(T) -> i64) -> Narrow {
    let (mut left, mut zone) = (word, Narrow::EMPTY);
    while left != 0 {
        let key = key(rows[left.trailing_zeros() as usize]);
        (zone.min, zone.max) = (zone.min.min(key), zone.max.max(key));
        left &= left - 1;
    }
    zone.nulls = rows.len() as u32 - word.count_ones();
    zone
}
