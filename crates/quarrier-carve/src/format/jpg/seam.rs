//! Whether a picture goes on across the joints of its fragments.
//!
//! What follows a wrong joint may decode to the end: then brightness and colour are off by what
//! the missing blocks would have added, and the picture is shifted. So the rows below a joint are
//! compared with those above, as all other rows are.

use super::reader::Reader;
use crate::mend::{Reading, Step};
use crate::view::View;

/// Pictures with more MCUs are not looked at.
const MCUS_MAX: usize = 8 << 20;
/// Fewer MCUs say nothing.
const MCUS_MIN: usize = 4;
/// Steps down that are always suffered: of DC values (8 times a sample), and at least of quantised ones.
const SLACK: u32 = 18;
const SLACK_MIN: u32 = 6;
/// How many times the step along a row a step down may be.
const ALONG: u32 = 3;

/// The brightness and colour of each MCU of the first scan.
#[derive(Clone, Default)]
pub(super) struct Mosaic {
    across: usize,
    components: usize,
    /// Steps down that are always suffered, by component.
    slack: [u32; 4],
    dc: Vec<[i32; 4]>,
    is_done: bool,
}

impl Mosaic {
    pub(super) fn add(&mut self, dc: [i32; 4]) {
        if !self.is_done && self.dc.len() < MCUS_MAX {
            self.dc.push(dc);
        }
    }

    /// The first scan is done, of which this is the form: MCUs in a row, and the quantiser of each
    /// component.
    pub(super) fn finish(&mut self, across: u32, quantisers: &[u32]) {
        if !self.is_done {
            self.is_done = true;
            self.across = across as usize;
            self.components = quantisers.len();
            for (slack, quantiser) in self.slack.iter_mut().zip(quantisers) {
                *slack = (SLACK / (*quantiser).max(1)).max(SLACK_MIN);
            }
        }
    }

    /// Whether the colours of the row from `from` go on where those above it end: what they differ
    /// by, in the middle, is little, or as much as neighbours in the row differ. `None` where there
    /// are too few to tell.
    fn goes_on(&self, from: usize) -> Option<bool> {
        let to = (from + self.across).min(self.dc.len());
        let from = from.max(self.across);
        if to < from + MCUS_MIN {
            return None;
        }
        // Brightness has edges along rows everywhere, colour has few.
        Some((1..self.components).all(|component| {
            let middle = |other: &dyn Fn(usize) -> usize, sign: fn(i32) -> i32| {
                let one = |index: usize| self.dc[index][component];
                let mut steps: Vec<_> =
                    (from..to).map(|index| sign(one(index) - one(other(index)))).collect();
                let place = steps.len() / 2;
                *steps.select_nth_unstable(place).1
            };
            let down = middle(&|index| index - self.across, |step| step);
            let along = middle(&|index| index - 1, i32::abs);
            down.unsigned_abs() <= self.slack[component] + ALONG * along.unsigned_abs()
        }))
    }
}

/// Whether the rows on both sides of all `joints` (bytes of the file, in order) belong together,
/// as far as can be told.
pub(super) fn fits(view: &mut View<'_>, joints: &[u64]) -> bool {
    let mut reader = Reader::new();
    reader.mosaic = Some(Box::default());
    let mut seams = Vec::new();
    for joint in joints {
        if reader.read_to(view, *joint) != Step::Going {
            return false;
        }
        seams.extend(reader.mosaic.as_ref().filter(|one| !one.is_done).map(|one| one.dc.len()));
    }
    reader.read_to(view, u64::MAX);
    let Some(mosaic) = reader.mosaic else { return true };
    // Of many joints one that says nothing is one too many: chance gets its way among thousands
    // of pairs of pairs.
    let is_many = joints.len() > 1;
    seams.iter().filter(|seam| **seam > 0).all(|seam| mosaic.goes_on(seam + 1).unwrap_or(!is_many))
}
