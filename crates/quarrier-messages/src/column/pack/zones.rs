//! Least and greatest, block by block.

use crate::column::raw::BLOCK_ROWS;
use crate::column::texts::Texts;
use crate::column::zone::Zone;

/// The zones of a segment.
#[derive(Debug, Clone)]
pub(crate) struct Zones {
    pub(crate) all: Zone,
    pub(crate) blocks: Vec<Zone>,
}

impl Zones {
    fn new(rows: usize) -> Self {
        Zones { all: Zone::EMPTY, blocks: Vec::with_capacity(rows.div_ceil(BLOCK_ROWS)) }
    }

    /// Adds the next block's.
    #[inline(always)]
    fn push(&mut self, zone: Zone) {
        self.all = self.all.joined(zone);
        self.blocks.push(zone);
    }
}

/// The zones of values that have the key `key`.
#[inline(always)]
pub(crate) fn zones_of<T: Copy>(values: &[T], valid: &[u64], key: impl Fn(T) -> i64) -> Zones {
    let mut zones = Zones::new(values.len());
    let mut words = valid.chunks(BLOCK_ROWS / 64);
    // Loops and no closures: what a loop is inlined into says for what machine it is compiled.
    for block in values.chunks(BLOCK_ROWS) {
        let Some(words) = words.next() else {
            zones.push(full_zone(block, &key));
            continue;
        };
        let mut zone = Zone::EMPTY;
        for (rows, &word) in block.chunks(64).zip(words) {
            zone = zone.joined(if word.count_ones() as usize == rows.len() {
                full_zone(rows, &key)
            } else {
                partial_zone(rows, word, &key)
            });
        }
        zones.push(zone);
    }
    zones
}

/// The zones of plain text.
pub(crate) fn text_zones(texts: &Texts, valid: &[u64]) -> Zones {
    let mut zones = Zones::new(texts.len());
    for first in (0..texts.len()).step_by(BLOCK_ROWS) {
        let mut zone = Zone::EMPTY;
        for row in first..texts.len().min(first + BLOCK_ROWS) {
            if valid.is_empty() || valid[row / 64] >> (row % 64) & 1 == 1 {
                let key = texts.key(row);
                (zone.min, zone.max) = (zone.min.min(key), zone.max.max(key));
            } else {
                zone.nulls += 1;
            }
        }
        zones.push(zone);
    }
    zones
}

#[inline(always)]
fn full_zone<T: Copy>(rows: &[T], key: impl Fn(T) -> i64) -> Zone {
    let (mut min, mut max) = (i64::MAX, i64::MIN);
    for &value in rows {
        let key = key(value);
        (min, max) = (min.min(key), max.max(key));
    }
    Zone { min, max, nulls: 0 }
}

#[inline(always)]
fn partial_zone<T: Copy>(rows: &[T], word: u64, key: impl Fn(T) -> i64) -> Zone {
    let (mut left, mut zone) = (word, Zone::EMPTY);
    while left != 0 {
        let key = key(rows[left.trailing_zeros() as usize]);
        (zone.min, zone.max) = (zone.min.min(key), zone.max.max(key));
        left &= left - 1;
    }
    zone.nulls = rows.len() as u32 - word.count_ones();
    zone
}
