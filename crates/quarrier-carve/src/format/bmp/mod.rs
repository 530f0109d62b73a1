//! Windows bitmaps: a header, a palette, and either rows of a known length, or runs, which are read
//! to their end.

mod rows;
mod runs;

use super::pixels::{self, Pixels};
use super::{Format, Kind, Signature, Verdict};
use crate::mend::{Alien, Broken, MendContext, Rest, without_gaps};
use crate::view::{Extent, View};

/// BMP of Windows and OS/2. It has no checksum: the validator checks that the header is consistent,
/// that runs fill the picture, and that no foreign bytes are among the pixels.
pub struct Bmp;

const BMP: Kind = Kind::new("bmp");
/// Bytes of the file header.
const FILE_BYTES: u64 = 14;
/// Maximum number of bytes after the pixels that the stated length may include.
const SLACK_BYTES: u64 = 4096;
/// The tolerance for the stated length of runs, in bytes.
const RUNS_SLACK_BYTES: u64 = 4;

/// The contents of the headers.
struct Header {
    file_bytes: u64,
    pixels_at: u64,
    width: u64,
    height: u64,
    bits: u64,
    /// Colours of the palette according to the header; 0 if not stated.
    colours: u64,
    compression: u32,
    /// The size of the pixels according to the header; 0 if it is not stated.
    pixel_bytes: u64,
    /// The end of a colour profile.
    profile_end: u64,
}

impl Format for Bmp {
    fn kinds(&self) -> &[Kind] {
        &[BMP]
    }

