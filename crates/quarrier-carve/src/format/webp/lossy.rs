//! VP8 key frames, read to the end of each partition: RFC 6386, sections 9 and 19.
//!
//! Any bytes can be decoded. But encoders leave no bytes unused: the macroblocks use exactly the
//! bytes of each partition.

use std::ops::Range;

use super::Fault;
use super::alien;
use super::bools::{Bools, Partition};
use super::tables::BLOCK_MODES;
use super::tokens::{Edge, Likelihoods};
use crate::view::View;

/// The header of a frame, before its first partition.
const HEADER_BYTES: u64 = 10;
/// The additional cost of a macroblock: many of them may take no bytes.
const MACROBLOCK_BYTES: u64 = 8;

/// The modes of 4×4 pixels that a macroblock of one mode shows to its neighbours.
const DC: u8 = 0;
const TRUE_MOTION: u8 = 1;
const VERTICAL: u8 = 2;
const HORIZONTAL: u8 = 3;
/// The tree of modes of 4×4 pixels: the targets of each branch; a negative value is the complement
/// of a mode.
const MODE_TREE: [[i8; 2]; 9] =
    [[!0, 1], [!1, 2], [!2, 3], [4, 6], [!3, 5], [!5, !6], [!4, 7], [!7, 8], [!8, !9]];

/// The parts of a frame's header that decoding needs.
struct Header {
    /// The tree of segments, if macroblocks state their segment.
    segments: Option<[u8; 3]>,
    /// The probability that a macroblock has coefficients, if each states that.
    skip: Option<u8>,
    likelihoods: Box<Likelihoods>,
    partitions: usize,
}

/// A macroblock whose modes have been read.
#[derive(Clone, Copy, Default)]
struct Macroblock {
    is_split: bool,
    is_skipped: bool,
}

/// Reads the frame in the bytes of `range`.
pub(super) fn read(view: &mut View<'_>, range: Range<u64>) -> Result<(), Fault> {
    let start = range.start;
    let head = view.array::<10>(start).ok_or(Fault::new(start, "truncated"))?;
    let tag = u64::from(head[0]) | u64::from(head[1]) << 8 | u64::from(head[2]) << 16;
    let dimension = |low, high| usize::from(u16::from_le_bytes([low, high]) & 0x3FFF);
    let (width, height) = (dimension(head[6], head[7]), dimension(head[8], head[9]));
    let is_key = tag & 1 == 0 && tag >> 1 & 7 <= 3 && head[3..6] == [0x9D, 0x01, 0x2A];
    if !is_key || width == 0 || height == 0 {
        return Err(Fault::new(start + HEADER_BYTES, "not a key frame"));
    }
    let modes_end = start + HEADER_BYTES + (tag >> 5);
    if modes_end > range.end {
        return Err(Fault::new(start + HEADER_BYTES, "a partition beyond the end"));
    }
    let (columns, rows) = (width.div_ceil(16), height.div_ceil(16));
    alien::check(view, modes_end..range.end, columns as u64 * rows as u64)?;
    let mut modes = Partition::new(start + HEADER_BYTES, modes_end);
    let mut bools = modes.begin(view);
    let header = Header::read(&mut bools);
    let state = bools.state();
    modes.keep(state);
    let mut tokens = partitions(view, modes_end..range.end, header.partitions)?;
    Frame {
        header,
        row: vec![Macroblock::default(); columns],
        modes_above: vec![DC; 4 * columns],
        edges_above: vec![[0; 9]; columns],
    }
    .rows(view, rows, &mut modes, &mut tokens)?;
    for partition in std::iter::once(&mut modes).chain(&mut tokens) {
        if !partition.is_used_up(view) {
            return Err(Fault::new(
                partition.place(),
                "a partition that does not end with its data",
            ));
        }
    }
    Ok(())
}

/// Returns the token partitions, which follow the lengths of all but the last one.
fn partitions(
    view: &mut View<'_>,
    range: Range<u64>,
    count: usize,
) -> Result<Vec<Partition>, Fault> {
    let lengths = range.start;
    let mut at = lengths + 3 * (count as u64 - 1);
    let mut all = Vec::with_capacity(count);
    for index in 0..count as u64 {
        let mut end = range.end;
        if index + 1 < count as u64 {
            let place = lengths + 3 * index;
            let bytes = view.array::<3>(place).ok_or(Fault::new(place, "truncated"))?;
            end = at + u64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]));
        }
        if at > end || end > range.end {
            return Err(Fault::new(lengths, "a partition beyond the end"));
        }
        all.push(Partition::new(at, end));
        at = end;
    }
    Ok(all)
}

impl Header {
    fn read(bools: &mut Bools<'_>) -> Header {
        // Colour space and clamping.
        bools.number(2);
        let segments = bools.flag().then(|| segments(bools)).flatten();
        // The loop filter.
        bools.number(1 + 6 + 3);
        if bools.flag() && bools.flag() {
            (0..8).for_each(|_| bools.skip_optional(7));
        }
        let partitions = 1 << bools.number(2);
        // Quantizers, and whether probabilities are kept.
        bools.number(7);
        (0..5).for_each(|_| bools.skip_optional(5));
        bools.flag();
        let likelihoods = Likelihoods::read(bools);
        let skip = bools.flag().then(|| bools.number(8) as u8);
        Header { segments, skip, likelihoods, partitions }
    }
}

