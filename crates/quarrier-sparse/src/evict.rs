//! Evicts the least recently used bytes that are not pinned.

use crate::file::SparseFile;
use crate::{Error, Result, Span};

/// A unit of eviction: a leaf, or one of its runs if the leaf records the use of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Unit {
    last_used: u64,
    leaf: usize,
    is_whole_leaf: bool,
    span: Span,
    bytes: u64,
}

impl SparseFile {
    /// Protects a range from eviction and erasure until it is unpinned as often as it was pinned.
    /// Its bytes need not be held.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn pin(&mut self, span: Span) -> Result<()> {
        span.checked_end()?;
        self.pins.push(span);
        Ok(())
    }

    /// Undoes one [`SparseFile::pin`] of exactly this range.
    ///
    /// # Errors
    /// [`Error::Pinned`] if no such pin exists.
    pub fn unpin(&mut self, span: Span) -> Result<()> {
        let at = self.pins.iter().position(|&pin| pin == span).ok_or(Error::Pinned { span })?;
        self.pins.swap_remove(at);
        Ok(())
    }

    /// Evicts the least recently used bytes, no more than necessary, until at most `bytes_max` are
    /// held or only pinned ones are left. Returns the number of evicted bytes.
    ///
    /// Evicts whole blocks, 64 KiB of a larger block or of many tiny ones, or only the first part
    /// of these. Sorts all held blocks by use.
    pub fn evict(&mut self, bytes_max: u64) -> u64 {
        let Some(mut excess) = self.num_bytes().checked_sub(bytes_max).filter(|&n| n > 0) else {
            return 0;
        };
        self.evict_some(u64::MAX, &mut excess)
    }

    /// Evicts the least recently used parts among those last used at `last_used_max` or before,
    /// until `excess` bytes are gone. Returns the number of evicted bytes.
    pub(crate) fn evict_some(&mut self, last_used_max: u64, excess: &mut u64) -> u64 {
        let before = self.num_bytes();
        let mut units = self.units();
        units.retain(|unit| unit.last_used <= last_used_max);
        units.sort_unstable();
        let mut whole_leaves = Vec::new();
        let mut parts = Vec::new();
        for unit in units {
            if *excess == 0 {
                break;
            }
            let pinned = self.pins.iter().any(|pin| overlap(*pin, unit.span));
            if unit.is_whole_leaf && !pinned && unit.bytes <= *excess {
                whole_leaves.push(unit.leaf);
                *excess -= unit.bytes;
            } else {
                self.take_part(unit.span, excess, &mut parts);
            }
        }
        whole_leaves.sort_unstable();
        self.map.remove_leaves(&whole_leaves);
        for span in parts {
            self.map.remove(span);
        }
        let evicted = before - self.num_bytes();
        self.counts.evicted_bytes += evicted;
        evicted
    }

    /// Adds the last use and the size of each part.
    pub(crate) fn add_uses(&self, uses: &mut Vec<(u64, u64)>) {
        uses.extend(self.units().iter().map(|unit| (unit.last_used, unit.bytes)));
    }

    fn units(&self) -> Vec<Unit> {
        let mut units = Vec::new();
        for (index, (key, leaf)) in self.map.leaves().enumerate() {
            if !leaf.is_stamped() || leaf.runs() == 1 {
                units.push(Unit {
                    last_used: leaf.last_used(0),
                    leaf: index,
                    is_whole_leaf: true,
                    span: Span::between(key, key + leaf.last_end()),
                    bytes: leaf.len_bytes() as u64,
                });
                continue;
            }
            units.extend((0..leaf.runs()).map(|run| {
                let span = Span::between(key + leaf.start(run), key + leaf.end(run));
                let last_used = leaf.last_used(run);
                Unit { last_used, leaf: index, is_whole_leaf: false, span, bytes: span.length }
            }));
        }
        units
    }

    /// Adds the held and unpinned parts of `span`, from its start on, until they amount to
    /// `excess`.
    fn take_part(&self, span: Span, excess: &mut u64, parts: &mut Vec<Span>) {
        let mut pins: Vec<Span> = self.pins.iter().copied().filter(|p| overlap(*p, span)).collect();
        pins.sort_unstable();
        self.map.for_each_run(span.offset, span.end(), |start, end| {
            let mut at = start;
            for pin in pins.iter().chain([&Span::new(end, 1)]) {
                let stop = pin.offset.clamp(at, end);
                let length = (stop - at).min(*excess);
                if length > 0 {
                    parts.push(Span::new(at, length));
                    *excess -= length;
                }
                at = pin.end().clamp(stop, end);
            }
        });
    }
}

fn overlap(a: Span, b: Span) -> bool {
    a.offset < b.end() && b.offset < a.end()
}
