//! Finds fragments of compressed streams, which are certain only at their end.
//!
//! Wrong bytes in a stream show late, after a few kilobytes: a stream that continues for a while is
//! not necessarily right. So all pairs of places near the break are first tried to the end of the
//! file, then places before the file's beginning, and only then a third fragment for the pairs that
//! got furthest.

use super::in_order::{Reading, Step, in_order};
use super::{Effort, MendContext};
use crate::mend::Broken;
use crate::view::{Extent, View};

/// Ranges of pairs of places to try, in order: blocks back from the break, blocks of gap. Blocks of
/// whole files do not count.
const FORWARD: [(usize, u64); 2] = [(24, 20), (48, 48)];
/// The same, for places before the beginning.
const BACKWARD: (usize, u64) = (40, 160);
/// Pairs of places to try after each of the leads, for three fragments.
const AFTER_LEAD: (usize, u64) = (16, 20);
/// The number of leads.
const LEADS_MAX: usize = 10;
/// A sector, which suffices to reveal text and zeros; most of the tried data are such.
const STRIDE_BYTES: u64 = 512;
/// A decoder takes several times as long per byte as the checksum for which an effort's fuel is
/// calibrated. On five images, four of them of 1 GiB, the whole fuel found nothing more.
const FUEL_SHARE: u64 = 4;

/// A file up to its last known fragment.
struct Lead {
    extents: Vec<Extent>,
    sure: u64,
    broke_at: u64,
    before: Box<dyn Reading>,
}

/// A place at which a file may be interrupted, with a reader at that place.
struct Interruption {
    at: u64,
    /// The offset in the source after the previous byte.
    offset: u64,
    reading: Box<dyn Reading>,
}

/// Finds the fragments of a stream that `start`, a reader at its first byte, has found broken in
/// `view`: two or three in order, or two in reverse order. With more effort than usual, it
/// continues as [`in_order`] does.
pub(crate) fn streams(
    view: &mut View<'_>,
    context: &MendContext<'_>,
    broken: &Broken,
    start: Box<dyn Reading>,
) -> Option<Vec<Extent>> {
    let origin = view.offset_of(0)?;
    let all = view.extents().to_vec();
    let lead =
        Lead { extents: all.clone(), sure: broken.sure, broke_at: broken.at, before: start.copy() };
    let mut search = Search { view, context, fuel: context.effort.fuel_bytes / FUEL_SHARE };
    let found = search.all(&lead, origin);
    if found.is_some() || context.effort.fragments_max <= Effort::NORMAL.fragments_max {
        return found;
    }
    let view = search.view;
    view.look_at(&all, context.effort.fuel_bytes);
    in_order(view, context, broken, start)
}

struct Search<'a, 'v, 'y> {
    view: &'a mut View<'v>,
    context: &'a MendContext<'y>,
    fuel: u64,
}

impl Search<'_, '_, '_> {
    fn is_over(&self) -> bool {
        self.fuel == 0 || self.context.is_stopped()
    }

    fn all(&mut self, lead: &Lead, origin: u64) -> Option<Vec<Extent>> {
        let left = self.left(lead, FORWARD[1].0.max(BACKWARD.0));
        let mut leads: Vec<Lead> = Vec::new();
        let mut tried = (0, 0);
        for (back, gap) in FORWARD {
            for (index, left) in left.iter().take(back).enumerate() {
                let from = if index < tried.0 { tried.1 } else { 0 };
                let found = self.forward(lead, left, from..gap, Some(&mut leads));
                if found.is_some() || self.is_over() {
                    return found;
                }
            }
            tried = (back, gap);
        }
        for left in left.iter().take(BACKWARD.0) {
            let found = self.backward(lead, left, origin);
            if found.is_some() || self.is_over() {
                return found;
            }
        }
        for lead in leads {
            for left in self.left(&lead, AFTER_LEAD.0) {
                let found = self.forward(&lead, &left, 0..AFTER_LEAD.1, None);
                if found.is_some() || self.is_over() {
                    return found;
                }
            }
        }
        None
    }

    /// Returns the last `most` places at which the file may be interrupted, the last first.
    fn left(&mut self, lead: &Lead, most: usize) -> Vec<Interruption> {
        let block = self.context.block_bytes;
        let last = lead.broke_at / block;
        let first = lead.sure.div_ceil(block).max(1).max((last + 1).saturating_sub(most as u64));
        let mut reading = lead.before.copy();
        let mut left = Vec::new();
        self.view.look_at(&lead.extents, u64::MAX);
        for at in (first..=last).map(|count| count * block) {
            if reading.read_to(self.view, at) != Step::Going {
                break;
            }
            let Some(last) = self.view.offset_of(at - 1) else { break };
            left.push(Interruption { at, offset: last + 1, reading: reading.copy() });
        }
        left.reverse();
        left
    }

    /// Tries the places after `left` with a gap of this many blocks.
    fn forward(
        &mut self,
        lead: &Lead,
        left: &Interruption,
        gaps: std::ops::Range<u64>,
        mut leads: Option<&mut Vec<Lead>>,
    ) -> Option<Vec<Extent>> {
        let block = self.context.block_bytes;
        let skipped = usize::try_from(gaps.start).unwrap_or(usize::MAX);
        let count = usize::try_from(gaps.end - gaps.start).unwrap_or(usize::MAX);
        for place in self.context.continuations(left.offset).skip(skipped).take(count) {
            if self.is_over() {
                break;
            }
            let (found, extents) = self.try_at(lead, left, place);
            match found {
                Step::Whole { length } => return Some(crate::view::cut(&extents, length)),
                Step::Broken { at } if at >= left.at + block => {
                    if let Some(leads) = &mut leads {
                        let (sure, before) = (left.at + block, left.reading.copy());
                        leads.push(Lead { extents, sure, broke_at: at, before });
                        leads.sort_by_key(|lead| {
                            std::cmp::Reverse(lead.broke_at + block - lead.sure)
                        });
                        leads.truncate(LEADS_MAX);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Tries places before the beginning of the file.
    fn backward(&mut self, lead: &Lead, left: &Interruption, origin: u64) -> Option<Vec<Extent>> {
        let block = self.context.block_bytes;
        for count in 1..=BACKWARD.1 {
            let place = origin.checked_sub(count * block)?;
            if self.context.claims.holds(place) {
                continue;
            }
            if self.is_over() {
                return None;
            }
            let (found, extents) = self.try_at(lead, left, place);
            if let Step::Whole { length } = found {
                return Some(crate::view::cut(&extents, length));
            }
        }
        None
    }

    /// Continues at `place`, in growing steps.
    fn try_at(&mut self, lead: &Lead, left: &Interruption, place: u64) -> (Step, Vec<Extent>) {
        let extents = self.context.continued(&lead.extents, left.at, place);
        self.view.look_at(&extents, self.fuel);
        let mut reading = left.reading.copy();
        let mut stride = STRIDE_BYTES;
        let mut to = left.at;
        let step = loop {
            to = to.saturating_add(stride);
            match reading.read_to(self.view, to) {
                Step::Going if self.view.is_starved() => break Step::Broken { at: left.at },
                Step::Going => stride = stride.saturating_mul(2),
                step => break step,
            }
        };
        self.fuel = self.view.fuel_bytes();
        (step, extents)
    }
}
