//! `--unallocated`: only what the file systems of the source say is free.

use std::fmt::Write;
use std::ops::Range;

use quarrier_carve::folder::fingerprint;
use quarrier_carve::unallocated::{Unallocated, find};
use quarrier_core::source::Source;

use crate::args::Carve;
use crate::quantity::show_bytes;

/// Where files are looked for.
pub(super) struct Ground {
    pub(super) ranges: Vec<Range<u64>>,
    /// What tells free ranges from others, where they were asked for.
    pub(super) fingerprint: Option<String>,
    /// Who says what is free, for people.
    pub(super) told: Option<String>,
    /// What was not looked at, and what is damaged: a line each.
    pub(super) notices: Vec<String>,
}

impl Ground {
    /// All of `range`, or what of it is free.
    ///
    /// # Errors
    /// In words, where no file system says what is free.
    pub(super) fn of(
        carve: &Carve,
        source: &dyn Source,
        range: Range<u64>,
    ) -> Result<Self, String> {
        if !carve.unallocated {
            let ranges = vec![range];
            return Ok(Ground { ranges, fingerprint: None, told: None, notices: Vec::new() });
        }
        let found = find(source).map_err(|error| error.to_string())?;
        let ranges = within(&found.ranges, &range);
        let mut text = String::new();
        for range in &ranges {
            let _ = write!(text, "{}..{} ", range.start, range.end);
        }
        Ok(Ground {
            told: Some(told(&found, &ranges)),
            notices: found.notices(),
            fingerprint: Some(fingerprint(text.as_bytes())),
            ranges,
        })
    }
}

fn within(ranges: &[Range<u64>], span: &Range<u64>) -> Vec<Range<u64>> {
    let cut = |range: &Range<u64>| range.start.max(span.start)..range.end.min(span.end);
    ranges.iter().map(cut).filter(|range| !range.is_empty()).collect()
}

/// `36.0 MiB in 12 ranges, as ext at byte 0 says`.
fn told(found: &Unallocated, ranges: &[Range<u64>]) -> String {
    let bytes = ranges.iter().map(|range| range.end - range.start).sum();
    let volumes = found.volumes.iter();
    let volumes: Vec<_> =
        volumes.map(|volume| format!("{} at byte {}", volume.kind, volume.offset)).collect();
    let says = match volumes.len() {
        0 => "outside of partitions".to_string(),
        1 => format!("as {} says", volumes[0]),
        _ => format!("as {} say", volumes.join(", ")),
    };
    let (free, count) = (show_bytes(bytes), ranges.len());
    let pieces = if count == 1 { "range" } else { "ranges" };
    format!("{free} in {count} {pieces}, {says}")
}
