//! What people should know about a source that was carved.

use quarrier::carve::{Carved, Carving, describe_skimmed};
use quarrier::source::{line_of, unreadable_line};
use quarrier_carve::Skimming;
use quarrier_carve::folder::Skipped;
use serde::{Deserialize, Serialize};

/// Lines about a source that was carved.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remarks {
    /// Parts of the source that were not examined, or less closely, and damage: rows may be missing.
    pub problems: Vec<String>,
    /// Everything else that people should know.
    pub notices: Vec<String>,
}

/// What a user may do to have ranges examined more closely, by the reason why they were not; empty if there is
/// nothing.
pub type WhatToTry = fn(Skimming) -> &'static str;

impl Remarks {
    /// The lines that are known before a source is carved.
    #[must_use]
    pub fn before(name: &str, carving: &Carving<'_>) -> Self {
        let lines = |lines: &[String]| lines.iter().map(|line| line_of(name, line)).collect();
        Remarks { problems: lines(carving.damages()), notices: lines(carving.notices()) }
    }

    /// The lines about a run: ranges that were not read, or examined less closely than the rest.
    #[must_use]
    pub fn of_run(name: &str, carved: &Carved, what_to_try: WhatToTry) -> Self {
        let unreadable = carved.summary.unreadable.iter();
        let unreadable = unreadable.map(|range| unreadable_line(name, range));
        let skimmed = describe_skimmed(&carved.summary.skimmed).into_iter();
        let skimmed = skimmed.map(|(reason, line)| match what_to_try(reason) {
            "" => format!("{name}: {line}"),
            hint => format!("{name}: {line}; {hint}"),
        });
        let skipped = carved.skipped.as_ref().map(Skipped::describe);
        Remarks {
            problems: unreadable.chain(skimmed).collect(),
            notices: skipped.into_iter().map(|skipped| format!("{name}: {skipped}")).collect(),
        }
    }

    /// Adds the lines of `other`.
    pub fn add(&mut self, other: Remarks) {
        self.problems.extend(other.problems);
        self.notices.extend(other.notices);
    }
}
