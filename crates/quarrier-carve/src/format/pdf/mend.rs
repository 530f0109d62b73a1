//! Mends fragmented PDFs: the cross-reference has the offset of every object in the whole file, so
//! that their actual places show the lengths of the gaps.

use super::MENDED_ENDS_MAX;
use super::chain::Ending;
use super::object::{SLIP_BYTES, after_comments, object_near, walk};
use super::seam::{Seam, find_seam};
use super::section::{Section, section};
use crate::format::{Format, Verdict};
use crate::mend::{Broken, MendContext};
use crate::view::{Extent, View};

/// Maximum number of sections of a cross-reference to look for.
const SECTIONS_MAX: usize = 64;

/// Something whose offset in the whole file is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    /// The offset in the whole file.
    offset: u64,
    part: BrokenPart,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
/// The thing at a point.
enum BrokenPart {
    /// The object of this number.
    Object(u64),
    /// Something that is this many bytes later in the view than in the file.
    Shifted(u64),
}

/// Returns the fragments of the broken file.
pub(super) fn mend(
    format: &dyn Format,
    view: &mut View<'_>,
    broken: &Broken,
    context: &MendContext<'_>,
) -> Option<Vec<Extent>> {
    let extents = view.extents().to_vec();
    let fragments = context.effort.fragments_max.saturating_sub(1) as u64;
    let reach = context.effort.gap_bytes_max.saturating_mul(fragments);
    let reach = reach.min(context.effort.fuel_bytes / 2).saturating_add(broken.at);
    let mut from = broken.sure;
    for _ in 0..MENDED_ENDS_MAX {
        let ending = Ending::find(view, from..reach)?;
        from = ending.end;
        if context.is_stopped() || view.is_starved() {
            return None;
        }
        if view.offset_of(ending.place).is_none_or(|offset| context.claims.holds(offset)) {
            continue;
        }
        let Some((seams, offsets)) = solve(view, context, &extents, &ending) else { continue };
        let mended = without(&extents, &seams);
        view.look_at(&mended, view.fuel_bytes());
        let is_its_own = is_listed(view, &offsets);
        if let Verdict::Whole { length, .. } = format.validate(view) {
            let end = ending.end - seams.iter().map(|seam| seam.gap).sum::<u64>();
            let cut = crate::view::cut(&mended, length);
            return (length >= end && is_its_own && is_free(&cut[1..], context)).then_some(cut);
        }
        view.look_at(&extents, view.fuel_bytes());
    }
    None
}

/// Whether no other file holds the first bytes of any extent.
fn is_free(extents: &[Extent], context: &MendContext<'_>) -> bool {
    extents.iter().all(|extent| !context.claims.holds(extent.offset))
}

/// Whether the cross-reference lists the objects found here, and thus belongs to this file.
fn is_listed(view: &mut View<'_>, offsets: &[u64]) -> bool {
    let heads = walk(view, 8).heads;
    let listed = heads.iter().filter(|head| {
        let next = offsets.partition_point(|offset| offset + SLIP_BYTES < **head);
        offsets.get(next).is_some_and(|offset| offset.abs_diff(**head) <= SLIP_BYTES)
    });
    listed.count() * 10 >= heads.len() * 9
}

/// Returns `extents` without the gaps.
fn without(extents: &[Extent], seams: &[Seam]) -> Vec<Extent> {
    let mut left: Vec<Extent> = extents.to_vec();
    for seam in seams {
        let mut kept = crate::view::cut(&left, seam.left_at);
        kept.extend(from(&left, seam.left_at.saturating_add(seam.gap)));
        left = kept;
    }
    left
}

/// Returns `extents` without their first `bytes` bytes.
pub(super) fn from(extents: &[Extent], bytes: u64) -> Vec<Extent> {
    let mut skip = bytes;
    let mut kept = Vec::new();
    for extent in extents {
        let skipped = skip.min(extent.length);
        skip -= skipped;
        if extent.length > skipped {
            let (offset, length) = (extent.offset + skipped, extent.length - skipped);
            kept.push(Extent { offset, length });
        }
    }
    kept
}

