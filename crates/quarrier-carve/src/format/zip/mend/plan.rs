//! Compares the places in the directory with the actual ones.

use std::ops::Range;

use super::super::directory::{End, Entry};
use super::super::local::{HEADER_BYTES, Local};
use super::border::{self, Data};
use super::{END_BYTES, Hop, Sight};
use crate::view::{Extent, View};

/// Maximum number of members to locate.
const MEMBERS_MAX: usize = 1 << 16;
/// Maximum number of members whose header is searched for in fragments between the first and the
/// last one.
const SEARCHES_MAX: usize = 64;

/// A member in the directory.
#[derive(Debug, Clone, Copy)]
struct Planned {
    entry: Entry,
    /// The place of its name in the source, within the directory.
    name_place: u64,
}

/// An archive with a known end.
pub(super) struct Plan {
    end: End,
    /// The shift of its last fragment from its place without gaps.
    shift: i64,
    /// In the order of the file.
    members: Vec<Planned>,
    /// The border of the directory's last fragment, if it is within the directory.
    border_in_directory: Option<u64>,
}

impl Plan {
    /// Makes the plan of the archive whose end record is at `place`, if it may belong to the
    /// archive that begins with `first`.
    pub(super) fn of_end(sight: &mut Sight<'_, '_>, place: u64, first: &Local) -> Option<Plan> {
        if sight.context.claims.holds(place) {
            return None;
        }
        let end = End::read_narrow(&mut sight.raw, place)?;
        let end_at = end.offset.checked_add(end.size)?;
        let comment_bytes = end.end - place - END_BYTES;
        let shift =
            i64::try_from(place).ok()? - i64::try_from(sight.origin.checked_add(end_at)?).ok()?;
        let is_far = shift.unsigned_abs() > sight.context.effort.gap_bytes_max;
        let is_across = shift < 0 && place + END_BYTES + comment_bytes > sight.origin;
        if end.entries == 0
            || end.size < end.entries * 46
            || shift == 0
            || shift.unsigned_abs() % sight.block_bytes != 0
            || is_far
            || is_across
        {
            return None;
        }
        let end = End { end: end_at + END_BYTES + comment_bytes, ..end };
        let mut plan = Plan { end, shift, members: Vec::new(), border_in_directory: None };
        let borders = borders(end.offset, end_at, sight.block_bytes);
        let is_read = plan.read(sight, None)
            || borders.into_iter().any(|border| plan.read(sight, Some(border)));
        plan.members.sort_by_key(|member| member.entry.offset);
        let one = plan.members.first()?;
        let is_first = one.entry.offset == 0
            && one.entry.name_bytes == first.name_bytes
            && one.entry.method == first.method
            && (first.crc == 0 || one.entry.crc == first.crc)
            && is_header(sight, one, 0);
        (is_read && is_first).then_some(plan)
    }

    /// The length of the archive in bytes.
    pub(super) fn length(&self) -> u64 {
        self.end.end
    }

    /// Reads the directory, which continues in another fragment at `border`. Returns whether it is
    /// complete.
    fn read(&mut self, sight: &mut Sight<'_, '_>, border: Option<u64>) -> bool {
        self.members.clear();
        self.border_in_directory = border;
        let start = self.end.offset;
        let border = border.unwrap_or(start);
        let mut directory = two(sight, start..border, 0, border..start + self.end.size, self.shift);
        let mut at = 0;
        while at < self.end.size && self.members.len() < MEMBERS_MAX {
            let Some(entry) = Entry::read(&mut directory, at) else { return false };
            let Some(name_place) = directory.offset_of(entry.name_at) else { return false };
            self.members.push(Planned { entry, name_place });
            at = entry.end;
        }
        at == self.end.size && self.members.len() as u64 & 0xFFFF == self.end.entries & 0xFFFF
    }

    /// Returns the places at which the file continues.
    pub(super) fn hops(&self, sight: &mut Sight<'_, '_>) -> Option<Vec<Hop>> {
        if let Some(at) = self.border_in_directory {
            return Some(vec![Hop { at, shift: self.shift }]);
        }
        let shifts = self.shifts(sight);
        let mut hops = Vec::new();
        let (mut from, mut shift) = (0, 0);
        // Anchors: the members whose header was found, and finally the directory.
        let anchors = shifts.iter().enumerate().filter_map(|(k, s)| Some((k, (*s)?)));
        for (to, found) in anchors.chain([(self.members.len(), self.shift)]) {
            if found != shift {
                hops.extend(self.cross(sight, from..to, shift, found)?);
            }
            (from, shift) = (to, found);
        }
        Some(hops)
    }

