//! Steps from batch to batch through one segment, and skips damage.
//!
//! ```text
//!  header valid and payload intact ─→ batch
//!  else  zeros up to the next block ─→ padding of a group
//!        a later header records that this was durable ─→ damage, on to the next valid header
//!        none does, all zeros ─→ end
//!        none does ─→ torn tail: cut, it was never acknowledged
//! ```

use std::ops::Range;
use std::sync::Arc;

use super::batch::{CLOSED, HEADER_BYTES, Header, payload_sum};
use super::disk::DiskFile;
use super::segment::HEAD_BYTES;
use super::window::Window;

/// How the end of a segment is determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// Everything before the limit was durable.
    Sealed,
    /// The last segment: its contents determine the end. It was made with this many bytes.
    Open { made_bytes: u64 },
}

/// The next item in a segment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Batch {
        header: Header,
        place: u64,
        stored: Vec<u8>,
    },
    /// These bytes and marks are damaged; without an end if that is unknown.
    Damage {
        bytes: Range<u64>,
        first_mark: u64,
        end_mark: Option<u64>,
    },
    /// Everything from here on was never acknowledged. `bytes` ends after the last nonzero byte.
    Cut {
        bytes: Range<u64>,
    },
    End,
}

/// A position in a segment.
pub(super) struct Walk {
    window: Window,
    salt: u64,
    /// The block to which groups are padded.
    block_bytes: u64,
    length: u64,
    limit: u64,
    ending: Ending,
    at: u64,
    /// The mark of the next message.
    expected: u64,
    /// Whether the last batch is a note that the log was closed.
    is_closed: bool,
    is_over: bool,
    /// Bytes after the last batch that should be zero but are not.
    stained: Option<Range<u64>>,
    /// In an open segment, the result of a scan from its first fault on.
    rest: Option<Rest>,
}

#[derive(Debug, Clone, Copy)]
struct Rest {
    /// The farthest place that a later header records as durable.
    durable_to: u64,
    /// The end of the last nonzero byte.
    used_to: u64,
}

impl Walk {
    /// Starts at the first batch of a segment of `length` bytes; `limit` bounds its end.
    pub(super) fn new(
        file: Arc<dyn DiskFile>,
        length: u64,
        (salt, block_bytes): (u64, u64),
        (limit, ending): (u64, Ending),
        expected: u64,
    ) -> Self {
        Walk {
            window: Window::new(file, length, limit),
            salt,
            block_bytes,
            length,
            limit,
            ending,
            at: HEAD_BYTES,
            expected,
            is_closed: false,
            is_over: false,
            stained: None,
            rest: None,
        }
    }

    /// Returns another walk from here on.
    pub(super) fn ahead(&self) -> Walk {
        let window = Window::new(Arc::clone(self.window.file()), self.length, self.limit);
        Walk { window, stained: self.stained.clone(), ..*self }
    }

