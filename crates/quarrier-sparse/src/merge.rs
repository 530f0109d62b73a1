//! Merges missing ranges into requests.

use std::time::Duration;

use crate::Span;

/// How to turn missing ranges into requests.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Merge {
    /// Exactly the missing ranges; ranges that touch become one.
    Exact,
    /// Requests of at least this many bytes; a request may cover several ranges.
    Greedy {
        /// Minimum size of a request in bytes.
        bytes_min: u64,
    },
    /// The cheapest requests according to a cost model.
    Cost(CostModel),
}

/// The cost of requests, and their limits.
///
/// A hole between two missing ranges is fetched along with them if its bytes cost no more than a
/// separate request. Since costs are additive, deciding hole by hole is optimal as long as no
/// request reaches [`request_bytes_max`](CostModel::request_bytes_max).
#[derive(Debug, Clone, PartialEq)]
pub struct CostModel {
    /// Time from a request to its first byte.
    pub latency: Duration,
    /// Transfer rate after the first byte. Zero or less means that bytes take no time.
    pub bytes_per_second: f64,
    /// Price per request, in any currency.
    pub price_per_request: f64,
    /// Price per byte, in the same currency.
    pub price_per_byte: f64,
    /// The value of one unit of the currency, in seconds.
    pub seconds_per_price: f64,
    /// Maximum size of a request in bytes; 0 means no limit.
    pub request_bytes_max: u64,
    /// Requests begin and end at multiples of this, except at the end of the file; 0 and 1 mean no
    /// alignment.
    pub alignment: u64,
}

impl Default for CostModel {
    /// A server with 20 ms latency and 50 MB/s, free of charge, with requests of at most 16 MiB.
    fn default() -> Self {
        CostModel {
            latency: Duration::from_millis(20),
            bytes_per_second: 50e6,
            price_per_request: 0.0,
            price_per_byte: 0.0,
            seconds_per_price: 0.0,
            request_bytes_max: 16 << 20,
            alignment: 1,
        }
    }
}

impl CostModel {
    /// The longest hole, in bytes, that costs no more than a separate request.
    pub fn hole_bytes_max(&self) -> u64 {
        let request = self.latency.as_secs_f64() + self.price_per_request * self.seconds_per_price;
        let transfer = if self.bytes_per_second > 0.0 { 1.0 / self.bytes_per_second } else { 0.0 };
        let byte = transfer + self.price_per_byte * self.seconds_per_price;
        // If bytes are free, the cast saturates.
        if request > 0.0 { (request / byte.max(0.0)) as u64 } else { 0 }
    }

    /// The model with requests so cheap that no hole of more than `bytes` is fetched: for readers that know
    /// that nobody will read the holes, and prefer to save their bytes.
    #[must_use]
    pub fn with_holes_up_to(self, bytes: u64) -> Self {
        if self.hole_bytes_max() <= bytes {
            return self;
        }
        CostModel {
            latency: Duration::from_secs(1),
            // Half a byte more, so that rounding does not lower the limit.
            bytes_per_second: bytes as f64 + 0.5,
            price_per_request: 0.0,
            price_per_byte: 0.0,
            ..self
        }
    }
}

impl Merge {
    /// The requests for `missing`, which is sorted and disjoint, in a file that ends at `end`.
    pub(crate) fn requests(&self, missing: Vec<Span>, end: u64) -> Vec<Span> {
        match self {
            Merge::Exact => join(missing, 0),
            Merge::Greedy { bytes_min } => greedy(&missing, *bytes_min, end),
            Merge::Cost(model) => by_cost(missing, model, end),
        }
    }
}

/// Merges ranges with gaps of at most `hole_bytes_max`.
fn join(spans: Vec<Span>, hole_bytes_max: u64) -> Vec<Span> {
    let mut joined: Vec<Span> = Vec::with_capacity(spans.len().min(64));
    for span in spans {
        match joined.last_mut() {
            Some(last) if span.offset.saturating_sub(last.end()) <= hole_bytes_max => {
                last.length = last.end().max(span.end()) - last.offset;
            }
            _ => joined.push(span),
        }
    }
    joined
}

fn greedy(missing: &[Span], bytes_min: u64, end: u64) -> Vec<Span> {
    let mut requests: Vec<Span> = Vec::new();
    for span in missing {
        match requests.last_mut() {
            Some(last) if span.offset <= last.end() => {
                last.length = last.end().max(span.end()) - last.offset;
            }
            _ => {
                let room = end.saturating_sub(span.offset);
                let length = span.length.max(bytes_min.min(room));
                requests.push(Span::new(span.offset, length));
            }
        }
    }
    requests
}

