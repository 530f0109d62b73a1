//! The first spans of a file, which the pass that builds the index keeps.

use super::{RING_BYTES, STEP_BYTES};

/// The decompressed bytes of the first spans, within a memory limit.
#[derive(Default)]
pub(super) struct FirstSpans {
    /// The last one is not complete, unless the memory is used up.
    spans: Vec<Vec<u8>>,
    bytes: usize,
    room_bytes: usize,
    is_full: bool,
}

impl FirstSpans {
    /// No spans, with room for this many bytes.
    pub(super) fn with_room(room_bytes: usize) -> Self {
        FirstSpans { spans: vec![Vec::new()], room_bytes, ..FirstSpans::default() }
    }

    /// Changes the memory limit.
    pub(super) fn set_room(&mut self, room_bytes: usize) {
        self.room_bytes = room_bytes;
    }

    /// Adds bytes to the last span.
    pub(super) fn add(&mut self, part: &[u8]) {
        // A file with a second span is likely to fill it.
        let whole = if self.spans.len() > 1 { STEP_BYTES as usize + RING_BYTES } else { 0 };
        let Some(span) = self.spans.last_mut().filter(|_| !self.is_full) else { return };
        let more = if span.is_empty() { part.len().max(whole) } else { part.len() };
        let has_room = self.bytes + part.len() <= self.room_bytes;
        if !has_room || span.try_reserve(more).is_err() {
            self.is_full = true;
            self.spans.pop();
            return;
        }
        self.bytes += part.len();
        span.extend_from_slice(part);
    }

    /// Ends the last span. The next one follows.
    pub(super) fn end_span(&mut self) {
        if !self.is_full {
            self.spans.push(Vec::new());
        }
    }

    /// Joins every other span with the one before it.
    pub(super) fn thin_out(&mut self) {
        let mut spans = std::mem::take(&mut self.spans).into_iter();
        while let Some(mut span) = spans.next() {
            match spans.next() {
                Some(second) => span.extend_from_slice(&second),
                // Only a part of the joined span.
                None if self.is_full => break,
                None => {}
            }
            self.spans.push(span);
        }
    }

    /// The spans, from the first one on.
    pub(super) fn into_spans(self) -> Vec<Vec<u8>> {
        self.spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_spans_that_fit_are_kept_and_joined() {
        let spans: Vec<Vec<u8>> = (1..=9_u8).map(|span| vec![span; usize::from(span)]).collect();
        let all: usize = spans.iter().map(Vec::len).sum();
        for room in 0..=all + 1 {
            let mut first = FirstSpans::with_room(room);
            for (number, span) in spans.iter().enumerate() {
                if number > 0 {
                    first.end_span();
                }
                span.chunks(2).for_each(|part| first.add(part));
            }
            let sums = spans.iter().scan(0, |sum, span| {
                *sum += span.len();
                Some(*sum)
            });
            let fits = sums.take_while(|sum| *sum <= room).count();
            let joined = |kept: &[Vec<u8>], is_whole: bool| -> Vec<Vec<u8>> {
                let pairs = kept.chunks(2).filter(|two| two.len() == 2 || is_whole);
                pairs.map(<[Vec<u8>]>::concat).collect()
            };
            let expected = joined(&spans[..fits], fits == spans.len());
            first.thin_out();
            assert_eq!(first.into_spans(), expected, "room for {room} bytes");
        }
    }
}