    /// Returns the shift of the fragment with each member's header.
    fn shifts(&self, sight: &mut Sight<'_, '_>) -> Vec<Option<i64>> {
        let count = self.members.len();
        let mut shifts = vec![None; count];
        let mut front = 0;
        while front < count && is_header(sight, &self.members[front], 0) {
            shifts[front] = Some(0);
            front += 1;
        }
        let mut back = count;
        while back > front && is_header(sight, &self.members[back - 1], self.shift) {
            back -= 1;
            shifts[back] = Some(self.shift);
        }
        let mut last = 0;
        let mut searches = SEARCHES_MAX;
        for (member, shift) in self.members[front..back].iter().zip(&mut shifts[front..back]) {
            *shift = Some(last).filter(|last| is_header(sight, member, *last));
            if shift.is_none() && searches > 0 {
                searches -= 1;
                let mut between = between(last, self.shift, sight.block_bytes);
                *shift = between.find(|shift| is_header(sight, member, *shift));
            }
            last = shift.unwrap_or(last);
        }
        shifts
    }

    /// Finds the hops from the header of the first member of `range`, in the fragment with shift
    /// `from`, to the end of the last one, in the fragment with shift `to`.
    fn cross(
        &self,
        sight: &mut Sight<'_, '_>,
        range: Range<usize>,
        from: i64,
        to: i64,
    ) -> Option<Vec<Hop>> {
        let hops_max = sight.context.effort.fragments_max.saturating_sub(1).max(1);
        for index in range {
            let member = &self.members[index];
            let next = self.members.get(index + 1).map_or(self.end.offset, |m| m.entry.offset);
            let header_at = member.entry.offset;
            if is_header(sight, member, from) {
                let place = sight.place(header_at, from)?;
                let local = Local::read(&mut sight.raw, place)?;
                let data_at = header_at + (local.data_at - place);
                let data = Data::of(&member.entry, data_at)?;
                if let Some(hops) = border::find(sight, &data, from, to, hops_max) {
                    return Some(hops);
                }
                // The whole member may be before the border, with other data after it.
                if data.end > next || !border::is_right(sight, &data, from) {
                    return None;
                }
                let after = borders(data.end, next, sight.block_bytes).into_iter().next();
                let is_next_there =
                    self.members.get(index + 1).is_none_or(|next| is_header(sight, next, to));
                if let Some(at) = after.filter(|_| is_next_there) {
                    return Some(vec![Hop { at, shift: to }]);
                }
            } else {
                // The border is in the header.
                let header_bytes = HEADER_BYTES + u64::from(member.entry.name_bytes) + 0xFFFF;
                let end = next.min(header_at + header_bytes);
                for at in borders(header_at, end, sight.block_bytes) {
                    let mut header = two(sight, header_at..at, from, at..end, to);
                    let Some(local) = Local::read(&mut header, 0) else { continue };
                    let data_at = header_at + local.data_at;
                    let Some(data) = Data::of(&member.entry, data_at) else { continue };
                    if at <= data.at && border::is_right(sight, &data, to) {
                        return Some(vec![Hop { at, shift: to }]);
                    }
                }
                return None;
            }
        }
        None
    }
}

/// Makes a view of two parts of the file, each in the fragment with its shift.
fn two<'s>(
    sight: &Sight<'_, 's>,
    first: Range<u64>,
    first_shift: i64,
    second: Range<u64>,
    second_shift: i64,
) -> View<'s> {
    let extent = |range: Range<u64>, shift| Extent {
        offset: sight.place(range.start, shift).unwrap_or(u64::MAX),
        length: range.end.saturating_sub(range.start),
    };
    let extents = [extent(first, first_shift), extent(second, second_shift)];
    let mut view = sight.raw.another();
    view.look_at(&extents, u64::MAX);
    view
}

/// Whether the local header of `member` is at its place in the fragment with this shift.
fn is_header(sight: &mut Sight<'_, '_>, member: &Planned, shift: i64) -> bool {
    let Some(place) = sight.place(member.entry.offset, shift) else { return false };
    if !sight.raw.is_at(place, b"PK\x03\x04") {
        return false;
    }
    let Some(local) = Local::read(&mut sight.raw, place) else { return false };
    let bytes = usize::from(local.name_bytes);
    let name = sight.raw.take(place + HEADER_BYTES, bytes).map(<[u8]>::to_vec);
    local.name_bytes == member.entry.name_bytes
        && local.method == member.entry.method
        && name.as_deref() == sight.raw.take(member.name_place, bytes)
}

/// Returns the multiples of `block` from `from` to `to`, both included.
pub(super) fn borders(from: u64, to: u64, block: u64) -> Vec<u64> {
    (from.div_ceil(block)..=to / block).map(|count| count * block).collect()
}

/// Returns the shifts between two others, those nearest to the first one first.
pub(super) fn between(from: i64, to: i64, block: u64) -> impl Iterator<Item = i64> {
    let block = i64::try_from(block).unwrap_or(i64::MAX);
    let step = if to < from { -block } else { block };
    let count = from.abs_diff(to) / block.unsigned_abs().max(1);
    (1..count as i64).map(move |n| from + n * step)
}
