//! Verification: turns a candidate position into findings.

use super::Haystack;
use crate::finding::Finding;
use crate::pattern::Needles;

/// An anchor of a needle.
#[derive(Debug, Clone, Copy)]
pub(super) struct Anchor {
    pub(super) needle: u32,
    /// Offset of the anchor in the needle.
    pub(super) offset: u32,
}

/// The needle's bytes from its anchor on, to compare with a candidate first.
#[derive(Debug, Clone, Copy)]
struct Entry {
    value: u64,
    mask: u64,
    anchor: Anchor,
    pattern: u32,
    /// The needle's length if value and mask contain all of it, else 0.
    whole_length: u32,
}

/// Anchors in hash tables by their first 4, 2 or 1 bytes; those without a fixed first byte in a
/// plain list.
#[derive(Debug)]
pub(super) struct Verifier {
    tables: Vec<Table>,
    /// A mask for text and needles before hashing, so that letters of either case have the same
    /// hash.
    fold: u32,
}

#[derive(Debug)]
struct Table {
    key_mask: u32,
    shift: u32,
    /// `heads[h]..heads[h + 1]` are the entries of bucket `h`.
    heads: Vec<u32>,
    entries: Vec<Entry>,
}

/// Clears the case bit of ASCII letters in each byte.
const FOLD: u32 = 0xDFDF_DFDF;

/// Returns the number of fixed leading bytes of an anchor (ignoring case): 4, 2, 1 or 0.
pub(super) fn key_bytes(mask: &[u8], fold: u32) -> usize {
    let fold = fold.to_le_bytes();
    let fixed = mask.iter().take(4).zip(fold).take_while(|(m, f)| *m & f == *f).count();
    if fixed == 3 { 2 } else { fixed }
}

/// Returns the mask that folds case for a set of needles.
pub(crate) fn fold_of(needles: &Needles) -> u32 {
    if needles.has_folded_letters() { FOLD } else { !0 }
}

/// Keeps small keys, zero among them, off bucket 0.
pub(super) const HASH_ADD: u32 = 0x5bd1_e995;
/// Knuth's multiplicative hashing.
pub(super) const HASH_FACTOR: u32 = 0x9E37_79B1;

#[inline(always)]
pub(super) fn hash(key: u32) -> u32 {
    (key ^ HASH_ADD).wrapping_mul(HASH_FACTOR)
}

fn load_key(bytes: &[u8]) -> u32 {
    let mut word = [0u8; 4];
    let count = bytes.len().min(4);
    word[..count].copy_from_slice(&bytes[..count]);
    u32::from_le_bytes(word)
}

pub(crate) fn load_word(bytes: &[u8]) -> u64 {
    if let Some(word) = bytes.first_chunk::<8>() {
        return u64::from_le_bytes(*word);
    }
    let mut word = [0u8; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

impl Verifier {
    pub(super) fn new(needles: &Needles, anchors: &[Anchor]) -> Self {
        let fold = fold_of(needles);
        let tables = [4, 2, 1, 0]
            .iter()
            .filter_map(|&bytes| {
                let of_this: Vec<Anchor> = anchors
                    .iter()
                    .copied()
                    .filter(|a| {
                        let mask = &needles.get(a.needle as usize).mask[a.offset as usize..];
                        key_bytes(mask, fold) == bytes
                    })
                    .collect();
                (!of_this.is_empty()).then(|| Table::new(needles, &of_this, bytes, fold))
            })
            .collect();
        Verifier { tables, fold }
    }

    /// Adds all needles that have an anchor at `position` and match there.
    #[inline(always)]
    pub(super) fn check(
        &self,
        needles: &Needles,
        hay: &Haystack<'_>,
        position: usize,
        found: &mut Vec<Finding>,
    ) {
        let word = load_word(&hay.text[position..]);
        for table in &self.tables {
            for entry in table.bucket(word as u32 & self.fold) {
                if word & entry.mask != entry.value {
                    continue;
                }
                let length = entry.whole_length as usize;
                if length == 0 {
                    compare(needles, hay, position, entry.anchor, found);
                } else if hay.own.contains(&position) && length <= hay.text.len() - position {
                    found.push(hay.finding(position, entry.pattern, length));
                }
            }
        }
    }
}

/// Compares the whole needle.
fn compare(
    needles: &Needles,
    hay: &Haystack<'_>,
    position: usize,
    anchor: Anchor,
    found: &mut Vec<Finding>,
) {
    let needle = needles.get(anchor.needle as usize);
    let Some(start) = position.checked_sub(anchor.offset as usize) else { return };
    if !hay.own.contains(&start) {
        return;
    }
    let Some(there) = hay.text.get(start..start + needle.len()) else { return };
    if needle.matches(there) {
        found.push(hay.finding(start, needle.pattern, needle.len()));
    }
}

impl Table {
    fn new(needles: &Needles, anchors: &[Anchor], key_bytes: usize, fold: u32) -> Self {
        let key_mask = match key_bytes {
            4 => !0,
            2 => 0xFFFF,
            1 => 0xFF,
            _ => 0,
        };
        // Four buckets per anchor: most candidates meet an empty one.
        let bits = (anchors.len() * 4).next_power_of_two().trailing_zeros().clamp(1, 24);
        let shift = 32 - bits;
        let keyed: Vec<(u32, Entry)> = anchors
            .iter()
            .map(|&anchor| {
                let needle = needles.get(anchor.needle as usize);
                let from = anchor.offset as usize;
                let value = load_word(&needle.value[from..from + (needle.len() - from).min(8)]);
                let mask = load_word(&needle.mask[from..from + (needle.len() - from).min(8)]);
                let key = load_key(&needle.value[from..]) & fold & key_mask;
                let is_whole = anchor.offset == 0 && needle.len() <= 8;
                let whole_length = if is_whole { needle.len() as u32 } else { 0 };
                let pattern = needle.pattern;
                (hash(key) >> shift, Entry { value, mask, anchor, pattern, whole_length })
            })
            .collect();
        // Counting sort by bucket.
        let mut heads = vec![0u32; (1 << bits) + 1];
        keyed.iter().for_each(|(bucket, _)| heads[*bucket as usize + 1] += 1);
        for bucket in 1..heads.len() {
            heads[bucket] += heads[bucket - 1];
        }
        let mut next = heads.clone();
        let mut entries = vec![keyed[0].1; keyed.len()];
        for (bucket, entry) in keyed {
            entries[next[bucket as usize] as usize] = entry;
            next[bucket as usize] += 1;
        }
        Table { key_mask, shift, heads, entries }
    }

    #[inline(always)]
    fn bucket(&self, folded: u32) -> &[Entry] {
        let bucket = (hash(folded & self.key_mask) >> self.shift) as usize;
        &self.entries[self.heads[bucket] as usize..self.heads[bucket + 1] as usize]
    }
}
