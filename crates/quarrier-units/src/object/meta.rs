//! The metadata of an object.

use std::ops::Range;

use quarrier_search::RegexSeam;
use serde::{Deserialize, Serialize};

use crate::unit::Unit;

/// Identifies the rows of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name of the search: [`UnitSearch::job`](crate::UnitSearch::job).
    pub job: String,
    /// The unit.
    pub unit: Unit,
    /// The number of patterns.
    pub patterns: usize,
}

/// The data about a unit besides its rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Meta {
    job: String,
    unit: String,
    /// The number of rows.
    pub(crate) rows: u64,
    seams: Vec<Seam>,
    /// Ranges that could not be read: start and end.
    unreadable: Vec<(u64, u64)>,
    /// The patterns of the rows with an ambiguous text and name, in order.
    pub(crate) twins: Vec<u32>,
}

/// A [`RegexSeam`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seam {
    pattern: u32,
    first: Option<u64>,
    last: Option<(u64, u64)>,
    is_open: bool,
}

impl Meta {
    /// Creates the metadata of a unit. The writer adds rows and twins.
    pub(crate) fn new(identity: &Identity, seams: &[RegexSeam], unreadable: &[Range<u64>]) -> Self {
        let seam = |seam: &RegexSeam| Seam {
            pattern: seam.pattern,
            first: seam.first,
            last: seam.last.as_ref().map(|last| (last.start, last.end)),
            is_open: seam.is_open,
        };
        Meta {
            job: identity.job.clone(),
            unit: identity.unit.id(),
            rows: 0,
            seams: seams.iter().map(seam).collect(),
            unreadable: unreadable.iter().map(|range| (range.start, range.end)).collect(),
            twins: Vec::new(),
        }
    }

    /// The seams of the regexes in the unit.
    pub(crate) fn seams(&self) -> Vec<RegexSeam> {
        let seam = |seam: &Seam| RegexSeam {
            pattern: seam.pattern,
            first: seam.first,
            last: seam.last.map(|(start, end)| start..end),
            is_open: seam.is_open,
        };
        self.seams.iter().map(seam).collect()
    }

    /// The ranges of the unit that could not be read.
    pub(crate) fn unreadable(&self) -> Vec<Range<u64>> {
        self.unreadable.iter().map(|&(start, end)| start..end).collect()
    }

    /// Why this cannot be the metadata of the expected object.
    pub(crate) fn fault(&self, expected: &Identity) -> Option<&'static str> {
        let range = &expected.unit.range;
        let is_pattern = |pattern: u32| (pattern as usize) < expected.patterns;
        let is_within =
            |&(start, end): &(u64, u64)| start < end && start >= range.start && end <= range.end;
        let is_seam = |seam: &Seam| {
            let starts = seam.first.into_iter().chain(seam.last.map(|(start, _)| start));
            is_pattern(seam.pattern)
                && seam.first.is_some() == seam.last.is_some()
                && seam.last.is_none_or(|(start, end)| start < end)
                && starts.into_iter().all(|start| range.contains(&start))
        };
        let are_right = self.seams.iter().all(is_seam)
            && self.unreadable.iter().all(is_within)
            && self.unreadable.is_sorted_by(|a, b| a.1 <= b.0)
            && self.twins.iter().all(|&twin| is_pattern(twin));
        match (self.job == expected.job && self.unit == expected.unit.id(), are_right) {
            (false, _) => Some("it belongs to another search or unit"),
            (true, false) => Some("it contradicts itself"),
            (true, true) => None,
        }
    }
}
