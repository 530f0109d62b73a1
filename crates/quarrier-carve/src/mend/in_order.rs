//! Finds fragments in the order of the file, with gaps between them.
//!
//! The search resumes copies of the reader: from each of the last places at which the file may be
//! interrupted, at each of the next places at which it may continue. Wrong places show within a few
//! hundred bytes, so that thousands of pairs take no more time than reading one file. A pair that
//! gets far and breaks again may be a fragment followed by another one.

use super::MendContext;
use crate::mend::Broken;
use crate::view::{Extent, View};

/// A reader that can stop at any byte and whose copies can continue from there. The same bytes
/// always give the same results.
pub trait Reading {
    /// Reads up to byte `to`, as far as the bytes before it suffice, or to the end of the file. The
    /// state must not depend on bytes at or after `to`: the reader may be resumed with other bytes
    /// there.
    fn read_to(&mut self, view: &mut View<'_>, to: u64) -> Step;

    /// Announces that the next bytes belong to another fragment.
    fn join(&mut self) {}

    /// Returns by how much the bytes of the last fragment fail to continue the one before; 0 if
    /// they continue it, or if that cannot be decided.
    fn misfit(&self) -> u32 {
        0
    }

    /// Returns whether both sides of all `joints` (bytes of a whole file, in order) belong
    /// together, as far as that can be decided. Called on a reader at the first byte.
    fn fits(&self, view: &mut View<'_>, joints: &[u64]) -> bool {
        let _ = (view, joints);
        true
    }

    /// Returns a reader at the same place.
    fn copy(&self) -> Box<dyn Reading>;
}

/// The result of a [`Reading`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// No error up to the requested byte.
    Going,
    /// The file ends here: it has `length` bytes and is whole.
    Whole {
        /// In bytes.
        length: u64,
    },
    /// The file is invalid at byte `at`, or before.
    Broken {
        /// In bytes from the start of the file: the end of the bytes that were read.
        at: u64,
    },
}

/// The steps of the search, as ranges of pairs: blocks back, and the longest gap in blocks. Blocks
/// of whole files do not count.
const WIDENING: [(u64, u64); 7] =
    [(3, 24), (8, 96), (32, 64), (4, 1024), (64, 512), (256, 256), (u64::MAX, u64::MAX)];
/// Maximum number of other files after a fragment to skip at first in the search for the next
/// fragment.
const OTHERS_MAX: usize = 8;
/// Number of unfinished pairs for which to search for a further fragment: those that continued at
/// the nearest places, and those of the others that got furthest. Data that follow a fragment in
/// the same file get further than the fragment itself.
const NEAR_MAX: usize = 6;
const FAR_MAX: usize = 3;
/// Number of blocks to read of each pair, and number of pairs that got further to read until they
/// break.
const FIRST_BLOCKS: u64 = 16;
const FAR_READ_MAX: usize = 16;
/// Decoders take this many times as long per byte as a checksum, for which an effort's fuel is
/// calibrated. On an image with 97 fragmented files, the whole fuel found nothing more and took 0.5
/// s more of processor time.
const FUEL_SHARE: u64 = 8;
/// Minimum cost of a pair, in bytes of fuel.
const PAIR_BYTES: u64 = 256;
/// The first step of a reader.
const STRIDE_BYTES: u64 = 1 << 10;

/// A broken file up to its last known fragment.
struct Lead {
    extents: Vec<Extent>,
    /// The start of its last fragment in the source.
    place: u64,
    /// The file was interrupted at this byte or later.
    sure: u64,
    broke_at: u64,
    /// A reader at `sure`, or before.
    before: Box<dyn Reading>,
    /// The places at which it may be interrupted, the last first; see [`Search::left`].
    left: Option<Vec<Interruption>>,
    /// The range tried so far: blocks back, longest gap.
    tried: (u64, u64),
    /// The pairs that got furthest, to extend with fewer steps each.
    next: Vec<(usize, Lead)>,
}

/// A place at which a file may be interrupted.
struct Interruption {
    at: u64,
    /// The offset in the source after the previous byte.
    offset: u64,
    /// A reader at that place.
    reading: Box<dyn Reading>,
}

/// Finds the fragments of a file that `start`, a reader at its first byte, has found broken in
/// `view`.
pub fn in_order(
    view: &mut View<'_>,
    context: &MendContext<'_>,
    broken: &Broken,
    start: Box<dyn Reading>,
) -> Option<Vec<Extent>> {
    let extents = view.extents().to_vec();
    let fuel = context.effort.fuel_bytes / FUEL_SHARE;
    let mut search = Search { view, context, fuel, start: start.copy() };
    let mut lead = Lead::new(extents, 0, broken.sure, broken.at, start);
    if let Some(found) = search.around_others(&mut lead) {
        return Some(found);
    }
    for step in 0..WIDENING.len() {
        let found = search.widen(&mut lead, step, 2);
        if found.is_some() || search.is_over() {
            return found;
        }
    }
    None
}

