//! Chunks: the map from logical addresses to offsets on the device.

use crate::part::{u16_at, u64_at};

/// Flags of profiles that stripe a chunk: RAID0, RAID10, RAID5 and RAID6.
const STRIPED: u64 = 1 << 3 | 1 << 6 | 1 << 7 | 1 << 8;
/// Flag of chunks with the nodes of trees.
const METADATA: u64 = 1 << 2;
const HEAD_BYTES: usize = 48;
const STRIPE_BYTES: usize = 32;
/// Maximum copies of a chunk on one device.
const COPIES_MAX: usize = 4;

/// A range of logical addresses, with the offset of each copy on the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) places: Vec<u64>,
    /// Whether nodes lie in it.
    pub(super) has_nodes: bool,
}

/// Parses a chunk item and returns the item's length; `None` if it is damaged or striped.
pub(super) fn chunk(start: u64, item: &[u8]) -> Option<(Chunk, usize)> {
    let (length, profile) = (u64_at(item, 0), u64_at(item, 24));
    let copies = usize::from(u16_at(item, 44));
    let bytes = HEAD_BYTES + copies * STRIPE_BYTES;
    let is_whole = item.len() >= bytes && (1..=COPIES_MAX).contains(&copies);
    let is_striped = copies > 1 && profile & STRIPED != 0;
    if !is_whole || is_striped || length == 0 || start.checked_add(length).is_none() {
        return None;
    }
    let places = (0..copies).map(|copy| u64_at(item, HEAD_BYTES + copy * STRIPE_BYTES + 8));
    let has_nodes = profile & METADATA != 0;
    Some((Chunk { start, length, places: places.collect(), has_nodes }, bytes))
}

/// The chunk map.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chunks {
    /// Sorted by start, disjoint.
    all: Vec<Chunk>,
}

impl Chunks {
    /// Sorts the chunks; where some overlap, the first one counts.
    pub(super) fn new(mut all: Vec<Chunk>) -> Self {
        all.sort_by_key(|chunk| chunk.start);
        all.dedup_by(|next, last| next.start < last.start + last.length);
        Chunks { all }
    }

    /// All chunks, sorted by start.
    pub(crate) fn all(&self) -> &[Chunk] {
        &self.all
    }

    /// The offset of each copy of a logical range; empty if no single chunk contains the range.
    pub(super) fn places(&self, at: u64, length: u64) -> impl Iterator<Item = u64> + '_ {
        let index = self.all.partition_point(|chunk| chunk.start <= at);
        let chunk = index.checked_sub(1).and_then(|index| self.all.get(index));
        let inside = chunk.map_or(0, |chunk| at - chunk.start);
        let fits =
            |chunk: &&Chunk| inside.checked_add(length).is_some_and(|end| end <= chunk.length);
        let places = chunk.filter(fits).map_or(&[][..], |chunk| &chunk.places);
        places.iter().filter_map(move |place| place.checked_add(inside))
    }
}
