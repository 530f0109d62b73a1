//! Which objects make the log.

use std::collections::{BTreeMap, BTreeSet};

use super::PART_BYTES_MAX;
use super::name::Name;

/// A complete segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlannedSegment {
    pub(super) first: u64,
    pub(super) next: u64,
    pub(super) salt: u64,
    pub(super) name: Name,
}

/// A part of the last segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlannedPart {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) name: Name,
}

/// The parts of the last segment: each begins at or before the end of the one before it, and ends after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlannedTail {
    pub(super) first: u64,
    pub(super) salt: u64,
    pub(super) parts: Vec<PlannedPart>,
}

impl PlannedTail {
    pub(super) fn end(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.end)
    }
}

/// The objects of the log, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) segments: Vec<PlannedSegment>,
    pub(super) tail: Option<PlannedTail>,
}

impl Plan {
    /// Returns the mark after the last complete segment; None without any.
    pub(super) fn next_mark(&self) -> Option<u64> {
        self.segments.last().map(|segment| segment.next)
    }
}

/// Chooses the objects. Segments before the mark `removed` may be missing, as retention removes them.
///
/// # Errors
/// Why the objects are not those of one log.
pub(super) fn plan(objects: &BTreeSet<Name>, removed: u64) -> Result<Plan, String> {
    let (oldest, mut plan) = (removed.max(1), Plan::default());
    for name in objects {
        let Name::Segment { first, next, salt, .. } = *name else { continue };
        if next <= first || plan.segments.last().is_some_and(|last| last.first == first) {
            return Err(format!("{name}: contradicts its name, or another object's"));
        }
        begin(&mut plan, (first, oldest), name)?;
        plan.segments.push(PlannedSegment { first, next, salt, name: *name });
    }
    let mut tails: BTreeMap<(u64, u64), Vec<PlannedPart>> = BTreeMap::new();
    for name in objects {
        let Name::Part { first, salt, start, end, .. } = *name else { continue };
        // Parts of a segment that is complete remain for a moment.
        if plan.next_mark().is_none_or(|next| first >= next) {
            if end <= start || end - start > PART_BYTES_MAX {
                return Err(format!("{name}: contradicts its name"));
            }
            let part = PlannedPart { start, end, name: *name };
            tails.entry((first, salt)).or_default().push(part);
        }
    }
    for ((first, salt), parts) in tails {
        let Some(name) = parts.first().map(|part| part.name) else { continue };
        if plan.tail.as_ref().is_some_and(|tail| tail.first == first || first > oldest) {
            return Err(format!("{name}: belongs to another log, or parts before it are missing"));
        }
        begin(&mut plan, (first, oldest), &name)?;
        plan.tail = Some(PlannedTail { first, salt, parts: cover(parts)? });
    }
    Ok(plan)
}

/// Continues the log with the segment of this first mark, or begins it anew there, if no table needs what is before.
fn begin(plan: &mut Plan, (first, oldest): (u64, u64), name: &Name) -> Result<(), String> {
    match plan.next_mark() {
        Some(next) if next == first => {}
        _ if first <= oldest => plan.segments.clear(),
        next => {
            let from = next.unwrap_or(oldest);
            return Err(format!("{name}: the segment of mark {from}, before it, is missing"));
        }
    }
    Ok(())
}

/// Chooses parts that cover the segment without a gap.
fn cover(mut parts: Vec<PlannedPart>) -> Result<Vec<PlannedPart>, String> {
    parts.sort_unstable_by_key(|part| (part.start, std::cmp::Reverse(part.end)));
    let mut chosen: Vec<PlannedPart> = Vec::new();
    let (mut at, mut best): (u64, Option<PlannedPart>) = (0, None);
    for part in parts {
        if part.start > at {
            // Nothing better begins early enough.
            if let Some(best) = best.take().filter(|best| best.end > at) {
                at = best.end;
                chosen.push(best);
            }
            if part.start > at {
                return Err(format!(
                    "{}: the bytes from {at} on, before it, are missing",
                    part.name
                ));
            }
        }
        if part.end > best.map_or(at, |best| best.end.max(at)) {
            best = Some(part);
        }
    }
    chosen.extend(best.filter(|best| best.end > at));
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(first: u64, next: u64) -> Name {
        Name::Segment { first, next, salt: first * 10, sum: 0 }
    }

    fn part(first: u64, start: u64, end: u64) -> Name {
        Name::Part { first, salt: first * 10, start, end, sum: 0 }
    }

    /// The first marks of segments; that of the tail, with the ends of its parts.
    type Marks = (Vec<u64>, Option<(u64, Vec<u64>)>);

    fn planned(objects: &[Name], removed: u64) -> Result<Marks, String> {
        let plan = plan(&objects.iter().copied().collect(), removed)?;
        let firsts = plan.segments.iter().map(|it| it.first).collect();
        let ends = |tail: &PlannedTail| tail.parts.iter().map(|it| it.end).collect();
        Ok((firsts, plan.tail.map(|tail| (tail.first, ends(&tail)))))
    }

    #[test]
    fn segments_and_the_tail_follow_each_other() {
        assert_eq!(planned(&[], 0), Ok((vec![], None)));
        let all = [segment(1, 5), segment(5, 9), part(9, 0, 10), part(9, 10, 20)];
        assert_eq!(planned(&all, 0), Ok((vec![1, 5], Some((9, vec![10, 20])))));
        // Parts of a complete segment remain for a moment.
        let all = [segment(1, 5), part(1, 0, 10), part(5, 0, 7)];
        assert_eq!(planned(&all, 0), Ok((vec![1], Some((5, vec![7])))));
        assert_eq!(planned(&[part(1, 0, 10)], 0), Ok((vec![], Some((1, vec![10])))));
        // Retention removes the oldest, even if they were never copied.
        assert_eq!(planned(&[segment(5, 9)], 5), Ok((vec![5], None)));
        assert_eq!(planned(&[segment(1, 5), segment(7, 9)], 8), Ok((vec![7], None)));
        let all = [segment(1, 5), part(5, 0, 3), part(7, 0, 2)];
        assert_eq!(planned(&all, 7), Ok((vec![], Some((7, vec![2])))));
        for (wrong, removed) in [
            (vec![segment(2, 5)], 0),
            (vec![segment(1, 5), segment(6, 9)], 5),
            (vec![segment(1, 5), segment(4, 9)], 0),
            (vec![segment(1, 1)], 0),
            (vec![segment(1, 5), part(6, 0, 1)], 0),
            (vec![segment(1, 5), part(5, 1, 2)], 0),
            (vec![part(1, 0, 2), part(1, 3, 4)], 0),
            (vec![part(1, 3, 3)], 0),
            (vec![part(1, 0, PART_BYTES_MAX + 1)], 0),
            (vec![part(1, 0, 2), Name::Part { first: 1, salt: 3, start: 0, end: 2, sum: 0 }], 0),
            (vec![segment(1, 5), Name::Segment { first: 1, next: 5, salt: 3, sum: 0 }], 0),
        ] {
            assert!(planned(&wrong, removed).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_merged_part_replaces_those_that_remain_beside_it() {
        let all = [part(1, 0, 8), part(1, 0, 4), part(1, 4, 8), part(1, 8, 9), part(1, 6, 9)];
        assert_eq!(planned(&all, 0), Ok((vec![], Some((1, vec![8, 9])))));
        let all = [part(1, 0, 4), part(1, 2, 6), part(1, 3, 9), part(1, 9, 10)];
        assert_eq!(planned(&all, 0), Ok((vec![], Some((1, vec![4, 9, 10])))));
    }
}
