//! Decides how much more to fetch than requested.
//!
//! A reader of metadata jumps: to the end, back to a directory, forward from entry to entry. A
//! reader of data reads sequentially. Neither announces it. For both, bytes that arrive within the
//! time of one request are cheaper than a request that turns out to be needed. That number of bytes
//! is the *reach*: latency times bandwidth. Reading ahead by the reach at most doubles the time of
//! a read, whereas not reading ahead can cost a request for each.
//!
//! | the missing bytes | are fetched with |
//! |---|---|
//! | are in the last 64 KiB of the file | all of these 64 KiB |
//! | end where held ones begin: the reader goes backwards | 32 KiB before them |
//! | amount to 1 MiB or more | nothing more |
//! | continue a fetch | four times what was fetched ahead with it, up to the reach |
//! | begin within the reach after a fetch, and are few | as much as the reach |
//! | are anywhere else | a quarter of the reach, at most 256 KiB |
//!
//! and if held bytes follow within half a reach, everything up to them.
//!
//! The rules were chosen on recorded reads of TIFF, zip and Parquet files; `benchmarks/RESULTS.md`
//! has the figures.

use std::time::Duration;

use crate::file::SparseFile;
use crate::{CostModel, Merge, Result, Span};

/// Fetched with any byte near the file's end.
pub(crate) const TAIL_BYTES: u64 = 64 << 10;
/// Fetched with the first byte of the file.
pub(crate) const HEAD_BYTES: u64 = 16 << 10;
/// Fetched before bytes that are read backwards.
const BACK_BYTES: u64 = 32 << 10;
/// A reader that requests this many bytes gets nothing more.
const BULK_BYTES: u64 = 1 << 20;
/// A fetch that begins within this distance after another one continues it.
const STEP_BYTES: u64 = 4 << 10;
/// Limits of the reach, and of a quarter of it.
const REACH_BYTES: (u64, u64) = (256 << 10, 8 << 20);
const TOUCH_BYTES: (u64, u64) = (16 << 10, 256 << 10);
/// Only transfers of at least this size measure the bandwidth.
const MEASURED_BYTES_MIN: u64 = 1 << 20;
/// Number of remembered places where reading may continue.
const PLACES_MAX: usize = 8;

/// Plans the requests of one reader from its previous reads.
#[derive(Debug, Clone)]
pub struct ReadAhead {
    model: CostModel,
    /// Whether measurements update latency and bandwidth of the model.
    learns: bool,
    observed: Observed,
    places: Vec<Place>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Observed {
    latency_seconds: Option<f64>,
    bytes_per_second: Option<f64>,
}

/// The end of a fetch, and the number of bytes fetched ahead with it.
#[derive(Debug, Clone, Copy)]
struct Place {
    end: u64,
    ahead_bytes: u64,
}

impl ReadAhead {
    /// Creates a planner with the fixed request costs of `model`.
    pub fn new(model: CostModel) -> Self {
        let observed = Observed::default();
        ReadAhead { model, learns: false, observed, places: Vec::new() }
    }

    /// Creates a planner that learns latency and bandwidth from [`ReadAhead::observe`]; it starts
    /// with the values of a fast network (20 ms, 400 MB/s).
    pub fn learning() -> Self {
        let model = CostModel { bytes_per_second: 400e6, ..CostModel::default() };
        ReadAhead { learns: true, ..ReadAhead::new(model) }
    }

    /// The current estimate of request costs.
    pub fn model(&self) -> &CostModel {
        &self.model
    }

    /// The number of bytes fetched along with any byte near the file's end.
    pub const TAIL_BYTES: u64 = TAIL_BYTES;

    /// The first request for a file whose length is still unknown: its head, or `None` for its last
    /// [`ReadAhead::TAIL_BYTES`], if the extension of its name suggests a directory there.
    pub fn first(name: &str) -> Option<Span> {
        const DIRECTORY_AT_END: [&str; 17] = [
            ".zip", ".parquet", ".jar", ".apk", ".whl", ".docx", ".xlsx", ".pptx", ".odt", ".ods",
            ".epub", ".orc", ".feather", ".arrow", ".pdf", ".kmz", ".npz",
        ];
        let name = name.to_ascii_lowercase();
        let at_end = DIRECTORY_AT_END.iter().any(|ending| name.ends_with(ending));
        (!at_end).then_some(Span::new(0, HEAD_BYTES))
    }

