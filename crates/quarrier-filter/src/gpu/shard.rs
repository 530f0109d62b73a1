//! Segments in the device's memory.

use std::ops::Range;

use quarrier_gpu::kernels::SEGMENT_WORDS;
use quarrier_gpu::{Buffer, Device, Queue};
use quarrier_messages::Table;
use quarrier_messages::column::{Data, Lanes, Packed, SegmentColumn, float_key};

use super::bytes_of;
use super::ranges::float_lane;
use crate::error::Result;

/// Bytes of a vector; offsets of lanes are in vectors.
const VECTOR_BYTES: usize = 16;

/// Must match the kernel.
const NOWHERE: u32 = u32::MAX;
const LANES_NONE: u32 = 0;
const LANES_BITS: u32 = 1;
const LANES_8: u32 = 2;
const LANES_16: u32 = 3;
const LANES_32: u32 = 4;
const LANES_64: u32 = 5;

/// Some segments, and their layout in the buffers.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) segments: Range<usize>,
    /// Lanes and validity of all columns.
    pub(super) data: Buffer,
    /// For each segment and column: the offset of its lanes, their type, the offset of its
    /// validity.
    pub(super) places: Buffer,
    pub(super) segment_rows: Buffer,
}

/// Copies all segments of a table, to as many buffers as necessary.
pub(super) fn all(
    table: &Table,
    part_bytes: usize,
    device: &Device,
    queue: &mut Queue,
) -> Result<Vec<Shard>> {
    let mut shards = Vec::new();
    let (mut first, mut laid) = (0, ShardBuilder::default());
    for segment in 0..table.segments() {
        let rows = table.segment_rows(segment);
        debug_assert!(rows <= 32 * SEGMENT_WORDS as usize, "{rows} rows");
        for column in table.columns() {
            laid.column(&column.segments()[segment]);
        }
        laid.rows.push(rows as u32);
        if laid.data.len() >= part_bytes || segment + 1 == table.segments() {
            shards.push(std::mem::take(&mut laid).shard(first..segment + 1, device, queue)?);
            first = segment + 1;
        }
    }
    Ok(shards)
}

/// A shard under construction, in host memory.
#[derive(Default)]
struct ShardBuilder {
    data: Vec<u8>,
    places: Vec<[u32; 4]>,
    rows: Vec<u32>,
}

impl ShardBuilder {
    fn shard(self, segments: Range<usize>, device: &Device, queue: &mut Queue) -> Result<Shard> {
        let ShardBuilder { mut data, places, rows } = self;
        data.resize(data.len().max(VECTOR_BYTES), 0);
        Ok(Shard {
            segments,
            data: device.buffer_with(queue, &data)?,
            places: device.buffer_with(queue, &bytes_of(places.into_iter().flatten()))?,
            segment_rows: device.buffer_with(queue, &bytes_of(rows))?,
        })
    }

    fn column(&mut self, column: &SegmentColumn) {
        let rows = column.rows();
        let (kind, at) = match column.data() {
            Data::Null | Data::Text(_) | Data::Exact(_) => (LANES_NONE, 0),
            Data::Float(values) => {
                let lane = |value: &f64| float_lane(float_key(*value)).to_ne_bytes();
                self.lanes(LANES_64, rows, values[..rows].iter().flat_map(lane))
            }
            Data::Whole(packed)
            | Data::Codes(packed)
            | Data::Shifted { packed, .. }
            | Data::Scaled { packed, .. } => self.packed(packed),
        };
        let valid = match column.valid() {
            [] => NOWHERE,
            words => self.lanes(LANES_BITS, rows, words.iter().flat_map(|word| halves(*word))).1,
        };
        self.places.push([at, kind, valid, 0]);
    }

    fn packed(&mut self, packed: &Packed) -> (u32, u32) {
        let rows = packed.rows();
        match packed.lanes() {
            Lanes::Constant => (LANES_NONE, 0),
            Lanes::Bits(words) => {
                self.lanes(LANES_BITS, rows, words.iter().flat_map(|word| halves(*word)))
            }
            Lanes::U8(lanes) => self.lanes(LANES_8, rows, lanes.iter().copied()),
            Lanes::U16(lanes) => {
                self.lanes(LANES_16, rows, lanes.iter().flat_map(|lane| lane.to_ne_bytes()))
            }
            Lanes::U32(lanes) => {
                self.lanes(LANES_32, rows, lanes.iter().flat_map(|lane| lane.to_ne_bytes()))
            }
            Lanes::U64(lanes) => {
                self.lanes(LANES_64, rows, lanes.iter().flat_map(|lane| lane.to_ne_bytes()))
            }
            Lanes::Runs { ends, values } => self.runs(rows, ends, values),
        }
    }

    /// Expands runs to lanes, as wide as the greatest value needs.
    fn runs(&mut self, rows: usize, ends: &[u32], values: &[u64]) -> (u32, u32) {
        let mut first = 0;
        let each = ends.iter().zip(values).flat_map(move |(&end, &value)| {
            let rows = (end - std::mem::replace(&mut first, end)) as usize;
            std::iter::repeat_n(value, rows)
        });
        match values.iter().copied().max().unwrap_or(0) {
            0..=0xff => self.lanes(LANES_8, rows, each.map(|lane| lane as u8)),
            0x100..=0xffff => {
                self.lanes(LANES_16, rows, each.flat_map(|lane| (lane as u16).to_ne_bytes()))
            }
            0x1_0000..=0xffff_ffff => {
                self.lanes(LANES_32, rows, each.flat_map(|lane| (lane as u32).to_ne_bytes()))
            }
            _ => self.lanes(LANES_64, rows, each.flat_map(u64::to_ne_bytes)),
        }
    }

    /// Appends lanes of a type; returns the type, and the offset of the lanes in vectors. Pads them
    /// so that the kernel can read whole words of 32 rows.
    fn lanes(&mut self, kind: u32, rows: usize, bytes: impl Iterator<Item = u8>) -> (u32, u32) {
        let at = self.data.len();
        self.data.extend(bytes);
        let words = rows.div_ceil(32);
        let needed =
            if kind == LANES_BITS { 4 * words } else { (words * VECTOR_BYTES) << (kind - 1) };
        let end = (at + needed).next_multiple_of(VECTOR_BYTES).max(self.data.len());
        self.data.resize(end.next_multiple_of(VECTOR_BYTES), 0);
        (kind, (at / VECTOR_BYTES) as u32)
    }
}

/// Splits a word into two of 32 bits; that of the first rows comes first.
fn halves(word: u64) -> [u8; 8] {
    let [low, high] = [word as u32, (word >> 32) as u32].map(u32::to_ne_bytes);
    [low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]]
}