    /// Returns the place where the next batch begins.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    pub(super) fn expected(&self) -> u64 {
        self.expected
    }

    /// Moves the limit of a sealed segment, after the log has grown.
    pub(super) fn extend(&mut self, limit: u64, length: u64) {
        if limit > self.limit {
            (self.limit, self.length, self.is_over) = (limit, length, false);
            self.window.extend(limit);
        }
    }

    /// Returns the next step; after the last one, always [`Step::End`].
    pub(super) fn step(&mut self) -> Step {
        if let Some(bytes) = self.stained.take() {
            let mark = self.expected;
            return Step::Damage { bytes, first_mark: mark, end_mark: Some(mark) };
        }
        loop {
            if self.is_over || (self.at >= self.limit && self.is_complete()) {
                self.is_over = true;
                return Step::End;
            }
            let header = self.header_at(self.at).filter(|header| header.mark >= self.expected);
            let Some(header) = header else {
                if self.is_padding() {
                    self.at = self.at.next_multiple_of(self.block_bytes);
                    continue;
                }
                return self.broken(None);
            };
            let Some(stored) = self.stored(&header) else { return self.broken(Some(header)) };
            if header.mark > self.expected {
                return self.missing(header.mark, self.at);
            }
            let place = self.at;
            self.at += header.extent();
            self.expected = header.next_mark();
            self.is_closed = header.has(CLOSED);
            self.check_padding(place + HEADER_BYTES + u64::from(header.bytes));
            if self.is_closed && self.stained.is_none() {
                self.check_end();
            }
            return Step::Batch { header, place, stored };
        }
    }

    /// Reports messages of which nothing remains; the batch after them is intact.
    fn missing(&mut self, mark: u64, end: u64) -> Step {
        let first_mark = std::mem::replace(&mut self.expected, mark);
        Step::Damage { bytes: end..end, first_mark, end_mark: Some(mark) }
    }

    /// Returns whether the file has the segment's full length, or was truncated when the log was closed.
    fn is_complete(&self) -> bool {
        match self.ending {
            Ending::Sealed => self.length >= self.limit,
            Ending::Open { made_bytes } => {
                let is_cut_off =
                    self.is_closed && self.length >= self.at.next_multiple_of(self.block_bytes);
                is_cut_off || self.length >= made_bytes
            }
        }
    }

    fn header_at(&mut self, at: u64) -> Option<Header> {
        let salt = self.salt;
        let header = Header::of(self.window.page(at), at, salt)?;
        (u64::from(header.synced) * HEADER_BYTES <= at - HEAD_BYTES).then_some(header)
    }

    /// Returns the payload of the header at this place, if it is intact.
    fn stored(&mut self, header: &Header) -> Option<Vec<u8>> {
        let start = self.at + HEADER_BYTES;
        let end = start.checked_add(u64::from(header.bytes))?;
        if end > self.limit.min(self.length) {
            return None;
        }
        let mut stored = Vec::with_capacity(header.bytes as usize);
        while stored.len() < header.bytes as usize {
            let run = self.window.run(start + stored.len() as u64);
            let count = run.len().min(header.bytes as usize - stored.len());
            if count == 0 {
                return None;
            }
            stored.extend_from_slice(&run[..count]);
        }
        (payload_sum([stored.as_slice()]) == header.checksum).then_some(stored)
    }

    /// Records nonzero bytes between the end of a batch and the next place for one.
    fn check_padding(&mut self, end: u64) {
        let aligned = end.next_multiple_of(HEADER_BYTES);
        let page = self.window.page(end);
        let is_clean = is_zero(&page[..((aligned - end) as usize).min(page.len())]);
        self.stained = (!is_clean).then_some(end..aligned);
    }

    /// Records nonzero bytes in the group of the note that closed the log, which has its own group. The note
    /// was written over zeros, so a torn write leaves nothing else there: other bytes are damage that loses
    /// no message.
    fn check_end(&mut self) {
        let (at, block_end) = (self.at, self.at.next_multiple_of(self.block_bytes));
        let page = self.window.page(at);
        let rest = &page[..((block_end - at) as usize).min(page.len())];
        if !is_zero(rest) && block_end <= self.limit {
            (self.stained, self.at) = (Some(at..block_end), block_end);
        }
    }

    /// Returns whether zeros fill a group that ends here up to the next block.
    fn is_padding(&mut self) -> bool {
        let next = self.at.next_multiple_of(self.block_bytes);
        let count = (next - self.at) as usize;
        let page = self.window.page(self.at);
        count > 0 && next <= self.limit && page.len() >= count && is_zero(&page[..count])
    }

    /// Determines the reason why no intact batch is here. `known` is its header, if that is intact.
    fn broken(&mut self, known: Option<Header>) -> Step {
        let at = self.at;
        let expected = known.map_or(self.expected, |header| header.next_mark());
        let from = match known {
            Some(header) if at + header.extent() <= self.limit => at + header.extent(),
            _ => at + HEADER_BYTES,
        };
        if !self.was_durable(at) {
            self.is_over = true;
            let used_to = self.rest().used_to;
            return if used_to > at { Step::Cut { bytes: at..used_to } } else { Step::End };
        }
        if let Some((next, header)) = self.find(from, expected) {
            self.at = next;
            let first_mark = std::mem::replace(&mut self.expected, header.mark);
            return Step::Damage { bytes: at..next, first_mark, end_mark: Some(header.mark) };
        }
        self.is_over = true;
        let is_unused = self.is_zero_to_limit(at) && self.length >= self.limit;
        if self.ending == Ending::Sealed && is_unused && !self.window.is_unreadable(at..self.limit)
        {
            // The mark of the next segment shows whether messages are missing.
            return Step::End;
        }
        let end = match self.ending {
            Ending::Sealed => self.limit,
            Ending::Open { made_bytes } => self.limit.max(made_bytes),
        };
        let first_mark = std::mem::replace(&mut self.expected, expected);
        self.at = end;
        let is_last = |header: &Header| at + header.extent() >= end;
        // A closed log has no messages after its note.
        let end_mark = known.filter(is_last).map(|header| header.next_mark());
        let end_mark = end_mark.or_else(|| self.is_closed.then_some(first_mark));
        Step::Damage { bytes: at..end, first_mark, end_mark }
    }

    /// Returns whether the bytes here were once durable.
    fn was_durable(&mut self, at: u64) -> bool {
        self.ending == Ending::Sealed
            || !self.is_complete()
            || self.rest().durable_to > at
            || self.window.is_unreadable(at..self.limit)
    }

    /// Scans everything that follows, once. The result applies to later faults as well: a header before a
    /// fault cannot record the fault's bytes as durable.
    fn rest(&mut self) -> Rest {
        if let Some(rest) = self.rest {
            return rest;
        }
        let (mut at, mut rest) = (self.at, Rest { durable_to: 0, used_to: 0 });
        while at < self.limit {
            let most = (self.limit - at) as usize;
            let salt = self.salt;
            let run = self.window.run(at);
            let run = &run[..most.min(run.len())];
            if run.is_empty() {
                break;
            }
            for (index, slot) in run.chunks(HEADER_BYTES as usize).enumerate() {
                let place = at + index as u64 * HEADER_BYTES;
                if let Some(header) = Header::of(slot, place, salt) {
                    let back = u64::from(header.synced) * HEADER_BYTES;
                    rest.durable_to = rest.durable_to.max(place.saturating_sub(back));
                }
                if !is_zero(slot) {
                    rest.used_to = place + slot.len() as u64;
                }
            }
            at += (run.len() as u64).next_multiple_of(HEADER_BYTES);
        }
        self.rest = Some(rest);
        rest
    }

    /// Finds the first valid header from `from` on whose mark is at least `expected`.
    fn find(&mut self, from: u64, expected: u64) -> Option<(u64, Header)> {
        let mut at = from;
        while at < self.limit {
            let salt = self.salt;
            let most = (self.limit - at) as usize;
            let run = self.window.run(at);
            let run = &run[..most.min(run.len())];
            if run.is_empty() {
                return None;
            }
            let slots = run.chunks(HEADER_BYTES as usize).enumerate();
            let found = slots
                .map(|(index, slot)| (at + index as u64 * HEADER_BYTES, slot))
                .filter_map(|(place, slot)| Some((place, Header::of(slot, place, salt)?)))
                .find(|(_, header)| header.mark >= expected);
            if found.is_some() {
                return found;
            }
            at += (run.len() as u64).next_multiple_of(HEADER_BYTES);
        }
        None
    }

    fn is_zero_to_limit(&mut self, from: u64) -> bool {
        let mut at = from;
        while at < self.limit {
            let most = (self.limit - at) as usize;
            let run = self.window.run(at);
            let run = &run[..most.min(run.len())];
            if run.is_empty() || !is_zero(run) {
                return run.is_empty();
            }
            at += run.len() as u64;
        }
        true
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    zeros_at_start(bytes) == bytes.len()
}

/// Counts the zeros at the start of `bytes`.
fn zeros_at_start(bytes: &[u8]) -> usize {
    // A segment ends with long runs of zeros: compare eight at a time.
    let whole = bytes.chunks_exact(8).take_while(|eight| **eight == [0; 8]).count() * 8;
    whole + bytes[whole..].iter().take_while(|byte| **byte == 0).count()
}
