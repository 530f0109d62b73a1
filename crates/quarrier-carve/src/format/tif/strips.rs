//! Pictures in strips or tiles: decompressed as far as necessary to check that each has the length
//! that its sides require.

use super::super::pixels::{self, Pixels};
use super::super::tiff::{Directory, Entry, Order};
use super::packed;
use crate::inflate::Inflater;
use crate::view::View;

/// The maximum plausible length of an uncompressed strip, as a multiple of the length computed from
/// its sides.
const NONSENSE_TIMES: u64 = 256;

/// The parameters that all strips or tiles of a picture share.
pub(super) struct Strips {
    places: Entry,
    lengths: Entry,
    compression: u64,
    /// Bytes per row of one strip or tile.
    row_bytes: u64,
    pixel_bits: u64,
    /// Rows per strip or tile.
    rows: u64,
    /// Rows of the picture; `None` for tiles, which all have the same size.
    height: Option<u64>,
}

impl Strips {
    /// Returns `None` if the picture lacks a necessary entry.
    pub(super) fn read(
        view: &mut View<'_>,
        order: Order,
        directory: &Directory,
        (places, lengths): (u16, u16),
    ) -> Option<Strips> {
        let (places, lengths) = (*directory.entry(places)?, *directory.entry(lengths)?);
        let mut number =
            |tag: u16| directory.entry(tag).and_then(|entry| entry.number(view, order, 0));
        let (width, height) = (number(0x0100)?, number(0x0101)?);
        let bits = number(0x0102).unwrap_or(1);
        let compression = number(0x0103).unwrap_or(1);
        let samples = number(0x0115).unwrap_or(1);
        let is_planar = number(0x011C) == Some(2);
        // Colours may be shared by several pixels, and bits may be in reverse order.
        let is_plain = number(0x0106) != Some(6) && number(0x010A).unwrap_or(1) == 1;
        let (width, rows, height) = match (number(0x0142), number(0x0143)) {
            (Some(width), Some(rows)) => (width, rows, None),
            _ => (width, number(0x0116).unwrap_or(height).clamp(1, height.max(1)), Some(height)),
        };
        let bits = bits.checked_mul(if is_planar { 1 } else { samples })?;
        let row_bytes = width.checked_mul(bits)?.div_ceil(8);
        let is_sane = (1..=1 << 24).contains(&row_bytes) && (1..=1 << 32).contains(&rows);
        let is_known = is_plain || compression == 7;
        (is_sane && is_known).then_some(Strips {
            places,
            lengths,
            compression,
            row_bytes,
            pixel_bits: bits.clamp(1, 512),
            rows,
            height,
        })
    }

    /// Checks all of them. `Err` with the first wrong byte.
    pub(super) fn check(&self, view: &mut View<'_>, order: Order) -> Result<(), u64> {
        let mut inflater = Inflater::zlib();
        let mut together: Option<Pixels> = None;
        for index in 0..self.places.count {
            let place = self.places.number(view, order, index);
            let bytes = self.lengths.number(view, order, index);
            let (Some(place), Some(bytes)) = (place, bytes) else { break };
            let bytes = self.likely_bytes(index, bytes);
            let Some(end) = place.checked_add(bytes).filter(|_| bytes > 0) else { continue };
            if self.compression != 1 {
                self.unpack(view, &mut inflater, place..end, self.expected(index))?;
                continue;
            }
            // Consecutive strips form one piece of the picture.
            match &mut together {
                Some(pixels) if pixels.range.end == place => pixels.range.end = end,
                _ => {
                    let (row_bytes, pixel_bits) = (self.row_bytes, self.pixel_bits);
                    let next = Pixels { range: place..end, row_bytes, pixel_bits };
                    look_into(view, together.replace(next))?;
                }
            }
        }
        look_into(view, together)
    }

    /// Returns the length of a strip or tile whose directory has the length `stated`. If that is
    /// nonsense for an uncompressed one, readers use the length computed from its sides.
    pub(super) fn likely_bytes(&self, index: u64, stated: u64) -> u64 {
        let expected = self.expected(index);
        let is_nonsense = self.compression == 1 && stated / NONSENSE_TIMES > expected;
        if is_nonsense { expected } else { stated }
    }

    /// Returns the uncompressed size of a strip or tile.
    fn expected(&self, index: u64) -> u64 {
        let rows = match self.height {
            None => self.rows,
            Some(height) => {
                let index = index % height.div_ceil(self.rows).max(1);
                height.saturating_sub(index * self.rows).min(self.rows)
            }
        };
        rows.saturating_mul(self.row_bytes)
    }

    fn unpack(
        &self,
        view: &mut View<'_>,
        inflater: &mut Inflater,
        range: std::ops::Range<u64>,
        expected: u64,
    ) -> Result<(), u64> {
        match self.compression {
            5 => packed::lzw(view, range, expected),
            7 => packed::jpeg(view, range),
            8 | 32946 => {
                let start = range.start;
                let mut count = 0u64;
                let end = inflater.all(view, range, &mut |bytes| {
                    count += bytes.len() as u64;
                    count <= expected
                });
                match end {
                    Ok(_) if count == expected => Ok(()),
                    Err(crate::inflate::Failed::At(at)) => Err(at),
                    _ => Err(start),
                }
            }
            32773 => packed::pack_bits(view, range, expected),
            _ => Ok(()),
        }
    }
}

fn look_into(view: &mut View<'_>, pixels: Option<Pixels>) -> Result<(), u64> {
    match pixels.and_then(|pixels| pixels::foreign(view, &pixels)) {
        Some(at) => Err(at),
        None => Ok(()),
    }
}
