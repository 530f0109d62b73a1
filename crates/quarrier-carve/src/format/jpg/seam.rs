//! Checks whether a picture continues across the joints of its fragments.
//!
//! Data after a wrong joint may decode without an error. Then brightness and colour are off by the
//! contribution of the missing blocks, and the picture is shifted. So the rows below a joint are
//! compared with those above, as all other rows are. Brightness has edges along rows everywhere,
//! colour has few: only colour decides that a joint is wrong.

use super::reader::Reader;
use crate::mend::{Reading, Step};
use crate::view::View;

/// Minimum number of MCUs for a decision.
const MCUS_MIN: usize = 4;
/// The step down that is always tolerated: for DC values (8 times a sample), and at least for
/// quantised ones.
const SLACK: u32 = 18;
const SLACK_MIN: u32 = 6;
/// A step down may be this many times the step along a row.
const ALONG: u32 = 3;
/// Maximum number of rows to keep.
const ROWS_MAX: usize = 4;

/// The brightness and colour of the last MCUs of the first scan: the row before a joint and the one
/// after it.
#[derive(Clone, Default)]
pub(super) struct Mosaic {
    across: usize,
    /// The step down that is always tolerated, by component.
    slack: Vec<u32>,
    dc: Vec<[i32; 4]>,
    /// The number of MCUs that come only from bytes of the last fragment; `None` once it is known
    /// whether the rows continue.
    from_last: Option<usize>,
    misfit_of_judged: u32,
    /// For each joint: whether the rows continue after it, if that can be decided.
    found: Vec<Option<bool>>,
    is_done: bool,
}

impl Mosaic {
    /// Begins the first scan: with its MCUs per row, and the quantiser of each component.
    pub(super) fn begin(&mut self, across: u32, quantisers: &[u32]) {
        if !self.is_done && self.across == 0 {
            self.across = across.max(1) as usize;
            let slack = |quantiser: &u32| (SLACK / (*quantiser).max(1)).max(SLACK_MIN);
            self.slack = quantisers.iter().map(slack).collect();
        }
    }

    pub(super) fn add(&mut self, dc: [i32; 4]) {
        if self.is_done {
            return;
        }
        if self.dc.len() >= ROWS_MAX * self.across {
            self.dc.drain(..self.dc.len() - (ROWS_MAX - 1) * self.across);
        }
        self.dc.push(dc);
        // The first MCU after a joint has bits of both fragments.
        if let Some(from_last) = &mut self.from_last {
            *from_last += 1;
            if *from_last > self.across {
                self.judge();
            }
        }
    }

    /// Ends the first scan.
    pub(super) fn finish(&mut self) {
        self.judge();
        self.is_done = true;
    }

    /// Begins another fragment.
    pub(super) fn join(&mut self) {
        self.judge();
        self.misfit_of_judged = 0;
        if !self.is_done && !self.dc.is_empty() {
            self.from_last = Some(0);
            let row = self.dc.len().saturating_sub(self.across + 1);
            self.dc.drain(..row);
        }
    }

    fn judge(&mut self) {
        if self.from_last.is_some() {
            let colours = 1..self.slack.len();
            self.found.push(self.misfit(colours).map(|misfit| misfit == 0));
            self.misfit_of_judged = self.misfit_of_last();
            self.from_last = None;
        }
    }

    /// Returns by how much the last fragment fails to continue the one before; 0 if it continues
    /// it, or if that cannot be decided.
    pub(super) fn misfit_of_last(&self) -> u32 {
        match self.from_last {
            Some(_) => self.misfit(0..self.slack.len()).unwrap_or(0),
            None => self.misfit_of_judged,
        }
    }

    /// Returns by how much the median step of these components across the last joint exceeds the
    /// tolerance, which depends on the difference of neighbours in the row. `None` if there are too
    /// few steps for a decision.
    fn misfit(&self, components: std::ops::Range<usize>) -> Option<u32> {
        let from_last = self.from_last?.saturating_sub(1).min(self.across);
        let from = (self.dc.len() - from_last).max(self.across);
        let to = self.dc.len();
        if to < from + MCUS_MIN {
            return None;
        }
        let of_component = |component: usize| {
            let middle = |other: &dyn Fn(usize) -> usize, sign: fn(i32) -> i32| {
                let one = |index: usize| self.dc[index][component];
                let mut steps: Vec<_> =
                    (from..to).map(|index| sign(one(index) - one(other(index)))).collect();
                let place = steps.len() / 2;
                *steps.select_nth_unstable(place).1
            };
            let down = middle(&|index| index - self.across, |step| step);
            let along = middle(&|index| index - 1, i32::abs);
            let suffered = self.slack[component] + ALONG * along.unsigned_abs();
            down.unsigned_abs().saturating_sub(suffered)
        };
        Some(components.map(of_component).sum())
    }
}

/// Whether the rows on both sides of all `joints` (bytes of the file, in order) belong together, as
/// far as that can be decided.
pub(super) fn fits(view: &mut View<'_>, joints: &[u64]) -> bool {
    let mut reader = Reader::of_fragments();
    for joint in joints {
        if reader.read_to(view, *joint) != Step::Going {
            return false;
        }
        reader.join();
    }
    reader.read_to(view, u64::MAX);
    let Some(mut mosaic) = reader.mosaic else { return true };
    mosaic.finish();
    // With several joints, an undecided one is too risky: among thousands of combinations some fit
    // by chance.
    let is_many = joints.len() > 1;
    mosaic.found.iter().all(|continues| continues.unwrap_or(!is_many))
}
