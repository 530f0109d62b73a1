//! A comparison as a gate: whether a reading is slower by more than the caller allows.

use crate::compare::{ALPHA, Change, Comparison};

/// The outcome of a gate.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate<'r> {
    /// Readings that are slower by more than is allowed, and not by chance.
    pub slower: Vec<Change<'r>>,
    /// Readings that may be slower by more, or not: their runs are too few, or scatter too far.
    pub undecided: usize,
    /// Readings that the gate looked at.
    pub compared: usize,
    /// Readings that fail no gate, because they were disturbed while they were taken.
    pub disturbed: usize,
}

/// Judges a comparison: a reading fails the gate if it gives less than `100 - percent` hundredths of what it
/// gave before, and if the difference is not chance.
///
/// Chance alone fails a gate in less than one comparison of a hundred, however many readings it has: the
/// more there are, the less probable each difference must be.
pub fn gate<'r>(comparison: &Comparison<'r>, percent: f64) -> Gate<'r> {
    let least = 1.0 - percent / 100.0;
    let is_disturbed = |change: &Change<'_>| {
        change.before.is_disturbed_itself() || change.after.is_disturbed_itself()
    };
    let (disturbed, judged): (Vec<Change<'_>>, Vec<Change<'_>>) =
        comparison.changes.iter().copied().partition(is_disturbed);
    let alpha = ALPHA / judged.len().max(1) as f64;
    let compared = judged.len();
    let is_near = |change: &Change<'_>| change.ratio >= least;
    let may_be_slower = judged.into_iter().filter(|change| !is_near(change));
    let (slower, open): (Vec<Change<'_>>, Vec<Change<'_>>) =
        may_be_slower.partition(|change| change.ratio < least && change.is_no_chance(alpha));
    Gate { slower, undecided: open.len(), compared, disturbed: disturbed.len() }
}
