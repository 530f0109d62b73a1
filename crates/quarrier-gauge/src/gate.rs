//! A comparison as a gate: whether a reading is slower by more than the caller allows.

use crate::compare::{ALPHA, Change, Comparison};

/// The outcome of a gate.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate<'r> {
    /// Readings that are slower by more than is allowed, and not by chance.
    pub slower: Vec<Change<'r>>,
    /// The number of readings that may or may not be slower by more: their runs are too few or too
    /// scattered.
    pub undecided: usize,
    /// The number of readings compared.
    pub compared: usize,
    /// The number of readings exempt from the gate because they were disturbed.
    pub disturbed: usize,
}

/// Applies the gate to a comparison: a reading fails if its speed is below `100 - percent` percent of the
/// earlier one, and if the difference is not chance.
///
/// Chance alone fails fewer than one comparison in a hundred, whatever the number of readings: the more
/// there are, the less probable each difference must be.
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
