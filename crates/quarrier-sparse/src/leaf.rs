//! A leaf: runs of held bytes that are close to each other in the file, stored back to back.
//!
//! ```text
//! starts   0      9   12           where a run begins, from the leaf's key
//! places   0      3   5            where its bytes begin in `data`
//! data     a b c  d e f g h i      runs never touch: bytes 3 to 8 and 11 are missing
//! ```
//!
//! A run of one byte costs 7 bytes, without a separate allocation. The unit tests of this crate use
//! tiny leaves, so that they split and join all the time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::bytes::Bytes;

/// Maximum size of a leaf in bytes: an insertion moves, and an eviction drops, at most this much.
pub(crate) const BYTES_MAX: usize = if cfg!(test) { 64 } else { 1 << 16 };
/// Maximum number of runs in a leaf.
pub(crate) const RUNS_MAX: usize = if cfg!(test) { 8 } else { 512 };
/// A leaf with more runs records only its own last use, not that of each run.
const STAMPED_RUNS_MAX: usize = if cfg!(test) { 4 } else { 128 };

/// A leaf; see the module.
#[derive(Debug)]
pub(crate) struct Leaf {
    starts: Vec<u32>,
    places: Vec<u16>,
    data: Bytes,
    /// The last use of each run; empty if there are too many.
    stamps: Vec<AtomicU64>,
    /// The last use of the leaf.
    stamp: AtomicU64,
}

impl Leaf {
    /// Makes a leaf of one run at its key.
    pub(crate) fn new(data: &[u8], wipe: bool, stamp: u64) -> Self {
        let mut leaf = Leaf {
            starts: vec![0],
            places: vec![0],
            data: Bytes::new(wipe),
            stamps: vec![AtomicU64::new(stamp)],
            stamp: AtomicU64::new(stamp),
        };
        leaf.data.append(data, BYTES_MAX);
        leaf
    }

    pub(crate) fn runs(&self) -> usize {
        self.starts.len()
    }

    pub(crate) fn len_bytes(&self) -> usize {
        self.data.len()
    }

    /// Returns the start of run `run`, relative to the key.
    pub(crate) fn start(&self, run: usize) -> u64 {
        u64::from(self.starts[run])
    }

    /// Returns the end of run `run`, relative to the key.
    pub(crate) fn end(&self, run: usize) -> u64 {
        self.start(run) + (self.place_end(run) - self.place(run)) as u64
    }

    /// Returns the end of the last run, relative to the key.
    pub(crate) fn last_end(&self) -> u64 {
        self.end(self.runs() - 1)
    }

    pub(crate) fn run_bytes(&self, run: usize) -> &[u8] {
        &self.data.as_slice()[self.place(run)..self.place_end(run)]
    }

    pub(crate) fn run_bytes_mut(&mut self, run: usize) -> &mut [u8] {
        let (from, to) = (self.place(run), self.place_end(run));
        &mut self.data.as_mut_slice()[from..to]
    }

    /// Counts the runs that begin at or before `at`.
    #[inline]
    pub(crate) fn runs_upto(&self, at: u64) -> usize {
        if let [_] = self.starts[..] {
            return 1;
        }
        self.starts.partition_point(|&start| u64::from(start) <= at)
    }

    /// Returns the last run that begins at or before `at`: number `guess`, the next, or another.
    #[inline]
    pub(crate) fn run_upto(&self, at: u64, guess: usize) -> usize {
        for guess in [guess, guess + 1] {
            let begins = self.starts.get(guess).is_some_and(|&start| u64::from(start) <= at);
            if begins && self.starts.get(guess + 1).is_none_or(|&start| at < u64::from(start)) {
                return guess;
            }
        }
        self.runs_upto(at) - 1
    }

    /// Calls `each` with start and end, relative to the key, of the runs from number `first` on, until one
    /// begins at or after `to`.
    #[inline]
    pub(crate) fn for_each_run(&self, first: usize, to: u64, mut each: impl FnMut(u64, u64)) {
        let places_end = self.places[first + 1..].iter().map(|&place| u32::from(place));
        let ends = places_end.chain(std::iter::once(self.data.len() as u32));
        let mut place = u32::from(self.places[first]);
        for (&start, end) in self.starts[first..].iter().zip(ends) {
            let start = u64::from(start);
            if start >= to {
                return;
            }
            each(start, start + u64::from(end - place));
            place = end;
        }
    }

