//! Compound files in two fragments, and more.

use std::ops::Range;

use super::table::Header;
use super::{Compound, checked};
use crate::format::Broken;
use crate::mend::{Gap, Yard, likely_gap};
use crate::view::{Extent, View};

/// Blocks before the one that broke at which the file may have been left.
const BACK_BLOCKS_MAX: u64 = 512;

/// The fragments of the file that broke.
pub(super) fn mend(view: &mut View<'_>, broken: &Broken, yard: &Yard<'_>) -> Option<Vec<Extent>> {
    let header = Header::read(view)?;
    let mut extents = view.extents().to_vec();
    let (mut from, mut broke_at) = (yard.block_bytes, broken.at);
    for _ in 1..yard.effort.fragments_max {
        match step(view, yard, &header, &extents, from, broke_at)? {
            Found::Whole(found) => return Some(found),
            Found::Further(found, left_at, at) => (extents, from, broke_at) = (found, left_at, at),
        }
    }
    None
}

enum Found {
    Whole(Vec<Extent>),
    /// It breaks later now: extents, where it was left, where it breaks.
    Further(Vec<Extent>, u64, u64),
}

/// Looks for one more fragment.
fn step(
    view: &mut View<'_>,
    yard: &Yard<'_>,
    header: &Header,
    extents: &[Extent],
    from: u64,
    broke_at: u64,
) -> Option<Found> {
    let block = yard.block_bytes;
    let last = broke_at / block * block;
    let first = from.max(last.saturating_sub(BACK_BLOCKS_MAX * block));
    let mut fuel = yard.effort.fuel_bytes;
    let mut furthest: Option<(u64, u64, u64)> = None;
    let offset = Yard::left_offset(extents, first)?;
    'gaps: for place in yard.continuations(offset) {
        let gap = place - offset;
        view.look_at(extents, fuel);
        let (low, high) = range_of(view, header, gap, block, first..last);
        fuel = view.fuel_bytes();
        let mut whole: Vec<(u64, Compound)> = Vec::new();
        let mut left_at = high;
        while left_at >= low {
            if fuel == 0 || yard.is_stopped() {
                break 'gaps;
            }
            let Some(at) = Yard::left_offset(extents, left_at) else { break };
            view.look_at(&yard.continued(extents, left_at, at + gap), fuel);
            match checked(view, header) {
                Ok(compound) => whole.push((left_at, compound)),
                Err((_, trouble)) => {
                    let is_further = furthest.is_none_or(|(most, ..)| trouble.at > most);
                    if trouble.at > left_at.max(broke_at) + block && is_further {
                        furthest = Some((trouble.at, left_at, gap));
                    }
                }
            }
            fuel = view.fuel_bytes().min(fuel.saturating_sub(256));
            left_at -= block;
        }
        whole.reverse();
        if let Some(left_at) = choose(view, yard, extents, gap, &whole) {
            let at = Yard::left_offset(extents, left_at)?;
            let found = yard.continued(extents, left_at, at + gap);
            let length = whole.iter().find(|one| one.0 == left_at)?.1.length;
            return Some(Found::Whole(crate::carver::cut(&found, length)));
        }
        if !whole.is_empty() {
            return None;
        }
    }
    let (broke_at, left_at, gap) = furthest?;
    let at = Yard::left_offset(extents, left_at)?;
    Some(Found::Further(yard.continued(extents, left_at, at + gap), left_at + block, broke_at))
}

/// Where the file may have been left if the gap is `gap` bytes, by what must stand in it.
fn range_of(
    view: &mut View<'_>,
    header: &Header,
    gap: u64,
    block: u64,
    range: Range<u64>,
) -> (u64, u64) {
    let (mut low, mut high) = (range.start, range.end);
    for (index, (place, mark)) in header.marks().into_iter().enumerate() {
        match (view.is_at(place, &mark), view.is_at(place + gap, &mark)) {
            (true, false) => low = low.max((place + 1).div_ceil(block) * block),
            (false, true) => high = high.min(place),
            // Of a third fragment.
            (false, false) if index == 0 => return (1, 0),
            // Both by chance, or neither as it is in a third fragment.
            (true, true) | (false, false) => {}
        }
    }
    (low, high / block * block)
}

/// The one place that is right of those at which all that can be checked is right.
fn choose(
    view: &mut View<'_>,
    yard: &Yard<'_>,
    extents: &[Extent],
    gap: u64,
    whole: &[(u64, Compound)],
) -> Option<u64> {
    let ((first, _), (last, compound)) = (whole.first()?, whole.last()?);
    if first == last {
        return Some(*first);
    }
    view.look_at(extents, yard.effort.fuel_bytes);
    let known = 512..compound.length + gap;
    let gap = Gap { first: *first, last: *last, bytes: gap };
    let place = likely_gap(view, gap, known, yard.block_bytes)?;
    whole.iter().any(|(left_at, _)| *left_at == place).then_some(place)
}
