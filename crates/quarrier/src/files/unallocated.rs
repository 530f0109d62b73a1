//! The bytes of a source outside of allocated files, for searches and for carving.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_core::source::Source;
use quarrier_files::{Places, Reach, find};

use super::reach_at;
use crate::source::only_in_order;
use crate::{Error, Place, Result};

/// The bytes of a source outside of allocated files: deleted files, free clusters, slack, the
/// structures of file systems, and everything that lies outside of file systems or could not be read.
#[derive(Debug, Clone)]
pub struct Unallocated {
    places: Arc<Places>,
    ranges: Vec<Range<u64>>,
}

impl Unallocated {
    /// Reads the file systems of a source. To `locate` bytes afterwards, the files of lost folders in free
    /// clusters of FAT and exFAT are included if the source is local.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a stream, and if neither a known file system nor a partition table is
    /// found; [`Error::Files`] if the files do not fit in memory.
    pub fn read(place: &Place<'_>, locate: bool, stop: &AtomicBool) -> Result<Self> {
        let source = place.source().ok_or_else(|| only_in_order(place.name().to_string()))?;
        let reach = if locate { reach_at(place, true) } else { Reach::Deleted };
        Self::of(source, reach, stop)
    }

    pub(crate) fn of(source: &dyn Source, reach: Reach, stop: &AtomicBool) -> Result<Self> {
        // Without a file system nothing is allocated, which is hardly what the user means.
        find(source).map_err(with_advice)?;
        let places = Arc::new(Places::read(source, reach, stop)?);
        let ranges = places.unallocated();
        Ok(Unallocated { places, ranges })
    }

    /// The ranges, in order; they do not touch.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// All files, by position.
    pub fn places(&self) -> &Arc<Places> {
        &self.places
    }

    /// Skipped partitions, a line each; they count as unallocated.
    pub fn notices(&self) -> Vec<String> {
        self.places.unallocated_notices()
    }

    /// The unreadable parts of the file systems, a line each; they count as unallocated.
    pub fn damages(&self) -> Vec<String> {
        self.places.unallocated_damages()
    }

    /// The file systems that define the allocated bytes: `according to ext at byte 0`.
    pub(crate) fn according_to(&self) -> String {
        let systems = self.places.systems().iter();
        let systems: Vec<_> = systems
            .map(|system| format!("{} at byte {}", system.kind, system.span.start))
            .collect();
        match systems.len() {
            0 => "outside of partitions".to_string(),
            _ => format!("according to {}", systems.join(", ")),
        }
    }
}

/// Adds the advice to run without `--unallocated` to an error of file systems.
fn with_advice(error: quarrier_files::Error) -> Error {
    match error {
        quarrier_files::Error::FileSystem { source_name: name, offset, found } => {
            let reason = format!("{found}, at byte {offset}; try without --unallocated");
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