impl Lead {
    fn new(
        extents: Vec<Extent>,
        place: u64,
        sure: u64,
        broke_at: u64,
        before: Box<dyn Reading>,
    ) -> Self {
        Lead { extents, place, sure, broke_at, before, left: None, tried: (0, 0), next: Vec::new() }
    }

    fn keep_best(&mut self, lead: Lead) {
        self.next.push((0, lead));
        self.next.sort_by_key(|(_, lead)| (lead.place, std::cmp::Reverse(lead.sure)));
        if self.next.len() > NEAR_MAX + FAR_MAX {
            let far = self.next.iter().enumerate().skip(NEAR_MAX);
            if let Some((least, _)) = far.min_by_key(|(_, (_, lead))| lead.broke_at) {
                self.next.remove(least);
            }
        }
    }
}

struct Search<'a, 'v, 'y> {
    view: &'a mut View<'v>,
    context: &'a MendContext<'y>,
    fuel: u64,
    start: Box<dyn Reading>,
}

impl Search<'_, '_, '_> {
    fn is_over(&self) -> bool {
        self.fuel == 0 || self.context.is_stopped()
    }

    /// Tries the places after other files, if this file is interrupted at the start of another one.
    fn around_others(&mut self, lead: &mut Lead) -> Option<Vec<Extent>> {
        let left = self.left(lead);
        let mut found = None;
        let others = left.iter().filter(|left| self.context.claims.starts_at(left.offset));
        for left in others.take(OTHERS_MAX) {
            let Some(place) = self.context.continuations(left.offset).next() else { continue };
            let extents = self.context.continued(&lead.extents, left.at, place);
            let (step, _) = self.read_on(&extents, left, u64::MAX);
            found = self.weigh(lead, left, place, extents, step);
            if found.is_some() || self.is_over() {
                break;
            }
        }
        lead.left = Some(left);
        found
    }

    /// Tries all pairs of a step that were not tried before, then looks for a further fragment.
    fn widen(&mut self, lead: &mut Lead, step: usize, fragments: usize) -> Option<Vec<Extent>> {
        let left = match lead.left.take() {
            Some(left) => left,
            None => self.left(lead),
        };
        let found = self.pairs(lead, &left, WIDENING[step]);
        let is_done = found.is_some() || fragments >= self.context.effort.fragments_max;
        lead.left = Some(left);
        if is_done {
            return found;
        }
        for (done, next) in &mut lead.next {
            while *done <= step {
                if self.is_over() {
                    return None;
                }
                let found = self.widen(next, *done, fragments + 1);
                if found.is_some() {
                    return found;
                }
                *done += 1;
            }
        }
        None
    }

    fn pairs(
        &mut self,
        lead: &mut Lead,
        left: &[Interruption],
        (back, gap): (u64, u64),
    ) -> Option<Vec<Extent>> {
        let block = self.context.block_bytes;
        let tried = std::mem::replace(&mut lead.tried, (back, gap));
        let back = usize::try_from(back).unwrap_or(usize::MAX);
        let mut far = Vec::new();
        for (index, left) in left.iter().take(back).enumerate() {
            let is_tried = (index as u64) < tried.0;
            let places = self.context.continuations(left.offset);
            for (place, blocks) in places.take(usize::try_from(gap).unwrap_or(usize::MAX)).zip(1..)
            {
                if is_tried && blocks <= tried.1 {
                    continue;
                }
                if self.is_over() {
                    return None;
                }
                let extents = self.context.continued(&lead.extents, left.at, place);
                let limit = left.at.saturating_add(FIRST_BLOCKS * block);
                match self.read_on(&extents, left, limit) {
                    (Step::Going, misfit) => {
                        far.push((misfit, place, std::cmp::Reverse(left.at), left, extents));
                    }
                    (step, _) => {
                        let found = self.weigh(lead, left, place, extents, step);
                        if found.is_some() {
                            return found;
                        }
                    }
                }
            }
        }
        // Data later in the right fragment can fit as well as its start. So of equal misfits, the earlier place
        // comes first.
        far.sort_by_key(|(misfit, place, at, ..)| (*misfit, *place, *at));
        for (_, place, _, left, extents) in far.into_iter().take(FAR_READ_MAX) {
            let (step, _) = self.read_on(&extents, left, u64::MAX);
            let found = self.weigh(lead, left, place, extents, step);
            if found.is_some() || self.is_over() {
                return found;
            }
        }
        None
    }

    /// Returns whether a pair makes the file whole, and keeps it if another fragment may follow.
    fn weigh(
        &mut self,
        lead: &mut Lead,
        left: &Interruption,
        place: u64,
        extents: Vec<Extent>,
        step: Step,
    ) -> Option<Vec<Extent>> {
        let block = self.context.block_bytes;
        match step {
            Step::Whole { length } => {
                let extents = crate::view::cut(&extents, length);
                let is_it = self.is_certain(&extents, length) && self.fits(&extents);
                is_it.then_some(extents)
            }
            Step::Broken { at } if at >= left.at + block => {
                let before = left.reading.copy();
                lead.keep_best(Lead::new(extents, place, left.at + block, at, before));
                None
            }
            _ => None,
        }
    }

    /// Returns the places at which the file may be interrupted, the last first.
    fn left(&mut self, lead: &Lead) -> Vec<Interruption> {
        let block = self.context.block_bytes;
        let back = self.context.effort.back_bytes_max;
        let first = lead.sure.div_ceil(block).max(1) * block;
        let first = first.max((lead.broke_at / block * block).saturating_sub(back));
        let mut reading = lead.before.copy();
        let mut left = Vec::new();
        let mut at = first;
        self.view.look_at(&lead.extents, self.fuel);
        while at <= lead.broke_at && reading.read_to(self.view, at) == Step::Going {
            let Some(last) = self.view.offset_of(at - 1) else { break };
            left.push(Interruption { at, offset: last + 1, reading: reading.copy() });
            at += block;
        }
        self.fuel = self.view.fuel_bytes();
        left.reverse();
        left
    }

    /// Continues after the interruption up to `limit`, in growing steps, so that wrong data cost
    /// little. Also returns the misfit there.
    fn read_on(&mut self, extents: &[Extent], left: &Interruption, limit: u64) -> (Step, u32) {
        self.view.look_at(extents, self.fuel);
        let mut reading = left.reading.copy();
        reading.join();
        let mut stride = STRIDE_BYTES;
        let mut to = left.at;
        let step = loop {
            to = to.saturating_add(stride).min(limit);
            match reading.read_to(self.view, to) {
                Step::Going if self.view.is_starved() => break Step::Broken { at: left.at },
                Step::Going if to == limit => break Step::Going,
                Step::Going => stride = stride.saturating_mul(4),
                step => break step,
            }
        };
        self.fuel = self.view.fuel_bytes().min(self.fuel.saturating_sub(PAIR_BYTES));
        (step, reading.misfit())
    }

    /// Whether the fragments belong together according to the reader.
    fn fits(&mut self, extents: &[Extent]) -> bool {
        let mut at = 0;
        let joints: Vec<u64> = extents[..extents.len() - 1]
            .iter()
            .map(|extent| {
                at += extent.length;
                at
            })
            .collect();
        self.view.look_at(extents, self.fuel);
        let fits = self.start.fits(self.view, &joints);
        self.fuel = self.view.fuel_bytes();
        fits
    }

    /// Whether no joint could be a block earlier or later: among bytes that nothing verifies, any
    /// place would fit.
    fn is_certain(&mut self, extents: &[Extent], length: u64) -> bool {
        let block = self.context.block_bytes;
        (1..extents.len()).all(|joint| {
            let (before, after) = (extents[joint - 1], extents[joint]);
            let mut earlier = extents.to_vec();
            // A fragment of one block could also be absent.
            let is_longer = before.length > block || (joint > 1 && before.length == block);
            if is_longer && after.offset >= block {
                earlier[joint - 1].length -= block;
                earlier[joint] =
                    Extent { offset: after.offset - block, length: after.length + block };
                if self.is_another(&earlier, length, before.end() - block, after.offset - block) {
                    return false;
                }
            }
            let mut later = extents.to_vec();
            if after.length > block || (joint + 1 < extents.len() && after.length == block) {
                later[joint - 1].length += block;
                later[joint] =
                    Extent { offset: after.offset + block, length: after.length - block };
                if self.is_another(&later, length, before.end(), after.offset) {
                    return false;
                }
            }
            true
        })
    }

    /// Whether `extents` form a whole file, too, and a different one, because the exchanged blocks
    /// have other bytes.
    fn is_another(&mut self, extents: &[Extent], length: u64, one: u64, other: u64) -> bool {
        let block = self.context.block_bytes;
        let blocks = [one, other].map(|offset| Extent { offset, length: block });
        self.view.look_at(&blocks, u64::MAX);
        let bytes = self.view.take(0, block as usize).map(<[u8]>::to_vec);
        if bytes.as_deref() == self.view.take(block, block as usize) {
            return false;
        }
        self.view.look_at(extents, self.fuel);
        let step = self.start.copy().read_to(self.view, u64::MAX);
        self.fuel = self.view.fuel_bytes();
        step == Step::Whole { length } && self.fits(extents)
    }
}
