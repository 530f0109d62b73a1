//! Files whose fragments lie in the order of the file, with gaps between them.
//!
//! The reader is taken up again from the last places at which the file may have been left, at
//! each of the next places at which it may go on. Wrong ones show within some hundred bytes, so
//! that thousands of pairs are tried in the time in which one file is read.

use std::collections::VecDeque;

use super::Yard;
use crate::format::Broken;
use crate::view::{Extent, View};

/// A reader that can be left at any byte, and taken up again by copies of it: on the same bytes
/// it always says the same.
pub trait Reading {
    /// Reads on from where it stands to byte `to` of the file at least, or to the end.
    fn read_to(&mut self, view: &mut View<'_>, to: u64) -> Step;

    /// One that stands at the same place.
    fn copy(&self) -> Box<dyn Reading>;
}

/// What a [`Reading`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// All right so far.
    Going,
    /// The file ends here: it is `length` bytes long, and whole.
    Whole {
        /// In bytes.
        length: u64,
    },
    /// It is wrong at byte `at` of the file, or before.
    Broken {
        /// In bytes from the start of the file.
        at: u64,
    },
}

/// Where a file was taken up, and how far it went from there.
struct Lead {
    extents: Vec<Extent>,
    left_at: u64,
    broke_at: u64,
    before: Box<dyn Reading>,
}

/// How many of the best unfinished pairs are looked into for another fragment.
const LEADS_MAX: usize = 3;
/// The shares of effort with which pairs are tried: blocks back, and the widest gap in blocks.
const WIDENING: [(u64, u64); 5] = [(4, 64), (32, 64), (4, 1024), (256, 256), (u64::MAX, u64::MAX)];

/// Finds the fragments of the file that `start` began to read in `view` and found broken.
pub fn in_order(
    view: &mut View<'_>,
    yard: &Yard<'_>,
    broken: &Broken,
    start: Box<dyn Reading>,
) -> Option<Vec<Extent>> {
    let mut fuel = yard.effort.fuel_bytes;
    let extents = view.extents().to_vec();
    let mut leads =
        vec![Lead { extents, left_at: broken.sure, broke_at: broken.at, before: start }];
    for _ in 1..yard.effort.fragments_max {
        let mut next: Vec<Lead> = Vec::new();
        for lead in leads {
            match follow(view, yard, lead, &mut fuel) {
                Ok(extents) => return Some(extents),
                Err(more) => next.extend(more),
            }
        }
        // Those that went furthest from where they were taken up.
        next.sort_by_key(|lead| std::cmp::Reverse(lead.broke_at));
        next.truncate(LEADS_MAX);
        leads = next;
    }
    None
}

/// Tries all pairs for one more fragment: the extents of the whole file, or the leads for another.
fn follow(
    view: &mut View<'_>,
    yard: &Yard<'_>,
    lead: Lead,
    fuel: &mut u64,
) -> Result<Vec<Extent>, Vec<Lead>> {
    let block = yard.block_bytes;
    let left = left_at(view, yard, &lead, fuel);
    let mut leads: Vec<Lead> = Vec::new();
    let mut tried = (0, 0);
    for (back, gap) in WIDENING {
        for (index, (at, reading)) in left.iter().rev().enumerate() {
            if index as u64 >= back {
                break;
            }
            let Some(offset) = last_offset(&lead.extents, *at) else { continue };
            for place in yard.continuations(offset) {
                let blocks = (place - offset) / block;
                if blocks > gap {
                    break;
                }
                if (index as u64) < tried.0 && blocks <= tried.1 {
                    continue;
                }
                if *fuel == 0 || yard.is_stopped() {
                    return Err(leads);
                }
                let extents = yard.continued(&lead.extents, *at, place);
                view.look_at(&extents, *fuel);
                let step = read_on(view, reading.as_ref(), *at, block);
                *fuel = view.fuel_bytes().min(fuel.saturating_sub(256));
                match step {
                    Step::Whole { length } => {
                        return Ok(crate::carver::cut(&extents, length));
                    }
                    Step::Broken { at: broke_at } if broke_at > at + 2 * block => {
                        let lead =
                            Lead { extents, left_at: at + block, broke_at, before: reading.copy() };
                        keep_best(&mut leads, lead);
                    }
                    _ => {}
                }
            }
        }
        tried = (back, gap);
        if back > left.len() as u64 && gap >= yard.effort.gap_bytes_max / block {
            break;
        }
    }
    Err(leads)
}

fn keep_best(leads: &mut Vec<Lead>, lead: Lead) {
    leads.push(lead);
    leads.sort_by_key(|lead| std::cmp::Reverse(lead.broke_at));
    leads.truncate(LEADS_MAX);
}

/// The places at which the file may have been left, in order, each with a reader that stands
/// there.
fn left_at(
    view: &mut View<'_>,
    yard: &Yard<'_>,
    lead: &Lead,
    fuel: &mut u64,
) -> VecDeque<(u64, Box<dyn Reading>)> {
    let block = yard.block_bytes;
    let first = lead.left_at.div_ceil(block).max(1) * block;
    let first =
        first.max((lead.broke_at / block * block).saturating_sub(yard.effort.back_bytes_max));
    let mut reading = lead.before.copy();
    let mut left = VecDeque::new();
    let mut at = first;
    view.look_at(&lead.extents, *fuel);
    while at <= lead.broke_at {
        if reading.read_to(view, at) != Step::Going {
            break;
        }
        left.push_back((at, reading.copy()));
        at += block;
    }
    *fuel = view.fuel_bytes();
    left
}

/// Reads on from `at` in strides that grow, so that what is wrong costs little.
fn read_on(view: &mut View<'_>, reading: &dyn Reading, at: u64, block: u64) -> Step {
    let mut reading = reading.copy();
    let mut stride = block;
    let mut to = at;
    loop {
        to = to.saturating_add(stride);
        match reading.read_to(view, to) {
            Step::Going if view.is_starved() => return Step::Broken { at },
            Step::Going => stride = stride.saturating_mul(4),
            step => return step,
        }
    }
}

/// The offset in the source at which byte `at` of the file would lie if it went on: behind its
/// byte `at - 1`.
fn last_offset(extents: &[Extent], at: u64) -> Option<u64> {
    let mut left = at;
    for extent in extents {
        if left <= extent.length {
            return Some(extent.offset + left);
        }
        left -= extent.length;
    }
    None
}
