//! Finds foreign bytes in a picture with uncompressed pixels: text, noise, zeros that begin and end
//! at sectors, and data that are suddenly rougher than the picture before. Nothing else shows that
//! such a picture is fragmented or partly overwritten.

use std::ops::Range;

use crate::mend::text_sector;
use crate::view::{SECTOR_BYTES, View};

/// Minimum number of consecutive sectors of text or noise that do not belong to a picture.
const SECTORS: u32 = 2;
/// Minimum number of rougher sectors, and of sectors before them.
const ROUGH_SECTORS: u32 = 4;
/// The margin by which they must be rougher: a multiple of half the earlier roughness, plus a
/// constant.
const ROUGH_MARGIN: (u32, u32) = (3, 16 * SECTOR_BYTES as u32);
/// Number of bytes at the start of the first rougher sector that must be rougher on their own, too.
const FIRST_BYTES: usize = 64;
/// Minimum difference of noise to its left and upper neighbours; random data have 85.
const NOISE_ROUGH_MIN: u32 = 65 * SECTOR_BYTES as u32;
/// Random data have a χ² of 255 ± 23 over byte values. This is the sum of squared counts in a
/// sector with a χ² of 420.
const NOISE_SQUARES_MAX: u32 = (420 + 512) * 2;
/// Minimum number of spaces in a sector of text: words have fewer than thirty letters.
const SPACES_MIN: usize = 16;
/// Maximum size of a row in bytes for comparing pixels with those above.
const ROW_BYTES_MAX: u64 = 1 << 20;

/// The layout of pixels.
#[derive(Debug, Clone)]
pub(super) struct Pixels {
    /// In bytes of the file.
    pub(super) range: Range<u64>,
    /// The distance between rows in bytes.
    pub(super) row_bytes: u64,
    /// The size of one pixel.
    pub(super) pixel_bits: u64,
}

/// Measurements of a sector.
struct Sector {
    at: u64,
    is_zero: bool,
    is_text: bool,
    is_noise: bool,
    /// The sums of the differences from the pixels above and from those on the left.
    rough: [u32; 2],
    /// The same for its first bytes, scaled to a sector.
    rough_first: [u32; 2],
}

/// Returns the start of the first sector of foreign data among `pixels`. Sectors are aligned to the
/// file, like fragments.
pub(super) fn foreign(view: &mut View<'_>, pixels: &Pixels) -> Option<u64> {
    let pixel_bytes = (pixels.pixel_bits / 8).max(1);
    let row_bytes = pixels.row_bytes.clamp(pixel_bytes, pixel_bytes.max(ROW_BYTES_MAX));
    // Bytes with several pixels are rough wherever the picture is not uniform.
    let is_deep = pixels.pixel_bits >= 8;
    let mut at = pixels.range.start.checked_add(row_bytes)?.next_multiple_of(SECTOR_BYTES);
    let mut run = Runs::default();
    let mut rough = Rough::default();
    let mut zeros = Zeros::default();
    while at.checked_add(SECTOR_BYTES)? <= pixels.range.end {
        // A sector that cannot be read for lack of fuel may be foreign.
        let Some(sector) = Sector::read(view, at, row_bytes, pixel_bytes) else { return Some(at) };
        let found = run.take(&sector).or_else(|| rough.take(&sector).filter(|_| is_deep));
        if found.is_some() {
            return found;
        }
        zeros.take(view, &sector)?;
        at += SECTOR_BYTES;
    }
    zeros.end()
}

/// Number of sectors before a joint that represent the picture.
const KNOWN_SECTORS: u64 = 16;

/// Whether the picture continues at byte `joint`: the data after it resemble their upper and left
/// neighbours as much as the data shortly before it do.
pub(super) fn continues(view: &mut View<'_>, pixels: &Pixels, joint: u64) -> bool {
    let pixel_bytes = (pixels.pixel_bits / 8).max(1);
    let row_bytes = pixels.row_bytes.clamp(pixel_bytes, pixel_bytes.max(ROW_BYTES_MAX));
    let first = (pixels.range.start + row_bytes).next_multiple_of(SECTOR_BYTES);
    let from = joint.saturating_sub(KNOWN_SECTORS * SECTOR_BYTES).max(first);
    let mut most: Option<[u32; 2]> = None;
    let mut at = from;
    while at + SECTOR_BYTES <= joint {
        let Some(sector) = Sector::read(view, at, row_bytes, pixel_bytes) else { return false };
        let before = most.unwrap_or_default();
        most = Some([0, 1].map(|way| before[way].max(sector.rough[way])));
        at += SECTOR_BYTES;
    }
    let (Some(most), Some(after)) = (most, Sector::read(view, joint, row_bytes, pixel_bytes))
    else {
        return false;
    };
    let limits = most.map(|most| most * ROUGH_MARGIN.0 / 2 + ROUGH_MARGIN.1);
    // The left neighbours of the first pixels are on the other side of the joint.
    after.rough[0] <= limits[0] && after.rough[1] <= limits[1] && after.rough_first[0] <= limits[0]
}

