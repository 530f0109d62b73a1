//! Ranges that were examined less closely, formatted for people and for programs.

use std::fmt::Write;

use quarrier_carve::{SkimmedRange, Skimming};
use serde_json::{Value, json};

/// Maximum number of ranges in a line; the account of the run has all.
const NAMED_MAX: usize = 16;

/// Formats a line for each reason, with the ranges and the types that may begin there: `bytes 0..51200
/// were examined less closely: too many … (5000 places: gz, pdf)`.
pub fn describe_skimmed(ranges: &[SkimmedRange]) -> Vec<(Skimming, String)> {
    let line = |reason| Some((reason, line(ranges, reason)?));
    Skimming::ALL.into_iter().filter_map(line).collect()
}

fn line(all: &[SkimmedRange], reason: Skimming) -> Option<String> {
    let ranges: Vec<_> = all.iter().filter(|one| one.reason == reason).collect();
    let mut types: Vec<_> = ranges.iter().flat_map(|one| &one.types).copied().collect();
    types.sort_unstable();
    types.dedup();
    let places: u64 = ranges.iter().map(|one| one.places).sum();
    let mut line = String::from("bytes ");
    for (index, one) in ranges.iter().take(NAMED_MAX).enumerate() {
        let comma = if index > 0 { ", " } else { "" };
        let _ = write!(line, "{comma}{}..{}", one.range.start, one.range.end);
    }
    if let Some(more) = ranges.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
        let _ = write!(line, " and {more} more ranges");
    }
    let (reason, types) = (reason.describe(), types.join(", "));
    let _ = write!(line, " were examined less closely: {reason} ({places} places: {types})");
    (!ranges.is_empty()).then_some(line)
}

/// Formats ranges for `--stats`: `[{"start", "end", "types", "places", "reason"}, …]`.
pub(crate) fn to_json(ranges: &[SkimmedRange]) -> Value {
    let one = |one: &SkimmedRange| {
        json!({
            "start": one.range.start,
            "end": one.range.end,
            "types": one.types,
            "places": one.places,
            "reason": one.reason.describe(),
        })
    };
    ranges.iter().map(one).collect()
}
