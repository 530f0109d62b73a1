//! The bytes of a source that no allocated file has, for searches and for carving.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_core::source::Source;
use quarrier_files::{Places, find};

use crate::source::only_in_order;
use crate::{Error, Place, Result};

/// The bytes of a source that no allocated file has: deleted files, free clusters, slack, the
/// structures of file systems, and everything outside of file systems or that could not be read.
#[derive(Debug, Clone)]
pub struct Unallocated {
    places: Arc<Places>,
    ranges: Vec<Range<u64>>,
}

impl Unallocated {
    /// Reads the file systems of a source.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a stream, and where there is neither a file system that is known here
    /// nor a partition table; [`Error::Files`] if there are more files than fit into memory.
    pub fn read(place: &Place<'_>, stop: &AtomicBool) -> Result<Self> {
        let source = place.source().ok_or_else(|| only_in_order(place.name().to_string()))?;
        Self::of(source, stop)
    }

    pub(crate) fn of(source: &dyn Source, stop: &AtomicBool) -> Result<Self> {
        // Without any file system nothing is allocated, which hardly anybody means.
        find(source).map_err(with_advice)?;
        let places = Arc::new(Places::read(source, stop)?);
        let ranges = places.unallocated();
        Ok(Unallocated { places, ranges })
    }

    /// The bytes, as ranges in order that do not touch.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// All files by their places.
    pub fn places(&self) -> &Arc<Places> {
        &self.places
    }

    /// Skipped partitions, which count as unallocated, a line each.
    pub fn notices(&self) -> Vec<String> {
        self.places.unallocated_notices()
    }

    /// The unreadable parts of the file systems, which count as unallocated, a line each.
    pub fn damages(&self) -> Vec<String> {
        self.places.unallocated_damages()
    }

    /// The file systems that decide which bytes are allocated: `as ext at byte 0 says`.
    pub(crate) fn said_by(&self) -> String {
        let systems = self.places.systems().iter();
        let systems: Vec<_> = systems
            .map(|system| format!("{} at byte {}", system.kind, system.span.start))
            .collect();
        match systems.len() {
            0 => "outside of partitions".to_string(),
            1 => format!("as {} says", systems[0]),
            _ => format!("as {} say", systems.join(", ")),
        }
    }
}

/// An error of file systems, with the way to do without them.
fn with_advice(error: quarrier_files::Error) -> Error {
    match error {
        quarrier_files::Error::FileSystem { source_name: name, offset, found } => {
            let reason =
                format!("{found}, at byte {offset}; take all of it, without --unallocated");
            Error::Unsupported { name, reason }
        }
        error => error.into(),
    }
}

/// The parts of `ranges` in `span`.
pub(crate) fn within(ranges: &[Range<u64>], span: &Range<u64>) -> Vec<Range<u64>> {
    let cut = |range: &Range<u64>| range.start.max(span.start)..range.end.min(span.end);
    ranges.iter().map(cut).filter(|range| !range.is_empty()).collect()
}
