//! The ranges to carve, and what file systems know of them.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_carve::Extent;
use quarrier_carve::folder::fingerprint;
use quarrier_core::source::Source;
use quarrier_files::Places;

use super::Carve;
use crate::Result;
use crate::files::{Unallocated, within};

/// The ranges that are carved.
pub(super) struct Ground {
    pub(super) ranges: Vec<Range<u64>>,
    /// Those of them in which deleted files continue; None: all.
    pub(super) clusters: Option<Vec<Range<u64>>>,
    /// Distinguishes these unallocated ranges from others, if only such ranges are carved.
    pub(super) fingerprint: Option<String>,
    pub(super) free: Option<Free>,
    /// The files of the source, if they are wanted or were read anyway.
    pub(super) places: Option<Arc<Places>>,
    /// Ranges that were skipped, a line each.
    pub(super) notices: Vec<String>,
    /// Damage of file systems, a line each.
    pub(super) damages: Vec<String>,
}

/// Unallocated space, and the file systems that say so.
#[derive(Debug, Clone)]
pub struct Free {
    /// Bytes of it.
    pub bytes: u64,
    /// How many ranges it has.
    pub ranges: usize,
    /// `as ext at byte 0 says`, or several of them.
    pub told_by: String,
}

impl Ground {
    pub(super) fn of(
        carve: &Carve,
        source: &dyn Source,
        range: Range<u64>,
        stop: &AtomicBool,
    ) -> Result<Self> {
        if !carve.unallocated {
            let places = match carve.locates {
                true => Some(Arc::new(Places::read(source, stop)?)),
                false => None,
            };
            return Ok(Ground {
                ranges: vec![range],
                clusters: None,
                fingerprint: None,
                free: None,
                notices: places.as_ref().map_or_else(Vec::new, |places| places.notices()),
                damages: places.as_ref().map_or_else(Vec::new, |places| places.damages().to_vec()),
                places,
            });
        }
        let unallocated = Unallocated::of(source, stop)?;
        let ranges = within(unallocated.ranges(), &range);
        let places = Arc::clone(unallocated.places());
        let mut text = String::new();
        for range in &ranges {
            let _ = write!(text, "{}..{} ", range.start, range.end);
        }
        let free = Free {
            bytes: ranges.iter().map(|range| range.end - range.start).sum(),
            ranges: ranges.len(),
            told_by: unallocated.said_by(),
        };
        Ok(Ground {
            clusters: Some(within(&places.unallocated_clusters(), &range)),
            free: Some(free),
            notices: unallocated.notices(),
            damages: unallocated.damages(),
            fingerprint: Some(fingerprint(text.as_bytes())),
            ranges,
            places: Some(places),
        })
    }

    /// The extents of files in pieces, each in the order of the file.
    pub(super) fn in_pieces(&self) -> Vec<Box<[Extent]>> {
        let files = self.places.iter().flat_map(|places| places.in_pieces());
        let extent =
            |one: &quarrier_files::Extent| Extent { offset: one.offset, length: one.length };
        files.map(|extents| extents.iter().map(extent).collect()).collect()
    }
}
