//! The ranges to carve, and the file systems' data about them.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_carve::Extent;
use quarrier_carve::folder::fingerprint;
use quarrier_core::source::Source;
use quarrier_files::{Places, Reach};

use super::Carve;
use crate::Result;
use crate::files::{Unallocated, within};

/// The ranges to carve.
pub(super) struct Ground {
    pub(super) ranges: Vec<Range<u64>>,
    /// The parts of them in which deleted files continue; `None` for all.
    pub(super) clusters: Option<Vec<Range<u64>>>,
    /// Distinguishes these unallocated ranges from others, if only such ranges are carved.
    pub(super) fingerprint: Option<String>,
    pub(super) free: Option<Free>,
    /// The files of the source, if they are requested or were read anyway.
    pub(super) places: Option<Arc<Places>>,
    /// Skipped ranges, a line each.
    pub(super) notices: Vec<String>,
    /// Damage to file systems, a line each.
    pub(super) damages: Vec<String>,
}

/// Unallocated space, and the file systems that define it.
#[derive(Debug, Clone)]
pub struct Free {
    /// Its size in bytes.
    pub bytes: u64,
    /// The number of ranges.
    pub ranges: usize,
    /// `according to ext at byte 0`, or several such file systems.
    pub according_to: String,
}

impl Ground {
    pub(super) fn of(
        carve: &Carve,
        source: &dyn Source,
        reach: Reach,
        range: Range<u64>,
        stop: &AtomicBool,
    ) -> Result<Self> {
        if !carve.unallocated {
            let places = match carve.locates {
                true => Some(Arc::new(Places::read(source, reach, stop)?)),
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
        let unallocated = Unallocated::of(source, reach, stop)?;
        let ranges = within(unallocated.ranges(), &range);
        let places = Arc::clone(unallocated.places());
        let mut text = String::new();
        for range in &ranges {
            let _ = write!(text, "{}..{} ", range.start, range.end);
        }
        let free = Free {
            bytes: ranges.iter().map(|range| range.end - range.start).sum(),
            ranges: ranges.len(),
            according_to: unallocated.according_to(),
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

    /// The extents of fragmented files, each in the order of the file.
    pub(super) fn in_pieces(&self) -> Vec<Box<[Extent]>> {
        let files = self.places.iter().flat_map(|places| places.in_pieces());
        let extent =
            |one: &quarrier_files::Extent| Extent { offset: one.offset, length: one.length };
        files.map(|extents| extents.iter().map(extent).collect()).collect()
    }
}
