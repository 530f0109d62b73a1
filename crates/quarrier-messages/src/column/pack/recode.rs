//! Replaces the codes of one dictionary with those of another.

use super::whole::pack_whole_again;
use crate::column::packed::{Lanes, Packed};
use crate::column::segment::{Data, SegmentColumn};

impl SegmentColumn {
    /// Returns the segment with the new code for each old one; without a change if it has no codes.
    /// Reuses the memory of the old codes if the new ones need as much; `codes` is scratch memory.
    /// About 2 ns per row.
    ///
    /// # Panics
    /// If a code has no new one.
    pub(crate) fn recoded(self, new: &[u32], codes: &mut Vec<u32>) -> SegmentColumn {
        let rows = self.rows();
        let SegmentColumn { kind, valid, data: Data::Codes(packed), .. } = self else {
            return self;
        };
        codes.clear();
        look_up(&packed, new, codes);
        let (packed, zones) = pack_whole_again(codes, &valid, packed.lanes);
        SegmentColumn::of(kind, rows, valid, Data::Codes(packed), zones)
    }
}

/// Appends the new codes, given by `new`. Rows without a value have the code of another row.
fn look_up(packed: &Packed, new: &[u32], out: &mut Vec<u32>) {
    let rows = packed.rows();
    let new = usize::try_from(packed.base()).ok().and_then(|base| new.get(base..));
    let new = new.unwrap_or_default();
    match packed.lanes() {
        Lanes::U8(lanes) => out.extend(lanes[..rows].iter().map(|&lane| new[usize::from(lane)])),
        Lanes::U16(lanes) => out.extend(lanes[..rows].iter().map(|&lane| new[usize::from(lane)])),
        Lanes::U32(lanes) => out.extend(lanes[..rows].iter().map(|&lane| new[lane as usize])),
        _ => out.extend((0..rows).map(|row| new[(packed.get(row) - packed.base()) as usize])),
    }
}
