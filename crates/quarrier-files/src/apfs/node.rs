//! B-tree nodes: a table of contents, keys that grow from the front and values from the back.

use crate::part::{u16_at, u32_at, u64_at};

const HEAD_BYTES: usize = 56;
/// The size of the tree description at the end of a root node.
const INFO_BYTES: usize = 40;
const ROOT: u16 = 1;
const FIXED: u16 = 4;

/// The lengths of keys, and of values in leaves, where they are fixed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) key: usize,
    pub(super) value: usize,
}

/// A B-tree node.
pub(super) struct Node {
    bytes: Vec<u8>,
    /// Its offset in the part.
    at: u64,
    level: u16,
    entries: usize,
    sizes: Option<Sizes>,
    table: usize,
    keys: usize,
    /// The end of the value area.
    values_end: usize,
}

impl Node {
    /// Parses a node; `None` if it is damaged or is not object `number`.
    pub(super) fn new(bytes: Vec<u8>, at: u64, number: u64, sizes: Option<Sizes>) -> Option<Self> {
        let flags = u16_at(&bytes, 32);
        let is_fixed = flags & FIXED != 0;
        let info = if flags & ROOT != 0 { INFO_BYTES } else { 0 };
        let table = HEAD_BYTES + usize::from(u16_at(&bytes, 40));
        let keys = table + usize::from(u16_at(&bytes, 42));
        let values_end = bytes.len().checked_sub(info)?;
        let entries = u32_at(&bytes, 36) as usize;
        let each = if is_fixed { 4 } else { 8 };
        let fits = keys <= values_end && entries <= (keys - table) / each;
        let is_it = u64_at(&bytes, 8) == number && is_fixed == sizes.is_some();
        (fits && is_it).then(|| Node {
            at,
            level: u16_at(&bytes, 34),
            entries,
            sizes,
            table,
            keys,
            values_end,
            bytes,
        })
    }

    pub(super) fn level(&self) -> u16 {
        self.level
    }

    pub(super) fn entries(&self) -> usize {
        self.entries
    }

    /// A key and its value; `None` where the node is damaged.
    pub(super) fn entry(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let (key_at, key_bytes, value_back, value_bytes) = match self.sizes {
            Some(sizes) => {
                let at = self.table + index * 4;
                let value = if self.level == 0 { sizes.value } else { 8 };
                (u16_at(&self.bytes, at), sizes.key, u16_at(&self.bytes, at + 2), value)
            }
            None => {
                let number = |place: usize| u16_at(&self.bytes, self.table + index * 8 + place);
                (number(0), usize::from(number(2)), number(4), usize::from(number(6)))
            }
        };
        let key_at = self.keys + usize::from(key_at);
        let key = self.bytes.get(key_at..key_at + key_bytes)?;
        let value_at = self.values_end.checked_sub(usize::from(value_back))?;
        let value = self.bytes.get(value_at..value_at + value_bytes)?;
        Some((key, value))
    }

    /// The offset in the part of a value that [`Node::entry`] returned.
    pub(super) fn place_of(&self, value: &[u8]) -> u64 {
        let inside = (value.as_ptr() as usize).saturating_sub(self.bytes.as_ptr() as usize);
        self.at + inside as u64
    }

    /// The number of leading entries for which `is_before` holds, by binary search.
    pub(super) fn count(&self, is_before: impl Fn(usize) -> bool) -> usize {
        let (mut low, mut high) = (0, self.entries);
        while low < high {
            let middle = low.midpoint(high);
            if is_before(middle) { low = middle + 1 } else { high = middle }
        }
        low
    }
}
