//! The cached index of a gzip file: points at Deflate block boundaries.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

use super::{Index, POINTS_MAX, Point, State, WINDOW_BYTES};
use crate::packed::kept::{Packing, Reader, Writer};

/// An index, the decompressed length, and a notice to show.
pub(super) struct CachedIndex {
    pub(super) index: Index,
    pub(super) length: u64,
    pub(super) notice: Option<String>,
}

/// Serializes an index whose points are all at block boundaries; `None` for another.
pub(super) fn written(file_bytes: u64, kept: &CachedIndex) -> Option<Vec<u8>> {
    let CachedIndex { index, length, notice } = kept;
    let mut writer = Writer::new(Packing::Gzip, file_bytes, *length);
    writer.bytes(notice.as_deref().unwrap_or_default().as_bytes());
    writer.u32(index.points.len() as u32);
    for ((start, point), sum) in index.starts.iter().zip(&index.points).zip(&index.sums) {
        writer.u64(*start);
        writer.u32(*sum);
        let Some(point) = point else { continue };
        let State::Block { bits, count } = point.state else { return None };
        writer.u64(point.input_at);
        writer.u32(u32::from(bits) | u32::from(count) << 8);
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        // Writing to memory cannot fail.
        encoder.write_all(&*point.window).ok()?;
        writer.bytes(&encoder.finish().ok()?);
    }
    Some(writer.finish())
}

/// Parses an index written by [`written`] for a file of this length; `None` if it is invalid.
pub(super) fn read(bytes: &[u8], file_bytes: u64) -> Option<CachedIndex> {
    let (mut reader, length) = Reader::new(bytes, Packing::Gzip, file_bytes)?;
    // Deflate compresses by less than 1,040 to 1.
    Some(()).filter(|()| length / 2048 <= file_bytes)?;
    let notice = String::from_utf8(reader.bytes()?.to_vec()).ok()?;
    let count = reader.count(12).filter(|count| (1..=POINTS_MAX).contains(count))?;
    let mut index = Index::default();
    for number in 0..count {
        let start = reader.u64()?;
        let is_in_order = match index.starts.last() {
            None => start == 0,
            Some(&last) => last < start && start < length,
        };
        index.sums.push(reader.u32().filter(|_| is_in_order)?);
        index.starts.push(start);
        index.points.push(match number {
            0 => None,
            _ => Some(Box::new(point(&mut reader, file_bytes)?)),
        });
    }
    let notice = Some(notice).filter(|notice| !notice.is_empty());
    reader.is_at_end().then_some(CachedIndex { index, length, notice })
}

fn point(reader: &mut Reader<'_>, file_bytes: u64) -> Option<Point> {
    let input_at = reader.u64().filter(|&at| at <= file_bytes)?;
    let [bits, count, ..] = reader.u32()?.to_le_bytes();
    let is_right = count < 8 && u32::from(bits) < 1 << count;
    let mut window = Box::new([0; WINDOW_BYTES]);
    DeflateDecoder::new(reader.bytes()?).read_exact(&mut *window).ok()?;
    is_right.then_some(Point { input_at, state: State::Block { bits, count }, window })
}