    /// Writes the gaps between runs, one fewer than the number of runs, to the start of `offsets`
    /// (counted from the file's start, given the leaf's key) and `lengths`.
    pub(crate) fn gaps_into(&self, key: u64, offsets: &mut [u64], lengths: &mut [u64]) {
        let starts = self.starts.iter().zip(&self.starts[1..]);
        let places = self.places.iter().zip(&self.places[1..]);
        let room = offsets.iter_mut().zip(lengths);
        // Branch-free, so that the compiler vectorises it.
        for (((offset, length), (&start, &next)), (&place, &next_place)) in
            room.zip(starts).zip(places)
        {
            let end = start + u32::from(next_place - place);
            *offset = key + u64::from(end);
            *length = u64::from(next - end);
        }
    }

    fn place(&self, run: usize) -> usize {
        usize::from(self.places[run])
    }

    fn place_end(&self, run: usize) -> usize {
        self.places.get(run + 1).map_or(self.data.len(), |&place| usize::from(place))
    }

    /// Returns the bytes of memory taken.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Leaf>()
            + self.starts.capacity() * 4
            + self.places.capacity() * 2
            + self.stamps.capacity() * 8
            + self.data.capacity()
    }

    /// Returns whether `bytes` bytes fit as a separate run that begins at `at`.
    pub(crate) fn has_room(&self, at: u64, bytes: usize) -> bool {
        self.runs() < RUNS_MAX && u32::try_from(at).is_ok() && self.has_room_to_join(bytes)
    }

    /// Returns whether `bytes` more bytes fit into a run.
    pub(crate) fn has_room_to_join(&self, bytes: usize) -> bool {
        self.data.len() + bytes <= BYTES_MAX
    }

    /// Adds bytes directly after the last run; they must fit.
    pub(crate) fn append(&mut self, data: &[u8], stamp: u64) {
        self.data.append(data, BYTES_MAX);
        self.use_run(self.runs() - 1, stamp);
    }

    /// Inserts bytes at `at`, before run `run`, and joins them with adjacent runs. They must fit.
    pub(crate) fn insert(&mut self, run: usize, at: u64, data: &[u8], stamp: u64) {
        let place = if run < self.runs() { self.place(run) } else { self.data.len() };
        let joins_before = run > 0 && self.end(run - 1) == at;
        let joins_after = run < self.runs() && self.start(run) == at + data.len() as u64;
        self.data.insert(place, data, BYTES_MAX);
        let added = data.len() as u16;
        if run < self.runs() {
            self.places[run..].iter_mut().for_each(|place| *place += added);
        }
        match (joins_before, joins_after) {
            (true, true) => {
                self.starts.remove(run);
                self.places.remove(run);
                if !self.stamps.is_empty() {
                    self.stamps.remove(run);
                }
                self.use_run(run - 1, stamp);
            }
            (true, false) => self.use_run(run - 1, stamp),
            (false, true) => {
                self.starts[run] = at as u32;
                self.places[run] = place as u16;
                self.use_run(run, stamp);
            }
            (false, false) => {
                self.starts.insert(run, at as u32);
                self.places.insert(run, place as u16);
                if !self.stamps.is_empty() {
                    self.stamps.insert(run, AtomicU64::new(stamp));
                }
                self.stamp = AtomicU64::new(stamp);
                self.stamps_follow_runs();
            }
        }
    }

    /// Returns whether all runs could be addressed from a key that is `by` bytes earlier.
    pub(crate) fn can_shift(&self, by: u64) -> bool {
        self.start(self.runs() - 1) + by <= u64::from(u32::MAX)
    }

    /// Moves the key `by` bytes towards the start of the file.
    pub(crate) fn shift(&mut self, by: u64) {
        self.starts.iter_mut().for_each(|start| *start += by as u32);
    }

    /// Moves the key to the first run, and returns the distance.
    pub(crate) fn settle_key(&mut self) -> u64 {
        let by = self.starts[0];
        self.starts.iter_mut().for_each(|start| *start -= by);
        u64::from(by)
    }

    /// Removes the held bytes of `from..to`, and returns their number. The leaf may become empty.
    pub(crate) fn remove(&mut self, from: u64, to: u64) -> usize {
        let mut first = self.runs_upto(from);
        if first > 0 && self.end(first - 1) > from {
            first -= 1;
        }
        let mut last = first;
        while last < self.runs() && self.start(last) < to {
            last += 1;
        }
        if first == last {
            return 0;
        }
        let place = self.place(first);
        let kept_before = from.saturating_sub(self.start(first)) as usize;
        let kept_after = self.end(last - 1).saturating_sub(to) as usize;
        let place_end = self.place_end(last - 1);
        let removed = (place_end - kept_after) - (place + kept_before);
        let stamps: Vec<u64> = self.stamps.iter().map(|stamp| stamp.load(Relaxed)).collect();
        // The remains of the outermost runs: the part before `from`, and the part after `to`.
        let before = (kept_before > 0).then(|| (self.starts[first], place as u16, first));
        let after_place = (place + kept_before) as u16;
        let after = (kept_after > 0).then_some((to as u32, after_place, last - 1));
        let left = before.into_iter().chain(after);
        self.starts.splice(first..last, left.clone().map(|(start, _, _)| start));
        self.places.splice(first..last, left.clone().map(|(_, place, _)| place));
        if !stamps.is_empty() {
            let stamps = left.clone().map(|(_, _, run)| AtomicU64::new(stamps[run]));
            self.stamps.splice(first..last, stamps);
        }
        let end = first + left.count();
        self.places[end..].iter_mut().for_each(|place| *place -= removed as u16);
        self.data.remove(place + kept_before, place_end - kept_after);
        self.data.shrink();
        self.stamps_follow_runs();
        removed
    }

    /// Splits the leaf into two halves of about the same size. The later runs move to a new leaf;
    /// its key is returned, relative to this leaf's. The leaf must have at least two runs.
    pub(crate) fn split(&mut self) -> (u64, Leaf) {
        let half = self.data.len() / 2;
        let by_bytes = self.places.partition_point(|&place| usize::from(place) < half);
        let is_crowded = self.runs() >= RUNS_MAX;
        let at = if is_crowded { self.runs() / 2 } else { by_bytes.clamp(1, self.runs() - 1) };
        let key = self.start(at);
        let place = self.places[at];
        let stamps = if self.stamps.is_empty() { Vec::new() } else { self.stamps.split_off(at) };
        let tail = Leaf {
            starts: self.starts.drain(at..).map(|start| start - key as u32).collect(),
            places: self.places.drain(at..).map(|p| p - place).collect(),
            data: self.data.split_off(usize::from(place)),
            stamps,
            stamp: AtomicU64::new(self.stamp.load(Relaxed)),
        };
        self.starts.shrink_to_fit();
        self.places.shrink_to_fit();
        let mut tail = tail;
        tail.stamps_follow_runs();
        self.stamps_follow_runs();
        (key, tail)
    }

    /// Takes over the runs of the next leaf, whose key lies `by` bytes after this one's.
    pub(crate) fn absorb(&mut self, by: u64, other: Leaf) {
        let place = self.data.len() as u16;
        let joins = self.last_end() == by;
        let stamps: Vec<u64> = (0..self.runs())
            .map(|run| self.last_used(run))
            .chain((0..other.runs()).map(|run| other.last_used(run)))
            .collect();
        self.stamp = AtomicU64::new(self.stamp.load(Relaxed).max(other.stamp.load(Relaxed)));
        self.starts.extend(other.starts.iter().map(|start| start + by as u32));
        self.places.extend(other.places.iter().map(|p| p + place));
        self.data.append(other.data.as_slice(), BYTES_MAX);
        self.stamps = stamps.into_iter().map(AtomicU64::new).collect();
        if joins {
            let seam = self.runs() - other.runs();
            self.starts.remove(seam);
            self.places.remove(seam);
            let younger = self.stamps.remove(seam).into_inner();
            let stamp = self.stamps[seam - 1].get_mut();
            *stamp = (*stamp).max(younger);
        }
        self.stamps_follow_runs();
    }

    /// Returns the last use of run `run`, as precisely as the leaf records it.
    pub(crate) fn last_used(&self, run: usize) -> u64 {
        self.stamps.get(run).unwrap_or(&self.stamp).load(Relaxed)
    }

    /// Returns whether the leaf records the last use of each run.
    pub(crate) fn is_stamped(&self) -> bool {
        !self.stamps.is_empty()
    }

    /// Records a use of run `run`.
    pub(crate) fn use_run(&self, run: usize, stamp: u64) {
        self.stamp.store(stamp, Relaxed);
        if let Some(of_run) = self.stamps.get(run) {
            of_run.store(stamp, Relaxed);
        }
    }

    /// Adds `by` to the times of all uses.
    pub(crate) fn shift_uses(&mut self, by: u64) {
        for stamp in self.stamps.iter_mut().chain([&mut self.stamp]) {
            *stamp.get_mut() += by;
        }
    }

    /// Drops the stamps of runs if there are too many runs, and restarts them once there are few.
    fn stamps_follow_runs(&mut self) {
        if self.runs() > STAMPED_RUNS_MAX {
            self.stamps = Vec::new();
        } else if self.stamps.len() != self.runs() {
            let stamp = self.stamp.load(Relaxed);
            self.stamps = (0..self.runs()).map(|_| AtomicU64::new(stamp)).collect();
        }
    }
}
