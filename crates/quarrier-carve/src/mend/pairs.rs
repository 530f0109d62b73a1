//! Mends fragmented files whose validator must read the whole file to decide. It tries every pair
//! of a place where the file may be interrupted and one where it may continue, unless known facts
//! exclude the pair.

use std::ops::Range;

use super::{Gap, MendContext, likely_gap};
use crate::view::{Extent, View};

/// Maximum number of blocks between the interruption and the block that broke.
const BACK_BLOCKS_MAX: u64 = 512;
/// The minimum cost of a pair, in bytes of fuel.
const PAIR_BYTES: u64 = 256;

/// A format's check of whole files.
pub(crate) trait Whole {
    /// Returns the length of the file in `view`, or the byte at which it breaks.
    fn check(&self, view: &mut View<'_>) -> Result<u64, u64>;

    /// Returns the part of `places` at which the file may be interrupted by a gap of `gap` bytes;
    /// `view` shows the file with the gap in it. For formats that can narrow the range quickly.
    fn left_within(&self, view: &mut View<'_>, gap: u64, places: Range<u64>) -> Range<u64>;
}

/// A file up to its last known fragment: its extents, the first place at which it may be
/// interrupted, and the byte at which it breaks.
struct Lead {
    extents: Vec<Extent>,
    from: u64,
    broke_at: u64,
}

/// The result of the search for one more fragment.
enum PairOutcome {
    Whole(Vec<Extent>),
    Further(Lead),
}

/// Finds the extents of the file that broke at `broke_at`.
pub(crate) fn pairs(
    view: &mut View<'_>,
    context: &MendContext<'_>,
    broke_at: u64,
    whole: &dyn Whole,
) -> Option<Vec<Extent>> {
    let extents = view.extents().to_vec();
    let mut lead = Lead { extents, from: context.block_bytes, broke_at };
    for _ in 1..context.effort.fragments_max {
        match widen(view, context, &lead, whole)? {
            PairOutcome::Whole(found) => return Some(found),
            PairOutcome::Further(further) => lead = further,
        }
    }
    None
}

/// Looks for one more fragment.
fn widen(
    view: &mut View<'_>,
    context: &MendContext<'_>,
    lead: &Lead,
    whole: &dyn Whole,
) -> Option<PairOutcome> {
    let block = context.block_bytes;
    let last = lead.broke_at / block * block;
    let first = lead.from.max(last.saturating_sub(BACK_BLOCKS_MAX * block));
    let mut fuel = context.effort.fuel_bytes;
    let mut further: Option<(u64, u64, u64)> = None;
    let offset = MendContext::left_offset(&lead.extents, first)?;
    'gaps: for place in context.continuations(offset) {
        if fuel == 0 || context.is_stopped() {
            break;
        }
        let gap = place - offset;
        view.look_at(&lead.extents, fuel);
        let range = whole.left_within(view, gap, first..last + 1);
        fuel = view.fuel_bytes();
        let mut right: Vec<(u64, u64)> = Vec::new();
        let low = range.start.div_ceil(block) * block;
        let mut left_at = range.end.saturating_sub(1) / block * block;
        while left_at >= low.max(block) && range.end > range.start {
            if fuel == 0 || context.is_stopped() {
                break 'gaps;
            }
            let Some(at) = MendContext::left_offset(&lead.extents, left_at) else { break };
            view.look_at(&context.continued(&lead.extents, left_at, at + gap), fuel);
            match whole.check(view) {
                Ok(length) => right.push((left_at, length)),
                Err(at) => {
                    let is_further = further.is_none_or(|(most, ..)| at > most);
                    if at > left_at.max(lead.broke_at) + block && is_further {
                        further = Some((at, left_at, gap));
                    }
                }
            }
            fuel = view.fuel_bytes().min(fuel.saturating_sub(PAIR_BYTES));
            left_at -= block;
        }
        if right.is_empty() {
            continue;
        }
        right.reverse();
        let (left_at, length) = choose(view, context, &lead.extents, gap, &right)?;
        let at = MendContext::left_offset(&lead.extents, left_at)?;
        let found = context.continued(&lead.extents, left_at, at + gap);
        return Some(PairOutcome::Whole(crate::view::cut(&found, length)));
    }
    let (broke_at, left_at, gap) = further?;
    let at = MendContext::left_offset(&lead.extents, left_at)?;
    let extents = context.continued(&lead.extents, left_at, at + gap);
    Some(PairOutcome::Further(Lead { extents, from: left_at + block, broke_at }))
}

/// Returns the right place, if it is the only one at which all checks succeed, with the length of
/// the file.
fn choose(
    view: &mut View<'_>,
    context: &MendContext<'_>,
    extents: &[Extent],
    gap: u64,
    right: &[(u64, u64)],
) -> Option<(u64, u64)> {
    let (first, last) = (right.first()?, right.last()?);
    if first == last {
        return Some(*first);
    }
    view.look_at(extents, context.effort.fuel_bytes);
    let known = 0..last.1 + gap;
    let gap = Gap { first: first.0, last: last.0, bytes: gap };
    let place = likely_gap(view, gap, known, context.block_bytes)?;
    right.iter().find(|(left_at, _)| *left_at == place).copied()
}