    fn signatures(&self) -> &[Signature] {
        // "BM", length, zeros, an offset of the pixels below 64 KiB, a header below 256 bytes.
        &[Signature { hex: "42 4D ?? ?? ?? ?? 00 00 00 00 ?? ?? 00 00 ?? 00 00 00", at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let Some(header) = Header::read(view) else { return Verdict::Not };
        let broken = |at: u64, end: u64, reason: &str| Verdict::Broken {
            kind: BMP,
            sure: 0,
            at: at.min(end),
            reason: reason.to_string(),
        };
        let end = view.length();
        let pixels_end = match header.compression {
            1 | 2 => match runs::end(view, &header) {
                Ok(pixels_end) if header.is_about(pixels_end) => pixels_end,
                Ok(at) => return broken(at, end, "runs that end too early or too late"),
                Err(at) => return broken(at, end, "runs that leave the picture"),
            },
            4 | 5 => header.pixels_at.saturating_add(header.pixel_bytes),
            _ => header.pixels_at.saturating_add(header.row_bytes().saturating_mul(header.height)),
        };
        let least = pixels_end.max(header.profile_end);
        let length = match header.file_bytes {
            bytes if bytes >= least && bytes - least <= SLACK_BYTES => bytes,
            // Some writers state a wrong size, or none.
            0 => least,
            bytes if bytes < least && least - bytes <= FILE_BYTES + 40 => least,
            _ => return Verdict::Not,
        };
        if length > end {
            return broken(end, end, "truncated");
        }
        if let Some(pixels) = header.pixels() {
            let found = [pixels::foreign(view, &pixels), rows::foreign(view, &header)];
            if let Some(at) = found.into_iter().flatten().min() {
                let why = "the data here is not a picture";
                return Verdict::broken(view, BMP, pixels.range.start, at, why);
            }
        }
        Verdict::Whole { length, kind: BMP }
    }

    fn mend(
        &self,
        view: &mut View<'_>,
        broken: &Broken,
        context: &MendContext<'_>,
    ) -> Option<Vec<Extent>> {
        let header = Header::read(view)?;
        let end = broken.at.max(header.file_bytes);
        let picture = Picture { pixels: header.pixels()?, format: self };
        without_gaps(view, context, end, Alien { zeros: false, noise: true }, &picture)
    }
}

impl Header {
    /// Returns `None` if the header contradicts itself.
    fn read(view: &mut View<'_>) -> Option<Header> {
        let file_bytes = u64::from(view.u32_le(2)?);
        let pixels_at = u64::from(view.u32_le(10)?);
        let header_bytes = u64::from(view.u32_le(FILE_BYTES)?);
        let mut header = Header {
            file_bytes,
            pixels_at,
            width: 0,
            height: 0,
            bits: 0,
            colours: 0,
            compression: 0,
            pixel_bytes: 0,
            profile_end: 0,
        };
        let mut entry_bytes = 4;
        let planes;
        match header_bytes {
            12 => {
                header.width = u64::from(view.u16_le(18)?);
                header.height = u64::from(view.u16_le(20)?);
                planes = view.u16_le(22)?;
                header.bits = u64::from(view.u16_le(24)?);
                entry_bytes = 3;
            }
            // The first fields of OS/2's header of 64 bytes; missing ones are 0.
            16 => {
                header.width = u64::from(view.u32_le(18)?);
                header.height = u64::from(view.u32_le(22)?);
                planes = view.u16_le(26)?;
                header.bits = u64::from(view.u16_le(28)?);
            }
            40 | 52 | 56 | 64 | 108 | 124 => {
                header.width = u64::try_from(view.u32_le(18)?.cast_signed()).ok()?;
                header.height = u64::from(view.u32_le(22)?.cast_signed().unsigned_abs());
                planes = view.u16_le(26)?;
                header.bits = u64::from(view.u16_le(28)?);
                header.compression = view.u32_le(30)?;
                header.pixel_bytes = u64::from(view.u32_le(34)?);
                header.colours = u64::from(view.u32_le(46)?);
            }
            _ => return None,
        }
        if header_bytes == 124 {
            let (at, bytes) = (u64::from(view.u32_le(126)?), u64::from(view.u32_le(130)?));
            if at > 0 && bytes > 0 {
                header.profile_end = FILE_BYTES + at + bytes;
            }
        }
        let is_sane = match (header.bits, header.compression) {
            (1 | 2 | 4 | 8 | 16 | 24 | 32, 0) | (4, 2) | (8, 1) => true,
            (16 | 32, 3 | 6) => true,
            (0, 4 | 5) => header.pixel_bytes > 0,
            _ => false,
        };
        let palette = match header.bits {
            // Readers reject more colours than pixels can address.
            1..=8 if header.colours == 0 || header.colours >> header.bits > 0 => 1 << header.bits,
            _ => header.colours,
        };
        // Some palettes are shorter than stated: the offset of the pixels decides.
        let is_room = pixels_at >= FILE_BYTES + header_bytes
            && pixels_at <= FILE_BYTES + header_bytes + 12 + palette * entry_bytes + SLACK_BYTES
            && palette <= 1 << 16;
        let is_size = (1..=1 << 20).contains(&header.width)
            && (1..=1 << 20).contains(&header.height)
            && header.row_bytes().checked_mul(header.height)? <= 1 << 36;
        (is_sane && is_room && is_size && planes == 1).then_some(header)
    }

    /// Returns the layout of uncompressed pixels.
    fn pixels(&self) -> Option<Pixels> {
        if !matches!(self.compression, 0 | 3 | 6) {
            return None;
        }
        let row_bytes = self.row_bytes();
        let end = self.pixels_at + row_bytes * self.height;
        Some(Pixels { range: self.pixels_at..end, row_bytes, pixel_bits: self.bits })
    }

    /// Returns whether the compressed pixels should end about here; some writers do not state their
    /// size.
    fn is_about(&self, pixels_end: u64) -> bool {
        let stated = self.pixels_at + self.pixel_bytes;
        self.pixel_bytes == 0 || pixels_end.abs_diff(stated) <= RUNS_SLACK_BYTES
    }

    /// Returns the size of a row, which is padded to a multiple of four bytes.
    fn row_bytes(&self) -> u64 {
        (self.width * self.bits).div_ceil(32) * 4
    }
}

/// A fragmented picture.
struct Picture<'p> {
    pixels: Pixels,
    format: &'p Bmp,
}

impl Rest for Picture<'_> {
    fn check(&self, view: &mut View<'_>) -> Option<u64> {
        Verdict::length(self.format.validate(view))
    }

    fn fits(&self, view: &mut View<'_>, joint: u64) -> bool {
        pixels::continues(view, &self.pixels, joint)
    }
}
