//! Removes visible gaps: text, zeros or noise in a file that does not contain such data otherwise.
//!
//! If a format has neither checksums nor a structure that distinguishes two blocks, it is
//! impossible to try each place for the rest of a file. But much of the data between fragments is
//! recognisable, and a check shows whether the file is whole without these data.

use super::MendContext;
use super::foreign::{is_noise, text_sectors};
use crate::view::{Extent, SECTOR_BYTES, View};

/// The kinds of bytes to look for in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Alien {
    /// Whether zeros are foreign to the file.
    pub(crate) zeros: bool,
    /// Whether random bytes are foreign to the file.
    pub(crate) noise: bool,
}

/// A format's check of a file without its gaps.
pub(crate) trait Rest {
    /// Returns the length of the file in `view`, if it is whole.
    fn check(&self, view: &mut View<'_>) -> Option<u64>;

    /// Returns whether to remove either all stretches at once or none: for an expensive check, and
    /// a format whose files never contain such data.
    fn has_none(&self) -> bool {
        false
    }

    /// Returns whether both sides of byte `joint` belong together, for formats where
    /// [`check`](Rest::check) cannot decide.
    fn fits(&self, view: &mut View<'_>, joint: u64) -> bool {
        let _ = (view, joint);
        true
    }
}

/// Maximum number of stretches to try; if there are more, they belong to the file.
const STRETCHES_MAX: usize = 8;
/// Maximum number of blocks from the end of the search to the end of a gap that begins before it.
const AFTER_BLOCKS: u64 = 64;
/// Maximum number of bytes to examine.
const LOOKED_BYTES_MAX: u64 = 64 << 20;

/// Returns the extents of a file without one or two stretches of `alien` data. These consist of
/// whole blocks and begin before byte `end`.
pub(crate) fn without_gaps(
    view: &mut View<'_>,
    context: &MendContext<'_>,
    end: u64,
    alien: Alien,
    rest: &dyn Rest,
) -> Option<Vec<Extent>> {
    let extents = view.extents().to_vec();
    let stretches = stretches(view, context, end, alien);
    if stretches.is_empty() || stretches.len() > STRETCHES_MAX {
        return None;
    }
    let mut fuel = context.effort.fuel_bytes.saturating_mul(2);
    let ones = stretches.iter().map(|one| vec![*one]);
    let twos = stretches.iter().enumerate().flat_map(|(index, one)| {
        stretches[index + 1..].iter().map(move |other| vec![*one, *other])
    });
    let tried: Vec<_> = match rest.has_none() {
        true => vec![stretches.clone()],
        false => ones.chain(twos).collect(),
    };
    for gaps in tried {
        if fuel == 0 || context.is_stopped() {
            return None;
        }
        let left = taken_out(&extents, &gaps);
        view.look_at(&left, fuel);
        let length = rest.check(view).filter(|_| !view.is_starved());
        let mut joint = 0;
        let joints = left[..gaps.len().min(left.len())].iter().map(|extent| {
            joint += extent.length;
            joint
        });
        // A file that ends before the last gap does not need its removal.
        let is_it = length.is_some_and(|length| {
            joints.into_iter().all(|joint| joint < length && rest.fits(view, joint))
        });
        fuel = view.fuel_bytes();
        if let Some(length) = length.filter(|_| is_it) {
            return Some(crate::view::cut(&left, length));
        }
    }
    None
}

/// Returns the start and end of each stretch of alien blocks between other data, in bytes of the
/// file.
fn stretches(
    view: &mut View<'_>,
    context: &MendContext<'_>,
    end: u64,
    alien: Alien,
) -> Vec<(u64, u64)> {
    let block = context.block_bytes;
    let last = end.saturating_add(AFTER_BLOCKS * block).min(LOOKED_BYTES_MAX);
    let mut all = Vec::new();
    let mut begun = None;
    let mut at = block;
    while at + block <= last && all.len() <= STRETCHES_MAX && (at < end || begun.is_some()) {
        let Some(bytes) = view.take(at, block as usize) else { break };
        match (is_alien(bytes, alien), begun) {
            (true, None) => begun = Some(at),
            (false, Some(from)) => {
                all.push((from, at));
                begun = None;
            }
            _ => {}
        }
        at += block;
    }
    all
}

fn is_alien(block: &[u8], alien: Alien) -> bool {
    let sectors = block.len() as u64 / SECTOR_BYTES;
    text_sectors(block, sectors) == Some(0)
        || alien.zeros && block.iter().all(|byte| *byte == 0)
        || alien.noise && block.len() >= 4096 && is_noise(block)
}

/// Returns `extents`, the first of which extends beyond all gaps, without the gaps.
fn taken_out(extents: &[Extent], gaps: &[(u64, u64)]) -> Vec<Extent> {
    let mut left = Vec::new();
    let mut rest = extents.to_vec();
    let mut from = 0;
    for (begin, end) in gaps {
        let Some(first) = rest.first_mut() else { break };
        if first.length < end - from {
            break;
        }
        left.push(Extent { offset: first.offset, length: begin - from });
        first.offset += end - from;
        first.length -= end - from;
        from = *end;
    }
    left.extend(rest);
    left
}
