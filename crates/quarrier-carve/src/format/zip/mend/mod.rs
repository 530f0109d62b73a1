//! Mends archives in fragments.
//!
//! The end record states the length of the archive, so that its place shows the total length of the
//! gaps. The directory states the place of each local header in the file, so that the header's
//! actual place shows its fragment. Only members across a border are read, to find the border by
//! their checksum.

mod border;
mod plan;
mod stored;

use std::ops::Range;

use crate::crc32;
use crate::mend::Broken;
use crate::mend::MendContext;
use crate::view::{Extent, SECTOR_BYTES, View};

use super::directory::END_BYTES;
use super::local::Local;
use plan::Plan;

/// Maximum distance from the beginning to an end record, as a multiple of the longest gap.
const REACH_GAPS: u64 = 4;
/// Maximum number of end records to read.
const ENDS_MAX: usize = 16;

/// A place at which a file continues: its bytes from `at` on are `shift` bytes later than without
/// gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hop {
    at: u64,
    shift: i64,
}

/// The whole source, with offsets from the beginning of a file.
struct Sight<'v, 's> {
    raw: View<'s>,
    /// The offset of the file in the source.
    origin: u64,
    block_bytes: u64,
    context: &'v MendContext<'v>,
}

impl Sight<'_, '_> {
    /// Returns the offset in the source of byte `at` of the file, in the fragment with this shift.
    fn place(&self, at: u64, shift: i64) -> Option<u64> {
        self.origin.checked_add(at)?.checked_add_signed(shift)
    }

    /// Returns the checksum of these bytes of the file, in the fragment with this shift.
    fn crc(&mut self, range: Range<u64>, shift: i64) -> Option<u32> {
        let (from, to) = (self.place(range.start, shift)?, self.place(range.end, shift)?);
        crc32::of_range(&mut self.raw, from..to)
    }

    fn is_over(&self) -> bool {
        self.raw.is_starved() || self.context.is_stopped()
    }
}

/// Finds the extents of the archive that begins with `view`. If it is not aligned to blocks like
/// the other files, it may be aligned to sectors.
pub(super) fn mend(
    view: &View<'_>,
    broken: &Broken,
    context: &MendContext<'_>,
) -> Option<Vec<Extent>> {
    mend_in_blocks(view, broken, context, context.block_bytes).or_else(|| {
        let is_coarser = context.block_bytes > SECTOR_BYTES;
        is_coarser.then(|| mend_in_blocks(view, broken, context, SECTOR_BYTES))?
    })
}

fn mend_in_blocks(
    view: &View<'_>,
    broken: &Broken,
    context: &MendContext<'_>,
    block_bytes: u64,
) -> Option<Vec<Extent>> {
    let origin = view.offset_of(0)?;
    let source = view.source();
    let mut raw = view.another();
    let fuel = context.effort.fuel_bytes.saturating_mul(2 + REACH_GAPS);
    raw.look_at(&[Extent { offset: 0, length: source.length() }], fuel);
    let mut sight = Sight { raw, origin, block_bytes, context };
    let first = Local::read(&mut sight.raw, origin)?;
    let gap = context.effort.gap_bytes_max;
    let reach = origin.saturating_add(gap.saturating_mul(REACH_GAPS)).min(source.length());
    let after = origin.checked_add(broken.sure)?..reach;
    let before = origin.saturating_sub(gap)..origin;
    let mut ends = 0;
    for range in [after, before] {
        let mut at = range.start;
        while at < range.end {
            for place in context.archive_ends.next(&mut sight.raw, &mut at, range.end) {
                let Some(plan) = Plan::of_end(&mut sight, place, &first) else { continue };
                if let Some(hops) = plan.hops(&mut sight) {
                    return Some(extents(view, context, &hops, origin, plan.length()));
                }
                ends += 1;
            }
            if ends >= ENDS_MAX || sight.is_over() {
                return None;
            }
        }
    }
    None
}

/// Returns the extents of a file of `length` bytes that continues at `hops`.
fn extents(
    view: &View<'_>,
    context: &MendContext<'_>,
    hops: &[Hop],
    origin: u64,
    length: u64,
) -> Vec<Extent> {
    let mut extents = view.extents().to_vec();
    for hop in hops {
        let place = (origin + hop.at).saturating_add_signed(hop.shift);
        extents = context.continued(&extents, hop.at, place);
    }
    crate::view::cut(&extents, length)
}
