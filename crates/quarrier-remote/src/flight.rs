//! Fetches in flight: every byte is fetched at most once at a time.

use std::sync::{Arc, Mutex};

use quarrier_core::sync::lock;
use quarrier_sparse::Span;

use crate::error::Error;

/// A request in flight, and the readers that wait for it.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) span: Span,
    end: Mutex<End>,
}

#[derive(Debug, Clone, Default)]
enum End {
    #[default]
    Open,
    Landed,
    Failed(Error),
}

impl Flight {
    pub(crate) fn new(span: Span) -> Arc<Self> {
        Arc::new(Flight { span, end: Mutex::default() })
    }

    /// Records the result; only the first call counts. Returns whether this was the first.
    pub(crate) fn finish(&self, result: Result<(), Error>) -> bool {
        let mut end = lock(&self.end);
        let is_open = matches!(*end, End::Open);
        if is_open {
            *end = match result {
                Ok(()) => End::Landed,
                Err(error) => End::Failed(error),
            };
        }
        is_open
    }

    /// The error, if it failed.
    pub(crate) fn failure(&self) -> Option<Error> {
        match &*lock(&self.end) {
            End::Failed(error) => Some(error.clone()),
            End::Open | End::Landed => None,
        }
    }
}

/// Whether two spans overlap.
pub(crate) fn overlap(a: Span, b: Span) -> bool {
    a.offset < b.end() && b.offset < a.end()
}

/// The parts of `spans` (sorted, disjoint) that are in none of `others` (in any order).
pub(crate) fn without(spans: Vec<Span>, others: impl Iterator<Item = Span>) -> Vec<Span> {
    others.fold(spans, |left, other| {
        let mut kept = Vec::with_capacity(left.len() + 1);
        for span in left {
            if !overlap(span, other) {
                kept.push(span);
                continue;
            }
            if span.offset < other.offset {
                kept.push(Span { offset: span.offset, length: other.offset - span.offset });
            }
            if span.end() > other.end() {
                kept.push(Span { offset: other.end(), length: span.end() - other.end() });
            }
        }
        kept
    })
}

/// Splits spans into pieces of at most `bytes_max`, of similar size.
pub(crate) fn split(spans: &[Span], bytes_max: u64) -> Vec<Span> {
    let mut pieces = Vec::with_capacity(spans.len());
    for span in spans.iter().filter(|span| span.length > 0) {
        let count = span.length.div_ceil(bytes_max.max(1));
        let size = span.length.div_ceil(count);
        let mut offset = span.offset;
        while offset < span.end() {
            let length = size.min(span.end() - offset);
            pieces.push(Span { offset, length });
            offset += length;
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(offset: u64, length: u64) -> Span {
        Span { offset, length }
    }

    #[test]
    fn spans_in_flight_are_left_out() {
        let left = without(
            vec![span(0, 100), span(200, 10)],
            [span(20, 10), span(90, 115), span(300, 5)].into_iter(),
        );
        assert_eq!(left, [span(0, 20), span(30, 60), span(205, 5)]);
        assert_eq!(without(vec![span(5, 5)], [span(0, 100)].into_iter()), []);
    }

    #[test]
    fn pieces_cover_a_span_and_none_is_too_large() {
        assert_eq!(
            split(&[span(0, 10), span(20, 5)], 4),
            [span(0, 4), span(4, 4), span(8, 2), span(20, 3), span(23, 2),]
        );
        assert_eq!(split(&[span(7, 0)], 4), []);
        assert_eq!(split(&[span(u64::MAX - 5, 5)], u64::MAX), [span(u64::MAX - 5, 5)]);
    }

    #[test]
    fn a_flight_ends_once() {
        let flight = Flight::new(span(0, 1));
        assert!(flight.failure().is_none());
        let closed = Error::Closed { source_name: String::new() };
        assert!(flight.finish(Err(closed.clone())));
        assert!(!flight.finish(Ok(())));
        assert_eq!(flight.failure(), Some(closed));
    }
}
