//! Finds borders in stored members.
//!
//! Stored bytes do not show where such a member continues wrongly. But the checksum of concatenated
//! bytes follows from the checksums of the parts, so that all borders can be tried without reading
//! much twice.

use super::border::Data;
use super::plan::{between, borders};
use super::{Hop, Sight};
use crate::crc32::Appended;

/// Maximum number of pairs of borders to try, for all places of the fragment between them: with
/// more, one would match by chance.
const PAIRS_MAX: u64 = 1 << 18;

/// Finds the hops, at most `hops_max`, by which the data change from one shift to another.
pub(super) fn find(
    sight: &mut Sight<'_, '_>,
    data: &Data,
    (from, to): (i64, i64),
    hops_max: usize,
) -> Option<Vec<Hop>> {
    let borders = borders(data.at, data.end, sight.block_bytes);
    let before = before(sight, data, &borders, from);
    let after = after(sight, data, &borders, to);
    let appended: Vec<_> = borders.iter().map(|at| Appended::new(data.end - at)).collect();
    let is_right = |crc: Option<u32>, index: usize| {
        let (Some(crc), Some(rest)) = (crc, after[index]) else { return false };
        appended[index].joined(crc, rest) == data.crc
    };
    if let Some(index) = (0..borders.len()).find(|index| is_right(before[*index], *index)) {
        return Some(vec![Hop { at: borders[index], shift: to }]);
    }
    let count = borders.len() as u64;
    let shifts = from.abs_diff(to) / sight.block_bytes;
    if hops_max < 2 || count * count / 2 * shifts > PAIRS_MAX {
        return None;
    }
    let block = Appended::new(sight.block_bytes);
    for shift in between(from, to, sight.block_bytes) {
        let blocks: Vec<Option<u32>> =
            borders.windows(2).map(|pair| sight.crc(pair[0]..pair[1], shift)).collect();
        for (first, crc) in before.iter().enumerate() {
            let mut crc = *crc;
            for second in first + 1..borders.len() {
                crc = joined(crc, blocks[second - 1], block);
                if is_right(crc, second) {
                    let hop = |at: usize, shift| Hop { at: borders[at], shift };
                    return Some(vec![hop(first, shift), hop(second, to)]);
                }
            }
        }
    }
    None
}

/// Returns the checksum of all bytes before each border, in the fragment with this shift; `None` if
/// the source has no such bytes.
fn before(sight: &mut Sight<'_, '_>, data: &Data, borders: &[u64], shift: i64) -> Vec<Option<u32>> {
    let (mut crc, mut start) = (Some(0), data.at);
    let mut all = Vec::with_capacity(borders.len());
    for at in borders {
        crc = joined(crc, sight.crc(start..*at, shift), Appended::new(at - start));
        start = *at;
        all.push(crc);
    }
    all
}

/// Returns the checksum of all bytes after each border, in the fragment with this shift; `None` if
/// the source has no such bytes.
fn after(sight: &mut Sight<'_, '_>, data: &Data, borders: &[u64], shift: i64) -> Vec<Option<u32>> {
    let (mut crc, mut end) = (Some(0), data.end);
    let mut all = vec![None; borders.len()];
    for (at, slot) in borders.iter().zip(&mut all).rev() {
        crc = joined(sight.crc(*at..end, shift), crc, Appended::new(data.end - end));
        (*slot, end) = (crc, *at);
    }
    all
}

fn joined(first: Option<u32>, second: Option<u32>, appended: Appended) -> Option<u32> {
    Some(appended.joined(first?, second?))
}
