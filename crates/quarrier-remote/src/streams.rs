//! Detects sequential readers, and decides how far ahead of them to fetch.
//!
//! [`ReadAhead`](quarrier_sparse::ReadAhead), made for readers of metadata, decides what to fetch
//! along with a read that misses. A reader of data also needs requests in flight while it
//! processes. So this module fetches ahead in the background:
//!
//! ```text
//!  at least 1 MiB read sequentially   as much ahead as has been read, up to the bound
//!  an announced range                 the bound, from the first read on, and nothing after the
//!                                     end of the range
//! ```
//!
//! A reader that stops has wasted at most as many fetched bytes as it used.

use quarrier_sparse::Span;

/// Minimum length of a run of sequential reads to count as a stream.
const RUN_BYTES_MIN: u64 = 1 << 20;
/// Maximum number of tracked readers; the least recently used is forgotten.
const STREAMS_MAX: usize = 8;
/// A read still continues a stream if its distance from the last read is at most this multiple of
/// its length: threads that share a range do not arrive in order.
const SHUFFLE: u64 = 8;

/// The sequential readers of an object.
#[derive(Debug)]
pub(crate) struct Streams {
    length: u64,
    ahead_bytes_max: u64,
    /// The most recently used first.
    streams: Vec<Stream>,
    announced: Option<AnnouncedRange>,
}

#[derive(Debug, Clone, Copy)]
struct Stream {
    /// The end of its furthest read.
    end: u64,
    /// Bytes read sequentially.
    run_bytes: u64,
    /// Everything before this was already fetched ahead.
    fetched: u64,
}

/// A range that will be read from start to end.
#[derive(Debug, Clone, Copy)]
struct AnnouncedRange {
    span: Span,
    fetched: u64,
}

impl Streams {
    /// Tracks an object of `length` bytes; never fetches more than `ahead_bytes_max` ahead.
    pub(crate) fn new(length: u64, ahead_bytes_max: u64) -> Self {
        Streams { length, ahead_bytes_max, streams: Vec::new(), announced: None }
    }

    /// Announces that `span` will be read from start to end.
    pub(crate) fn announce(&mut self, span: Span) {
        self.announced = Some(AnnouncedRange { span, fetched: span.offset });
    }

    /// Whether a read is within the announced range.
    pub(crate) fn is_announced(&self, asked: Span) -> bool {
        self.announced.is_some_and(|announced| {
            asked.offset >= announced.span.offset && asked.offset < announced.span.end()
        })
    }

    /// Records a read of `asked`, which must be within the length and not empty. Returns the span
    /// to fetch ahead of it, which may be empty.
    pub(crate) fn read(&mut self, asked: Span) -> Span {
        let (most, length) = (self.ahead_bytes_max, self.length);
        if self.is_announced(asked)
            && let Some(AnnouncedRange { span, fetched }) = &mut self.announced
        {
            return ahead(fetched, asked.end(), most, span.end().min(length));
        }
        let stream = self.follow(asked);
        let is_run = stream.run_bytes >= RUN_BYTES_MIN.max(asked.length.saturating_mul(3));
        let window = if is_run { stream.run_bytes.min(most) } else { 0 };
        ahead(&mut stream.fetched, asked.end(), window, length)
    }

    /// The stream that `asked` continues, or a new one.
    fn follow(&mut self, asked: Span) -> &mut Stream {
        let slack = asked.length.saturating_mul(SHUFFLE);
        let distance = |stream: &Stream| asked.offset.abs_diff(stream.end);
        let nearest = (0..self.streams.len())
            .filter(|&at| distance(&self.streams[at]) <= slack)
            .min_by_key(|&at| distance(&self.streams[at]));
        let stream = match nearest {
            Some(at) => {
                let mut stream = self.streams.remove(at);
                stream.run_bytes = stream.run_bytes.saturating_add(asked.length);
                stream.end = stream.end.max(asked.end());
                stream
            }
            None => Stream { end: asked.end(), run_bytes: asked.length, fetched: asked.end() },
        };
        self.streams.truncate(STREAMS_MAX - 1);
        self.streams.insert(0, stream);
        &mut self.streams[0]
    }
}