impl Sector {
    fn read(view: &mut View<'_>, at: u64, row_bytes: u64, pixel_bytes: u64) -> Option<Sector> {
        let above = view.array::<{ SECTOR_BYTES as usize }>(at - row_bytes)?;
        let left = view.array::<{ SECTOR_BYTES as usize }>(at - pixel_bytes)?;
        let bytes = view.array::<{ SECTOR_BYTES as usize }>(at)?;
        let rough = [difference(&bytes, &above), difference(&bytes, &left)];
        let spaces = bytes.iter().filter(|byte| **byte == b' ').count();
        Some(Sector {
            at,
            is_zero: bytes.iter().all(|byte| *byte == 0),
            is_text: spaces >= SPACES_MIN && text_sector(&bytes).is_some() && is_words(&bytes),
            is_noise: rough.iter().all(|rough| *rough > NOISE_ROUGH_MIN) && is_even(&bytes),
            rough,
            rough_first: [&above, &left].map(|other| {
                let share = bytes.len() / FIRST_BYTES;
                difference(&bytes[..FIRST_BYTES], &other[..FIRST_BYTES]) * share as u32
            }),
        })
    }
}

fn difference(one: &[u8], other: &[u8]) -> u32 {
    one.iter().zip(other).map(|(a, b)| u32::from(a.abs_diff(*b))).sum()
}

/// Whether all values are about equally frequent.
fn is_even(bytes: &[u8]) -> bool {
    let mut counts = [0u32; 256];
    bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    counts.iter().map(|count| count * count).sum::<u32>() < NOISE_SQUARES_MAX
}

/// Whether more than half of the bytes are letters and digits next to each other.
fn is_words(bytes: &[u8]) -> bool {
    let is_word = |pair: &&[u8]| pair.iter().all(u8::is_ascii_alphanumeric);
    bytes.windows(2).filter(is_word).count() * 2 > bytes.len()
}

/// Consecutive sectors of text or of noise. A picture may consist of noise throughout.
#[derive(Default)]
struct Runs {
    text: u32,
    noise: u32,
    is_picture_seen: bool,
    /// The start of noise that may be the picture itself.
    noise_at: Option<u64>,
}

impl Runs {
    fn take(&mut self, sector: &Sector) -> Option<u64> {
        let from = |count: u32| sector.at - u64::from(count - 1) * SECTOR_BYTES;
        self.text = if sector.is_text { self.text + 1 } else { 0 };
        self.noise = if sector.is_noise { self.noise + 1 } else { 0 };
        if self.text >= SECTORS {
            return Some(from(self.text));
        }
        if self.noise >= SECTORS {
            self.noise_at = self.noise_at.or(Some(from(self.noise)));
        }
        self.is_picture_seen |= !sector.is_noise;
        self.noise_at.filter(|_| self.is_picture_seen)
    }
}

/// Consecutive sectors that are rougher than all earlier ones.
#[derive(Default)]
struct Rough {
    /// Maximum roughness before `pending`.
    most: [u32; 2],
    known: u32,
    /// The number of rougher sectors, and their greatest roughness.
    pending: u32,
    pending_most: [u32; 2],
}

impl Rough {
    fn take(&mut self, sector: &Sector) -> Option<u64> {
        let limits = self.most.map(|most| most * ROUGH_MARGIN.0 / 2 + ROUGH_MARGIN.1);
        let is_rougher = |rough: [u32; 2]| rough[0] > limits[0] && rough[1] > limits[1];
        let most = |one: [u32; 2], other: [u32; 2]| [0, 1].map(|way| one[way].max(other[way]));
        let is_rough = self.known >= ROUGH_SECTORS
            && is_rougher(sector.rough)
            && (self.pending > 0 || is_rougher(sector.rough_first));
        self.pending_most = most(self.pending_most, sector.rough);
        self.pending += 1;
        if !is_rough {
            self.most = most(self.most, self.pending_most);
            self.known += self.pending;
            (self.pending, self.pending_most) = (0, [0, 0]);
        }
        let is_long = self.pending >= ROUGH_SECTORS;
        is_long.then(|| sector.at - u64::from(self.pending - 1) * SECTOR_BYTES)
    }
}

/// Zeros that begin and end at sectors, in a picture without other zeros.
#[derive(Default)]
struct Zeros {
    from: Option<u64>,
    is_sharp: bool,
    found: Option<u64>,
    has_others: bool,
}

impl Zeros {
    /// Returns `None` if a byte cannot be read.
    fn take(&mut self, view: &mut View<'_>, sector: &Sector) -> Option<()> {
        match self.from {
            None if sector.is_zero => {
                let before = view.array::<8>(sector.at - 8)?;
                self.is_sharp = is_loud(&before);
                self.from = Some(sector.at);
            }
            Some(from) if !sector.is_zero => {
                let after = view.array::<8>(sector.at)?;
                self.from = None;
                self.ended(from, sector.at, self.is_sharp && is_loud(&after));
            }
            _ => {}
        }
        Some(())
    }

    fn ended(&mut self, from: u64, end: u64, is_sharp: bool) {
        let is_long = end - from >= u64::from(SECTORS) * SECTOR_BYTES;
        if is_sharp && is_long {
            self.found = self.found.or(Some(from));
        } else {
            self.has_others = true;
        }
    }

    fn end(self) -> Option<u64> {
        // Zeros at the end of the picture do not need a sharp end.
        let last = self.from.filter(|_| self.is_sharp);
        self.found.or(last).filter(|_| !self.has_others)
    }
}

/// Whether most bytes are not zero.
fn is_loud(bytes: &[u8]) -> bool {
    bytes.iter().filter(|byte| **byte != 0).count() >= 5
}
