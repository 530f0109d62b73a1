//! The ranges to carve: a whole range, or its free parts according to the file systems.

use std::fmt::Write;
use std::ops::Range;

use quarrier_carve::folder::fingerprint;
use quarrier_core::source::Source;
use quarrier_files::unallocated::{Unallocated, find};

use super::Carve;
use crate::{Error, Result};

/// The ranges that are carved.
pub(super) struct Ground {
    pub(super) ranges: Vec<Range<u64>>,
    /// Distinguishes these free ranges from others, if only free ranges are carved.
    pub(super) fingerprint: Option<String>,
    pub(super) free: Option<Free>,
    /// Ranges that were skipped and damage, a line each.
    pub(super) notices: Vec<String>,
}

/// Free space, and the file systems that declare it free.
#[derive(Debug, Clone)]
pub struct Free {
    /// Bytes of it.
    pub bytes: u64,
    /// How many ranges it has.
    pub ranges: usize,
    /// `ext at byte 0 says`, or several of them.
    pub told_by: String,
}

impl Ground {
    pub(super) fn of(carve: &Carve, source: &dyn Source, range: Range<u64>) -> Result<Self> {
        if !carve.unallocated {
            let ranges = vec![range];
            return Ok(Ground { ranges, fingerprint: None, free: None, notices: Vec::new() });
        }
        let found = find(source).map_err(with_advice)?;
        let ranges = within(&found.ranges, &range);
        let mut text = String::new();
        for range in &ranges {
            let _ = write!(text, "{}..{} ", range.start, range.end);
        }
        Ok(Ground {
            free: Some(free(&found, &ranges)),
            notices: found.notices(),
            fingerprint: Some(fingerprint(text.as_bytes())),
            ranges,
        })
    }
}

/// An error of file systems, with the way to do without them.
fn with_advice(error: quarrier_files::Error) -> Error {
    match error {
        quarrier_files::Error::FileSystem { source_name: name, offset, found } => {
            let reason =
                format!("{found}, at byte {offset}; carve all of it, without --unallocated");
            Error::Unsupported { name, reason }
        }
        error => error.into(),
    }
}

fn within(ranges: &[Range<u64>], span: &Range<u64>) -> Vec<Range<u64>> {
    let cut = |range: &Range<u64>| range.start.max(span.start)..range.end.min(span.end);
    ranges.iter().map(cut).filter(|range| !range.is_empty()).collect()
}

fn free(found: &Unallocated, ranges: &[Range<u64>]) -> Free {
    let volumes = found.volumes.iter();
    let volumes: Vec<_> =
        volumes.map(|volume| format!("{} at byte {}", volume.kind, volume.offset)).collect();
    let told_by = match volumes.len() {
        0 => "outside of partitions".to_string(),
        1 => format!("as {} says", volumes[0]),
        _ => format!("as {} say", volumes.join(", ")),
    };
    let bytes = ranges.iter().map(|range| range.end - range.start).sum();
    Free { bytes, ranges: ranges.len(), told_by }
}
