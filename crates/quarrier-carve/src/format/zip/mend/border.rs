//! Finds the place in a member at which one fragment ends and the next begins, by the member's
//! checksum.

use super::super::directory::Entry;
use super::super::local::{DEFLATED, ENCRYPTED, HEADER_BYTES, STORED};
use super::plan::{between, borders};
use super::{Hop, Sight, stored};
use crate::crc32::Crc32;
use crate::inflate::{Copyable, InflateStep};

/// Bytes of the first read from a place that may be wrong; later reads grow.
const FIRST_BYTES: u64 = 512;
const MOST_BYTES: u64 = 64 << 10;

/// The data of a member.
#[derive(Debug, Clone, Copy)]
pub(super) struct Data {
    /// The end of the name in the local header.
    named_at: u64,
    pub(super) at: u64,
    pub(super) end: u64,
    pub(super) crc: u32,
    is_deflated: bool,
}

impl Data {
    /// Makes the data of the member of `entry`, which begin at byte `at` of the file, if they can
    /// be read.
    pub(super) fn of(entry: &Entry, at: u64) -> Option<Data> {
        let is_deflated = entry.method == DEFLATED;
        let is_readable = is_deflated || entry.method == STORED;
        let end = at.checked_add(entry.packed)?;
        let named_at = entry.offset + HEADER_BYTES + u64::from(entry.name_bytes);
        let is_plain = is_readable && entry.flags & ENCRYPTED == 0;
        is_plain.then_some(Data { named_at, at, end, crc: entry.crc, is_deflated })
    }
}

/// The state of reading a member.
#[derive(Clone)]
struct DataReader {
    inflater: Copyable,
    crc: Crc32,
    at: u64,
}

/// The result of reading a part of a member.
enum ReadOutcome {
    /// The requested byte was reached.
    Reached,
    /// The member ended with the right checksum.
    Whole,
    /// Some bytes do not belong to the member.
    Foreign,
}

impl DataReader {
    fn start(data: &Data) -> Self {
        DataReader { inflater: Copyable::new(), crc: Crc32::new(), at: data.at }
    }

    fn copy_from(&mut self, other: &DataReader) {
        self.inflater.copy_from(&other.inflater);
        self.crc.clone_from(&other.crc);
        self.at = other.at;
    }

    /// Reads up to byte `to` of the file, in the fragment with this shift.
    fn on(&mut self, sight: &mut Sight<'_, '_>, data: &Data, shift: i64, to: u64) -> ReadOutcome {
        let mut stride = FIRST_BYTES;
        while self.at < to {
            let most = stride.min(to - self.at) as usize;
            let Some(place) = sight.place(self.at, shift) else { return ReadOutcome::Foreign };
            let bytes = sight.raw.run(place, most);
            if bytes.is_empty() {
                return ReadOutcome::Foreign;
            }
            let crc = &mut self.crc;
            match self.inflater.more(bytes, &mut |output| crc.update(output)) {
                InflateStep::On => self.at += bytes.len() as u64,
                InflateStep::Wrong(_) => return ReadOutcome::Foreign,
                InflateStep::Ended(used) => {
                    self.at += used as u64;
                    let is_whole = self.at == data.end && self.crc.value() == data.crc;
                    return if is_whole { ReadOutcome::Whole } else { ReadOutcome::Foreign };
                }
            }
            stride = (stride * 2).min(MOST_BYTES);
        }
        if self.at == data.end { ReadOutcome::Foreign } else { ReadOutcome::Reached }
    }
}

/// Whether all of the data are valid in the fragment with this shift.
pub(super) fn is_right(sight: &mut Sight<'_, '_>, data: &Data, shift: i64) -> bool {
    if data.is_deflated {
        let outcome = DataReader::start(data).on(sight, data, shift, data.end);
        return matches!(outcome, ReadOutcome::Whole);
    }
    sight.crc(data.at..data.end, shift) == Some(data.crc)
}

/// Finds the hops, at most `hops_max`, by which the data change from one shift to another.
pub(super) fn find(
    sight: &mut Sight<'_, '_>,
    data: &Data,
    from: i64,
    to: i64,
    hops_max: usize,
) -> Option<Vec<Hop>> {
    // All borders between the name and the data are equally good.
    if let Some(at) = borders(data.named_at, data.at, sight.block_bytes).first()
        && is_right(sight, data, to)
    {
        return Some(vec![Hop { at: *at, shift: to }]);
    }
    if !data.is_deflated {
        return stored::find(sight, data, (from, to), hops_max);
    }
    let mut spare = DataReader::start(data);
    let start = DataReader::start(data);
    one_hop(sight, data, &start, &mut spare, (from, to)).or_else(|| {
        let two = hops_max > 1;
        two.then(|| two_hops(sight, data, &start, &mut spare, (from, to)))?
    })
}

/// Finds one hop after the place of `start`.
fn one_hop(
    sight: &mut Sight<'_, '_>,
    data: &Data,
    start: &DataReader,
    spare: &mut DataReader,
    (from, to): (i64, i64),
) -> Option<Vec<Hop>> {
    let mut going = start.clone();
    for at in borders(going.at + 1, data.end, sight.block_bytes) {
        if let ReadOutcome::Foreign = going.on(sight, data, from, at) {
            return None;
        }
        spare.copy_from(&going);
        if let ReadOutcome::Whole = spare.on(sight, data, to, data.end) {
            return Some(vec![Hop { at, shift: to }]);
        }
        if sight.is_over() {
            return None;
        }
    }
    None
}

/// Finds two hops, with a fragment of only these data between them.
fn two_hops(
    sight: &mut Sight<'_, '_>,
    data: &Data,
    start: &DataReader,
    spare: &mut DataReader,
    (from, to): (i64, i64),
) -> Option<Vec<Hop>> {
    let mut going = start.clone();
    let mut middle = start.clone();
    for at in borders(going.at + 1, data.end, sight.block_bytes) {
        if let ReadOutcome::Foreign = going.on(sight, data, from, at) {
            return None;
        }
        for shift in between(from, to, sight.block_bytes) {
            middle.copy_from(&going);
            // A whole block must be valid before the search for another border.
            let next = (at + sight.block_bytes).min(data.end);
            if let ReadOutcome::Reached = middle.on(sight, data, shift, next) {
                middle.copy_from(&going);
                if let Some(mut hops) = one_hop(sight, data, &middle, spare, (shift, to)) {
                    hops.insert(0, Hop { at, shift });
                    return Some(hops);
                }
            }
            if sight.is_over() {
                return None;
            }
        }
    }
    None
}
