//! Free ranges, and their construction from bitmaps.

use std::ops::Range;

use quarrier_core::ranges::merged;

use crate::error::Result;
use crate::part::Part;

/// Maximum number of free ranges, in 64 MiB: more than a 32 TB source has on average.
const RANGES_MAX: usize = 1 << 22;

/// Free ranges, in any order.
#[derive(Default)]
pub(super) struct Free {
    ranges: Vec<Range<u64>>,
}

impl Free {
    /// Adds a range of the source, or extends the last one if contiguous with it.
    pub(super) fn add(&mut self, range: Range<u64>, part: &Part<'_>) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let is_full = self.ranges.len() == RANGES_MAX;
        match self.ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ if is_full => {
                return Err(part.refused(0, "free space in more than four million pieces"));
            }
            _ => self.ranges.push(range),
        }
        Ok(())
    }

    /// Adds all ranges of `other`, which lie in `part`.
    pub(super) fn append(&mut self, other: Free, part: &Part<'_>) -> Result<()> {
        other.ranges.into_iter().try_for_each(|range| self.add(range, part))
    }

    /// Sorts and merges: bitmaps of ext groups may describe a range twice.
    pub(super) fn into_ranges(self) -> Vec<Range<u64>> {
        merged(self.ranges)
    }
}

/// Clusters or blocks, reported in sequence as free or allocated.
pub(super) struct Units<'a, 'b> {
    part: &'a Part<'b>,
    free: &'a mut Free,
    /// The offset of the first one in the part.
    start: u64,
    unit_bytes: u64,
    count: u64,
    /// The number of units reported so far.
    reported: u64,
    free_since: Option<u64>,
}

impl<'a, 'b> Units<'a, 'b> {
    /// Starts a sequence of `count` units at `start`, or fewer if the part ends early.
    pub(super) fn new(
        part: &'a Part<'b>,
        free: &'a mut Free,
        start: u64,
        unit_bytes: u64,
        count: u64,
    ) -> Self {
        let room = part.length().saturating_sub(start) / unit_bytes.max(1);
        Units {
            part,
            free,
            start,
            unit_bytes,
            count: count.min(room),
            reported: 0,
            free_since: None,
        }
    }

    /// The number of units not yet reported.
    pub(super) fn left(&self) -> u64 {
        self.count - self.reported
    }

    /// Reports the next unit; units past the last are ignored.
    pub(super) fn next(&mut self, is_free: bool) -> Result<()> {
        if self.reported == self.count {
            return Ok(());
        }
        match (is_free, self.free_since) {
            (true, None) => self.free_since = Some(self.reported),
            (false, Some(_)) => self.end_range()?,
            _ => {}
        }
        self.reported += 1;
        Ok(())
    }

    /// Reports the next units from a bitmap: lowest bit first, 1 means allocated.
    pub(super) fn bits(&mut self, bytes: &[u8]) -> Result<()> {
        for chunk in bytes.chunks(8) {
            let all_same = chunk.iter().all(|byte| *byte == chunk[0]);
            if all_same && (chunk[0] == 0 || chunk[0] == 0xFF) {
                self.same(chunk[0] == 0, chunk.len() as u64 * 8)?;
                continue;
            }
            for byte in chunk {
                for bit in 0..8 {
                    self.next(byte >> bit & 1 == 0)?;
                }
            }
        }
        Ok(())
    }

    /// Reports the next `units` units, all free or all allocated.
    pub(super) fn same(&mut self, is_free: bool, units: u64) -> Result<()> {
        let units = units.min(self.left());
        if units > 0 {
            self.next(is_free)?;
            self.reported += units - 1;
        }
        Ok(())
    }

    /// Finishes after the last unit.
    pub(super) fn finish(mut self) -> Result<()> {
        self.end_range()
    }

    fn end_range(&mut self) -> Result<()> {
        let Some(since) = self.free_since.take() else { return Ok(()) };
        let at = |unit: u64| self.part.place(self.start + unit * self.unit_bytes);
        self.free.add(at(since)..at(self.reported), self.part)
    }
}