/// The span to fetch so that `window` bytes after `at` are in flight. To keep requests large, it is
/// empty until half of the window is used up.
fn ahead(fetched: &mut u64, at: u64, window: u64, end: u64) -> Span {
    let from = (*fetched).max(at);
    let until = at.saturating_add(window).min(end);
    if from >= until || (from - at).saturating_mul(2) > window {
        return Span::new(from, 0);
    }
    *fetched = until;
    Span::new(from, until - from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn reads_here_and_there_fetch_nothing_ahead() {
        let mut streams = Streams::new(50_000 * MIB, 32 * MIB);
        let mut state = 88_172_645_463_325_252u64;
        for _ in 0..10_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let asked = Span::new(state % (49_999 * MIB), 1 + state % 5000);
            assert_eq!(streams.read(asked).length, 0);
        }
    }

    #[test]
    fn a_reader_of_headers_fetches_nothing_ahead() {
        let mut streams = Streams::new(1000 * MIB, 32 * MIB);
        for at in (0..MIB - 8192).step_by(8192) {
            assert_eq!(streams.read(Span::new(at, 8192)).length, 0);
        }
    }

    #[test]
    fn reading_on_fetches_as_much_ahead_as_was_read_up_to_the_bound() {
        let mut streams = Streams::new(1000 * MIB, 32 * MIB);
        let (mut fetched, mut pieces, mut largest) = (0, 0, 0);
        for n in 0..500 {
            let ahead = streams.read(Span::new(n * MIB, MIB));
            if ahead.length > 0 {
                assert_eq!(ahead.offset, fetched.max((n + 1) * MIB), "nothing twice, no gap");
                fetched = ahead.end();
                pieces += 1;
                largest = largest.max(ahead.length);
            }
            assert!(fetched.saturating_sub((n + 1) * MIB) <= ((n + 1) * MIB).min(32 * MIB));
        }
        assert!(pieces < 40 && largest >= 16 * MIB, "{pieces} pieces, {largest}");
    }

    #[test]
    fn threads_that_share_a_range_out_among_them_are_one_reader() {
        let mut streams = Streams::new(1000 * MIB, 32 * MIB);
        let mut end = 0;
        for pair in 0..20 {
            for n in [2 * pair + 1, 2 * pair] {
                end = end.max(streams.read(Span::new(n * MIB, MIB)).end());
            }
        }
        assert!(end >= 50 * MIB, "{end}");
    }

    #[test]
    fn two_readers_far_apart_are_two_streams() {
        let mut streams = Streams::new(1000 * MIB, 32 * MIB);
        let mut ends = [0, 0];
        for n in 0..20 {
            for (end, start) in ends.iter_mut().zip([0, 500 * MIB]) {
                *end = streams.read(Span::new(start + n * MIB, MIB)).end().max(*end);
            }
        }
        assert!(ends[0] >= 30 * MIB && ends[0] < 60 * MIB, "{ends:?}");
        assert!(ends[1] >= 530 * MIB, "{ends:?}");
    }

    #[test]
    fn an_announced_range_is_fetched_ahead_at_once_and_not_beyond_its_end() {
        let mut streams = Streams::new(1000 * MIB, 32 * MIB);
        streams.announce(Span::new(10 * MIB, 50 * MIB));
        let first = streams.read(Span::new(10 * MIB, MIB));
        assert_eq!(first, Span::new(11 * MIB, 32 * MIB));
        let mut end = first.end();
        for n in 11..60 {
            let ahead = streams.read(Span::new(n * MIB, MIB));
            if ahead.length > 0 {
                assert_eq!(ahead.offset, end);
                end = ahead.end();
            }
        }
        assert_eq!(end, 60 * MIB);
    }

    #[test]
    fn nothing_is_fetched_ahead_if_disabled() {
        let mut streams = Streams::new(100 * MIB, 0);
        streams.announce(Span::new(0, 10 * MIB));
        for n in 0..100 {
            assert_eq!(streams.read(Span::new(n * MIB, MIB)).length, 0);
        }
    }
}