/// Reads the tree of segments, if macroblocks state their segment.
fn segments(bools: &mut Bools<'_>) -> Option<[u8; 3]> {
    let (has_map, has_data) = (bools.flag(), bools.flag());
    if has_data {
        bools.flag();
        (0..4).for_each(|_| bools.skip_optional(8));
        (0..4).for_each(|_| bools.skip_optional(7));
    }
    let mut branch = || if bools.flag() { bools.number(8) as u8 } else { 255 };
    has_map.then(|| [branch(), branch(), branch()])
}

/// The state of reading a frame.
struct Frame {
    header: Header,
    row: Vec<Macroblock>,
    modes_above: Vec<u8>,
    edges_above: Vec<Edge>,
}

impl Frame {
    /// Reads all rows, if possible with the processor's instructions for shifting and counting
    /// bits, which halves the time.
    fn rows(
        &mut self,
        view: &mut View<'_>,
        rows: usize,
        modes: &mut Partition,
        tokens: &mut [Partition],
    ) -> Result<(), Fault> {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("lzcnt") {
            // SAFETY: `is_x86_feature_detected!` has just found BMI2 and LZCNT, the features for
            // which `rows_bmi` is compiled; it has no other requirements.
            return unsafe { self.rows_bmi(view, rows, modes, tokens) };
        }
        self.rows_anywhere(view, rows, modes, tokens)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi2,lzcnt")]
    fn rows_bmi(
        &mut self,
        view: &mut View<'_>,
        rows: usize,
        modes: &mut Partition,
        tokens: &mut [Partition],
    ) -> Result<(), Fault> {
        self.rows_anywhere(view, rows, modes, tokens)
    }

    #[inline(always)]
    fn rows_anywhere(
        &mut self,
        view: &mut View<'_>,
        rows: usize,
        modes: &mut Partition,
        tokens: &mut [Partition],
    ) -> Result<(), Fault> {
        for row in 0..rows {
            let mut left = [DC; 4];
            for column in 0..self.row.len() {
                let above = &mut self.modes_above[4 * column..][..4];
                let mut bools = modes.begin(view);
                self.row[column] = self.header.modes(&mut bools, above, &mut left);
                let state = bools.state();
                modes.keep(state);
            }
            let count = tokens.len();
            let tokens = &mut tokens[row % count];
            let mut left = [0; 9];
            for (macroblock, above) in self.row.iter().zip(&mut self.edges_above) {
                if macroblock.is_skipped {
                    let kept = if macroblock.is_split { (above[8], left[8]) } else { (0, 0) };
                    (*above, left) = ([0; 9], [0; 9]);
                    (above[8], left[8]) = kept;
                } else {
                    let mut bools = tokens.begin(view);
                    let is_split = macroblock.is_split;
                    self.header.likelihoods.macroblock(&mut bools, is_split, above, &mut left);
                    let state = bools.state();
                    tokens.keep(state);
                }
            }
            view.spend(MACROBLOCK_BYTES * self.row.len() as u64);
            for partition in [&*modes, &*tokens] {
                if partition.bits_left() < 0 || view.is_starved() {
                    return Err(Fault::new(partition.place(), "a partition that ends before"));
                }
            }
        }
        Ok(())
    }
}

impl Header {
    /// Reads the modes of a macroblock, whose neighbours are known.
    #[inline(always)]
    fn modes(&self, bools: &mut Bools<'_>, above: &mut [u8], left: &mut [u8; 4]) -> Macroblock {
        if let Some([half, low, high]) = self.segments {
            let half = bools.read(half);
            bools.read(if half { high } else { low });
        }
        let is_skipped = self.skip.is_some_and(|skip| bools.read(skip));
        let is_split = !bools.read(145);
        if is_split {
            for left in left {
                for above in &mut *above {
                    *left = block_mode(bools, *above, *left);
                    *above = *left;
                }
            }
        } else {
            let mode = match bools.read(156) {
                true if bools.read(128) => TRUE_MOTION,
                true => HORIZONTAL,
                false if bools.read(163) => VERTICAL,
                false => DC,
            };
            above.fill(mode);
            left.fill(mode);
        }
        // Chroma.
        if bools.read(142) && bools.read(114) {
            bools.read(183);
        }
        Macroblock { is_split, is_skipped }
    }
}

/// Reads the mode of 4×4 pixels.
#[inline(always)]
fn block_mode(bools: &mut Bools<'_>, above: u8, left: u8) -> u8 {
    let from = (usize::from(above) * 10 + usize::from(left)) * 9;
    let branches = &BLOCK_MODES[from..from + 9];
    let mut node = 0;
    loop {
        let next = MODE_TREE[node][usize::from(bools.read(branches[node]))];
        match usize::try_from(next) {
            Ok(next) => node = next,
            Err(_) => return !next as u8,
        }
    }
}