    /// Records the measurements of a request: its bytes, the time to the first byte, and to the
    /// last.
    pub fn observe(&mut self, bytes: u64, first_byte: Duration, all: Duration) {
        if !self.learns || bytes == 0 {
            return;
        }
        let seen = first_byte.as_secs_f64();
        let latency = self.observed.latency_seconds.map_or(seen, |known| 0.7 * known + 0.3 * seen);
        self.observed.latency_seconds = Some(latency);
        self.model.latency = Duration::from_secs_f64(latency.min(60.0));
        let transfer = all.saturating_sub(first_byte).as_secs_f64();
        if bytes >= MEASURED_BYTES_MIN && transfer > 0.0 {
            // The best rate seen, decaying slowly: other transfers may share the line.
            let seen = bytes as f64 / transfer;
            let known = self.observed.bytes_per_second.unwrap_or(0.0);
            self.observed.bytes_per_second = Some(seen.max(0.9 * known));
            self.model.bytes_per_second = seen.max(0.9 * known);
        }
    }

    /// The number of bytes that arrive within the time of one request.
    pub fn reach_bytes(&self) -> u64 {
        self.model.hole_bytes_max().clamp(REACH_BYTES.0, REACH_BYTES.1)
    }

    /// The requests to make before `wanted` can be read; empty if all of it is held.
    ///
    /// # Errors
    /// As [`SparseFile::need`].
    pub fn plan(&mut self, file: &SparseFile, wanted: Span) -> Result<Vec<Span>> {
        let mut missing: Option<Span> = None;
        file.for_each_need(wanted, |span| {
            let start = missing.map_or(span.offset, |first| first.offset);
            missing = Some(Span::between(start, span.end()));
        })?;
        let Some(missing) = missing else { return Ok(Vec::new()) };
        let mut start = missing.offset;
        let mut end = missing.end().max(start.saturating_add(self.ahead(missing)));
        let is_few = missing.length < TOUCH_BYTES.1;
        let next = file.next_held(end).filter(|next| next - end <= self.reach_bytes() / 2);
        if let (Some(next), true) = (next, is_few) {
            end = next;
        }
        if let Some(length) = file.length() {
            end = end.min(length);
            if length.saturating_sub(missing.end()) < TAIL_BYTES {
                start = start.min(length.saturating_sub(TAIL_BYTES));
            }
        }
        let goes_on = start > 0 && file.has(start - 1, 1);
        if file.has(missing.end(), 1) && !goes_on {
            start = start.saturating_sub(BACK_BYTES);
            end = missing.end();
        }
        self.remember(missing, end);
        file.need_many(&[Span::between(start, end)], &Merge::Cost(self.model.clone()))
    }

    /// The number of bytes to fetch from the first missing one on.
    fn ahead(&self, missing: Span) -> u64 {
        if missing.length >= BULK_BYTES {
            return missing.length;
        }
        let reach = self.reach_bytes();
        let touch = (reach / 4).clamp(TOUCH_BYTES.0, TOUCH_BYTES.1);
        match self.place_before(missing.offset) {
            Some(place) if missing.offset - place.end.min(missing.offset) <= STEP_BYTES => {
                let with_ahead = missing.length.saturating_add(4 * place.ahead_bytes);
                with_ahead.clamp(touch, reach).max(missing.length)
            }
            _ if missing.length >= touch => missing.length,
            Some(_) => reach,
            None => touch,
        }
    }

    /// The closest place before an offset from which reading may have continued.
    fn place_before(&self, offset: u64) -> Option<Place> {
        let reach = self.reach_bytes();
        let near = |place: &&Place| place.end <= offset && offset - place.end <= reach;
        self.places.iter().filter(near).max_by_key(|place| place.end).copied()
    }

