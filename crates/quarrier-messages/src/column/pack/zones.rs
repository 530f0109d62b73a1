//! Least and greatest, block by block.

use crate::column::raw::BLOCK_ROWS;
use crate::column::texts::Texts;
use crate::column::zone::{Zone, text_key};

/// The zones of a segment.
#[derive(Debug, Clone)]
pub(crate) struct Zones {
    pub(crate) all: Zone,
    pub(crate) blocks: Vec<Zone>,
}

/// The zones of values that have the key `key`.
pub(crate) fn zones_of<T: Copy>(values: &[T], valid: &[u64], key: impl Fn(T) -> i64) -> Zones {
    zones(values.len(), |first, last| {
        let block = &values[first..last];
        if valid.is_empty() {
            return full_zone(block, &key);
        }
        let words = &valid[first / 64..last.div_ceil(64)];
        block.chunks(64).zip(words).fold(Zone::EMPTY, |zone, (rows, &word)| {
            zone.joined(if word.count_ones() as usize == rows.len() {
                full_zone(rows, &key)
            } else {
                partial_zone(rows, word, &key)
            })
        })
    })
}

/// The zones of plain text.
pub(crate) fn text_zones(texts: &Texts, valid: &[u64]) -> Zones {
    zones(texts.len(), |first, last| {
        let mut zone = Zone::EMPTY;
        for row in first..last {
            if valid.is_empty() || valid[row / 64] >> (row % 64) & 1 == 1 {
                let key = text_key(texts.get(row));
                (zone.min, zone.max) = (zone.min.min(key), zone.max.max(key));
            } else {
                zone.nulls += 1;
            }
        }
        zone
    })
}

fn zones(rows: usize, block: impl Fn(usize, usize) -> Zone) -> Zones {
    let starts = (0..rows).step_by(BLOCK_ROWS);
    let blocks: Vec<Zone> =
        starts.map(|first| block(first, rows.min(first + BLOCK_ROWS))).collect();
    Zones { all: blocks.iter().fold(Zone::EMPTY, |all, &block| all.joined(block)), blocks }
}

fn full_zone<T: Copy>(rows: &[T], key: impl Fn(T) -> i64) -> Zone {
    let (mut min, mut max) = (i64::MAX, i64::MIN);
    for &value in rows {
        let key = key(value);
        (min, max) = (min.min(key), max.max(key));
    }
    Zone { min, max, nulls: 0 }
}

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
