//! Missing ranges, written into arrays.

use crate::{Result, Span, SparseFile};

/// Arrays to fill with ranges, as far as they have room.
struct Ranges<'r> {
    offsets: &'r mut [u64],
    lengths: &'r mut [u64],
    count: usize,
}

impl Ranges<'_> {
    /// Adds the range, unless it is empty.
    fn put(&mut self, start: u64, stop: u64) {
        if start >= stop {
            return;
        }
        let place = (self.offsets.get_mut(self.count), self.lengths.get_mut(self.count));
        if let (Some(offset), Some(length)) = place {
            (*offset, *length) = (start, stop - start);
        }
        self.count += 1;
    }

    fn has_room(&self, more: usize) -> bool {
        self.count + more <= self.offsets.len().min(self.lengths.len())
    }
}

impl SparseFile {
    /// As [`SparseFile::need`], written to the start of `offsets` and `lengths`. Returns the number
    /// of ranges; if the arrays are too short, the last ranges are left out. Takes about a
    /// nanosecond per range.
    ///
    /// # Errors
    /// [`Error::Overflow`](crate::Error::Overflow).
    pub fn need_into(&self, span: Span, offsets: &mut [u64], lengths: &mut [u64]) -> Result<usize> {
        let end = span.checked_end()?.min(self.length().unwrap_or(u64::MAX));
        let mut ranges = Ranges { offsets, lengths, count: 0 };
        let mut at = span.offset;
        for (key, leaf) in self.map.leaves_between(span.offset, end) {
            let (last_end, gaps) = (key + leaf.last_end(), leaf.runs() - 1);
            if key < at || last_end > end || !ranges.has_room(1 + gaps) {
                // A leaf that overlaps an end of the span, or the last one for which there is room.
                self.map.for_each_run(at.max(key), last_end.min(end), |start, stop| {
                    ranges.put(at, start);
                    at = at.max(stop);
                });
                continue;
            }
            ranges.put(at, key);
            let count = ranges.count;
            leaf.gaps_into(key, &mut ranges.offsets[count..], &mut ranges.lengths[count..]);
            ranges.count += gaps;
            at = last_end;
        }
        ranges.put(at, end);
        Ok(ranges.count)
    }
}