fn by_cost(missing: Vec<Span>, model: &CostModel, end: u64) -> Vec<Span> {
    let step = model.alignment.max(1);
    let aligned = missing.into_iter().map(|span| {
        let start = span.offset - span.offset % step;
        let stop = span.end().checked_next_multiple_of(step).unwrap_or(u64::MAX);
        Span::between(start, stop.min(end.max(span.end())))
    });
    let joined = join(aligned.collect(), model.hole_bytes_max());
    // A multiple of the alignment, but at least one.
    let most = match model.request_bytes_max {
        0 => u64::MAX,
        bytes => (bytes - bytes % step).max(step),
    };
    joined.into_iter().flat_map(|span| pieces(span, most, step)).collect()
}

/// Splits a range into the minimum number of pieces of at most `most` bytes, of similar size.
fn pieces(span: Span, most: u64, step: u64) -> impl Iterator<Item = Span> {
    let count = span.length.div_ceil(most).max(1);
    let each = span.length.div_ceil(count).checked_next_multiple_of(step).unwrap_or(most);
    let each = each.clamp(1, most.max(1));
    let mut at = span.offset;
    std::iter::from_fn(move || {
        let length = (span.end() - at).min(each);
        let piece = (length > 0).then_some(Span::new(at, length));
        at += length;
        piece
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(list: &[(u64, u64)]) -> Vec<Span> {
        list.iter().map(|&(offset, length)| Span::new(offset, length)).collect()
    }

    fn check(merge: &Merge, missing: &[(u64, u64)], end: u64, requests: &[(u64, u64)]) {
        assert_eq!(merge.requests(spans(missing), end), spans(requests));
    }

    #[test]
    fn greedy_requests_cover_ranges_in_reach() {
        let greedy = |bytes_min| Merge::Greedy { bytes_min };
        check(&greedy(0), &[(0, 2), (4, 2)], 100, &[(0, 2), (4, 2)]);
        check(&greedy(4), &[(0, 2), (4, 2)], 100, &[(0, 6)]);
        check(&greedy(4), &[(0, 2), (9, 2)], 10, &[(0, 4), (9, 2)]);
        check(&greedy(u64::MAX), &[(7, 2)], 10, &[(7, 3)]);
    }

    #[test]
    fn holes_are_fetched_where_they_cost_less_than_a_request() {
        let model = CostModel {
            latency: Duration::from_millis(10),
            bytes_per_second: 1000.0,
            request_bytes_max: 0,
            ..CostModel::default()
        };
        assert_eq!(model.hole_bytes_max(), 10);
        let merge = Merge::Cost(model.clone());
        check(&merge, &[(0, 5), (15, 5), (31, 1)], u64::MAX, &[(0, 20), (31, 1)]);
        // With a price per byte, the same hole is too expensive.
        let dear = CostModel { price_per_byte: 1.0, seconds_per_price: 0.001, ..model };
        check(&Merge::Cost(dear), &[(0, 5), (15, 5)], u64::MAX, &[(0, 5), (15, 5)]);
    }

    #[test]
    fn requests_are_aligned_and_cut_evenly() {
        let model = CostModel {
            latency: Duration::ZERO,
            request_bytes_max: 25,
            alignment: 10,
            ..CostModel::default()
        };
        let merge = Merge::Cost(model);
        check(&merge, &[(3, 2), (12, 1), (47, 2)], 48, &[(0, 20), (40, 9)]);
        check(&merge, &[(5, 50)], 1000, &[(0, 20), (20, 20), (40, 20)]);
    }

    #[test]
    fn holes_longer_than_a_limit_are_not_fetched() {
        let model = CostModel { request_bytes_max: 0, ..CostModel::default() };
        let limited = Merge::Cost(model.clone().with_holes_up_to(10));
        check(&limited, &[(0, 5), (15, 5), (31, 1)], u64::MAX, &[(0, 20), (31, 1)]);
        assert_eq!(model.clone().with_holes_up_to(0).hole_bytes_max(), 0);
        // A limit above the cost of a request changes nothing.
        assert_eq!(model.clone().with_holes_up_to(u64::MAX), model);
        for bytes in (0..100_000).step_by(7).chain([999_983]) {
            assert_eq!(model.clone().with_holes_up_to(bytes).hole_bytes_max(), bytes);
        }
    }

    #[test]
    fn free_bytes_join_everything() {
        let model = CostModel { bytes_per_second: 0.0, ..CostModel::default() };
        assert_eq!(model.hole_bytes_max(), u64::MAX);
        let nothing = CostModel { latency: Duration::ZERO, ..model };
        assert_eq!(nothing.hole_bytes_max(), 0);
    }
}