    fn remember(&mut self, missing: Span, end: u64) {
        let before = self.place_before(missing.offset);
        if let Some(before) = before {
            self.places.retain(|place| place.end != before.end);
        }
        if self.places.len() == PLACES_MAX {
            self.places.remove(0);
        }
        self.places.push(Place { end, ahead_bytes: end - missing.end().min(end) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file read through [`ReadAhead`], and the requests made.
    struct Reading {
        file: SparseFile,
        ahead: ReadAhead,
        requests: Vec<Span>,
    }

    impl Reading {
        fn of(name: &str, length: u64) -> Self {
            let mut file = SparseFile::builder(name).length(length).build();
            let tail = Span::between(length.saturating_sub(TAIL_BYTES), length);
            let first = ReadAhead::first(name).unwrap_or(tail);
            file.write(first.offset, &vec![0; first.length.min(length) as usize]).unwrap();
            // 20 ms, 400 MB/s: a reach of 8 MB.
            Reading { file, ahead: ReadAhead::learning(), requests: vec![first] }
        }

        fn read(&mut self, offset: u64, length: u64) -> &mut Self {
            for request in self.ahead.plan(&self.file, Span::new(offset, length)).unwrap() {
                self.file.write(request.offset, &vec![0; request.length as usize]).unwrap();
                self.requests.push(request);
            }
            assert!(self.file.has(offset, length));
            self
        }

        fn bytes(&self) -> u64 {
            self.file.num_bytes()
        }
    }

    #[test]
    fn a_directory_at_the_end_costs_one_request_where_it_is_short() {
        let mut zip = Reading::of("photos.ZIP", 30_035_622);
        zip.read(30_035_600, 22).read(30_035_580, 20).read(30_021_200, 14_400);
        assert_eq!((zip.requests.len(), zip.bytes()), (1, TAIL_BYTES));
        // Three members of 150 kB, each with a header of 30 bytes and a name.
        for at in [450_318, 15_010_600, 29_871_094] {
            zip.read(at, 30).read(at + 30, 26).read(at + 56, 150_050);
        }
        assert_eq!(zip.requests.len(), 4);
        assert!(zip.bytes() < 1 << 20);
    }

    #[test]
    fn a_directory_longer_than_the_tail_costs_two_and_little_more_than_itself() {
        let mut zip = Reading::of("many.zip", 30_798_022);
        zip.read(30_798_000, 22).read(30_797_980, 20).read(30_366_000, 432_000);
        assert_eq!((zip.requests.len(), zip.bytes()), (2, 432_022 + BACK_BYTES));
        // The last member ends just before the directory, so it was fetched along with it.
        zip.read(30_360_939, 30).read(30_360_969, 26).read(30_360_995, 5_005);
        assert_eq!(zip.requests.len(), 2);
    }

    #[test]
    fn pages_that_follow_close_are_fetched_many_at_once() {
        // The directories of 60 pages of 1 MiB, one before each page.
        let mut tiff = Reading::of("pages.tif", 62_926_096);
        for page in 0..60u64 {
            let at = 10 + page * 1_048_770;
            tiff.read(at, 2).read(at + 2, 156).read(at + 160, 8);
        }
        assert!(tiff.requests.len() <= 13, "{}", tiff.requests.len());
    }

    #[test]
    fn pages_that_lie_further_apart_than_the_reach_are_fetched_alone() {
        let mut tiff = Reading::of("big_pages.tif", 120_003_472);
        for page in 0..12u64 {
            tiff.read(16 + page * 10_000_290, 8).read(24 + page * 10_000_290, 260);
        }
        assert_eq!(tiff.requests.len(), 12);
        assert!(tiff.bytes() < 3 << 20);
    }

    #[test]
    fn columns_of_known_length_are_fetched_exactly() {
        let mut parquet = Reading::of("table.parquet", 108_554_969);
        parquet.read(108_489_433, 65_536).read(33_564_967, 805_801).read(36_179_727, 1_003_182);
        assert_eq!((parquet.requests.len(), parquet.bytes()), (3, 65_536 + 805_801 + 1_003_182));
    }

    #[test]
    fn reading_on_and_on_fetches_more_and_more() {
        let mut file = Reading::of("log", 1 << 30);
        for at in (0..64 << 20).step_by(8 << 10) {
            file.read(at, 8 << 10);
        }
        let lengths: Vec<u64> = file.requests.iter().map(|r| r.length >> 10).collect();
        assert_eq!(lengths[..5], [16, 256, 1000, 3976, 7812], "{lengths:?}");
        assert!(file.requests.len() < 15);
        // A bulk reader gets only the bytes it requested.
        let before = file.bytes();
        file.read(500 << 20, 4 << 20).read(504 << 20, 4 << 20);
        assert_eq!(file.bytes() - before, 8 << 20);
    }

    #[test]
    fn a_slow_line_shortens_the_reach_and_a_fast_one_does_not_pass_its_limit() {
        let ms = Duration::from_millis;
        let mut ahead = ReadAhead::learning();
        ahead.observe(2 << 20, ms(20), ms(2020));
        assert_eq!(ahead.reach_bytes(), REACH_BYTES.0);
        ahead.observe(2 << 20, ms(20), ms(21));
        assert_eq!(ahead.reach_bytes(), REACH_BYTES.1);
        // A given model does not learn.
        let mut fixed = ReadAhead::new(CostModel::default());
        fixed.observe(2 << 20, ms(20), ms(2020));
        assert_eq!(fixed.model(), &CostModel::default());
    }

    #[test]
    fn nothing_is_planned_for_held_bytes_or_beyond_the_end() {
        let mut file = Reading::of("short", 1000);
        assert_eq!(file.requests, [Span::new(0, HEAD_BYTES)]);
        assert_eq!(file.ahead.plan(&file.file, Span::new(10, 5000)).unwrap(), []);
        assert!(file.ahead.plan(&file.file, Span::new(u64::MAX, 2)).is_err());
    }
}