/// Finds the places at which the file that ends at `ending` is interrupted, and the lengths of the
/// gaps.
fn solve(
    view: &mut View<'_>,
    context: &MendContext<'_>,
    extents: &[Extent],
    ending: &Ending,
) -> Option<(Vec<Seam>, Vec<u64>)> {
    let block = context.block_bytes;
    let (mut points, shift) = points(view, ending, block)?;
    points.push(Point { offset: ending.place - shift, part: BrokenPart::Shifted(shift) });
    points.sort_unstable();
    points.dedup();
    let offsets = points.iter().map(|point| point.offset).collect();
    let mut seams = Vec::new();
    let (mut now, mut last) = (0, 0);
    let (mut right, mut wrong) = (0, 0);
    for point in points {
        let Some(found) = shift_of(view, &point, now, shift, block) else {
            wrong += 1;
            continue;
        };
        right += 1;
        if found > now {
            if seams.len() + 1 >= context.effort.fragments_max {
                return None;
            }
            // In bytes of the view, as if earlier gaps were removed.
            view.look_at(&without(extents, &seams), view.fuel_bytes());
            seams.push(find_seam(view, last..point.offset, found - now, block)?);
            view.look_at(extents, view.fuel_bytes());
            now = found;
        }
        last = point.offset;
    }
    (right > wrong * 8 && now == shift && shift > 0).then_some((seams, offsets))
}

/// Returns the shift of `point` in the view relative to the file; at least `now`.
fn shift_of(view: &mut View<'_>, point: &Point, now: u64, most: u64, block: u64) -> Option<u64> {
    let number = match point.part {
        BrokenPart::Shifted(shift) => return (shift >= now).then_some(shift),
        BrokenPart::Object(number) => number,
    };
    let mut stands = |shift| object_near(view, point.offset + shift, number).is_some();
    if stands(now) {
        return Some(now);
    }
    if stands(most) {
        return Some(most);
    }
    let mut shift = now + block;
    while shift < most {
        if stands(shift) {
            return Some(shift);
        }
        shift += block;
    }
    None
}

/// Returns all points of the cross-reference, and the shift of its last section.
fn points(view: &mut View<'_>, ending: &Ending, block: u64) -> Option<(Vec<Point>, u64)> {
    let mut points = Vec::new();
    let mut seen = Vec::new();
    let mut next = vec![ending.stated];
    let mut last = None;
    while let Some(stated) = next.pop() {
        if seen.contains(&stated) {
            continue;
        }
        seen.push(stated);
        if seen.len() > SECTIONS_MAX {
            return None;
        }
        let (shift, is_last, section) = find_section(view, ending, stated, block)?;
        if is_last {
            last = Some(shift);
        }
        points.push(Point { offset: stated, part: BrokenPart::Shifted(shift) });
        points.extend(
            section.entries.iter().map(|entry| Point {
                offset: entry.offset,
                part: BrokenPart::Object(entry.number),
            }),
        );
        next.extend(section.others);
    }
    let end = ending.place - last?;
    points.retain(|point| point.offset < end);
    Some((points, last?))
}

/// Finds the section that is at `stated` in the whole file. Returns its shift in the view, and
/// whether it is the last before the end.
fn find_section(
    view: &mut View<'_>,
    ending: &Ending,
    stated: u64,
    block: u64,
) -> Option<(u64, bool, Section)> {
    let mut best = None;
    let mut shift = 0;
    while stated.saturating_add(shift) < ending.place {
        if let Ok(section) = section(view, stated + shift) {
            if after_comments(view, section.end) == ending.place {
                return Some((shift, true, section));
            }
            best.get_or_insert((shift, false, section));
        }
        shift += block;
    }
    best
}
