//! Lossless WebP, read to its last bit: RFC 9649, section 3.
//!
//! Pixels are read, not reconstructed, since the transforms would not reveal more errors. Only
//! pixels that select codes are kept.

use std::ops::Range;

use super::Fault;
use super::prefix::{Bits, Code};
use crate::view::View;

/// Maximum number of groups of codes: many more than encoders use.
const GROUPS_MAX: usize = 1 << 12;
/// Maximum number of pixels of the map that selects codes.
const MAP_PIXELS_MAX: u64 = 1 << 20;
/// Symbols of the green alphabet from here on are lengths and distances.
const LENGTHS: u32 = 256;
const CACHED: u32 = LENGTHS + 24;
/// Number of pixels without bits that cost a byte of fuel.
const PIXELS_OF_FUEL: u64 = 16;

/// The nearest pixels by code: rows above, and 8 minus the columns to the left.
static NEAR_PIXELS: [u8; 120] = [
    24, 7, 23, 25, 40, 6, 39, 41, 22, 26, 38, 42, 56, 5, 55, 57, 21, 27, 54, 58, 37, 43, 72, 4, 71,
    73, 20, 28, 53, 59, 70, 74, 36, 44, 88, 69, 75, 52, 60, 3, 87, 89, 19, 29, 86, 90, 35, 45, 68,
    76, 85, 91, 51, 61, 104, 2, 103, 105, 18, 30, 102, 106, 34, 46, 84, 92, 67, 77, 101, 107, 50,
    62, 120, 1, 119, 121, 83, 93, 17, 31, 100, 108, 66, 78, 118, 122, 33, 47, 117, 123, 49, 63, 99,
    109, 82, 94, 0, 116, 124, 65, 79, 16, 32, 98, 110, 48, 115, 125, 81, 95, 64, 114, 126, 97, 111,
    80, 113, 127, 96, 112,
];

/// Reads the picture in the bytes of `range`.
pub(super) fn read(view: &mut View<'_>, range: Range<u64>) -> Result<(), Fault> {
    let head = view.array::<5>(range.start).ok_or(Fault::new(range.start, "truncated"))?;
    let sizes = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
    if head[0] != 0x2F || sizes >> 29 != 0 {
        return Err(Fault::new(range.start + 5, "not a lossless picture"));
    }
    let (width, height) = ((sizes & 0x3FFF) + 1, (sizes >> 14 & 0x3FFF) + 1);
    read_pixels(view, range.start + 5..range.end, width, height)
}

/// Reads a picture of a known size without a header.
pub(super) fn read_pixels(
    view: &mut View<'_>,
    range: Range<u64>,
    width: u32,
    height: u32,
) -> Result<(), Fault> {
    let mut bits = Bits::new(view, range.start, range.end);
    let width = transforms(&mut bits, width, height)?;
    Picture::read(&mut bits, width, height, Role::Main)?;
    if bits.is_used_up() {
        Ok(())
    } else {
        Err(bits.fault("a picture that does not end with its data"))
    }
}

/// Reads the transforms; returns the width of the picture before them.
fn transforms(bits: &mut Bits<'_, '_>, mut width: u32, height: u32) -> Result<u32, Fault> {
    let mut seen = [false; 4];
    while bits.read(1) == 1 {
        let kind = bits.read(2);
        if std::mem::replace(&mut seen[kind as usize], true) {
            return Err(bits.fault("a transform twice"));
        }
        match kind {
            0 | 1 => {
                let block = 2 + bits.read(3);
                let (columns, rows) = (blocks(width, block), blocks(height, block));
                Picture::read(bits, columns, rows, Role::Part)?;
            }
            2 => {}
            _ => {
                let colours = bits.read(8) + 1;
                Picture::read(bits, colours, 1, Role::Part)?;
                let packed = match colours {
                    0..=2 => 3,
                    3..=4 => 2,
                    5..=16 => 1,
                    _ => 0,
                };
                width = blocks(width, packed);
            }
        }
    }
    Ok(width)
}

/// The number of blocks of 2 to the power of `bits` pixels that `pixels` pixels need.
fn blocks(pixels: u32, bits: u32) -> u32 {
    pixels.div_ceil(1 << bits)
}

/// The role of a picture.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The visible picture: its parts may have separate codes.
    Main,
    /// Data of a transform.
    Part,
    /// Selects the codes of parts of the picture.
    Map,
}

/// The codes of a part of the picture.
struct Group {
    green: Code,
    red: Code,
    blue: Code,
    alpha: Code,
    distance: Code,
}

impl Group {
    fn read(bits: &mut Bits<'_, '_>, cache_bits: Option<u32>) -> Result<Group, Fault> {
        let cached = cache_bits.map_or(0, |bits| 1 << bits);
        Ok(Group {
            green: Code::read(bits, CACHED as usize + cached)?,
            red: Code::read(bits, 256)?,
            blue: Code::read(bits, 256)?,
            alpha: Code::read(bits, 256)?,
            distance: Code::read(bits, 40)?,
        })
    }

    /// Whether all its pixels have one colour and take no bits.
    fn is_silent(&self) -> bool {
        [&self.green, &self.red, &self.blue, &self.alpha].iter().all(|code| code.is_silent())
    }
}

/// Selects a group for each part.
struct Map {
    groups: Vec<u16>,
    columns: u32,
    block: u32,
}

/// The state of reading a picture.
struct Picture {
    width: u32,
    /// The number of pixels.
    count: u64,
    groups: Vec<Group>,
    map: Option<Map>,
    /// For a map: the pixels read, and the colour cache.
    kept: Option<(Vec<u32>, Cache)>,
}

impl Picture {
    /// Reads a picture; returns the pixels of a map, and nothing for others.
    fn read(
        bits: &mut Bits<'_, '_>,
        width: u32,
        height: u32,
        role: Role,
    ) -> Result<Vec<u32>, Fault> {
        let cache_bits = (bits.read(1) == 1).then(|| bits.read(4));
        if cache_bits.is_some_and(|bits| !(1..=11).contains(&bits)) {
            return Err(bits.fault("no such colour cache"));
        }
        let mut map = None;
        if role == Role::Main && bits.read(1) == 1 {
            let block = 2 + bits.read(3);
            let columns = blocks(width, block);
            let pixels = Picture::read(bits, columns, blocks(height, block), Role::Map)?;
            let groups = pixels.iter().map(|pixel| (pixel >> 8) as u16).collect();
            map = Some(Map { groups, columns, block });
        }
        let last = map.iter().flat_map(|map: &Map| &map.groups).max();
        let group_count = last.map_or(1, |last| usize::from(*last) + 1);
        if group_count > GROUPS_MAX {
            return Err(bits.fault("more codes than a picture has"));
        }
        let mut groups = Vec::new();
        for _ in 0..group_count {
            groups.push(Group::read(bits, cache_bits)?);
            if bits.is_overrun() {
                return Err(bits.fault("truncated"));
            }
        }
        let count = u64::from(width) * u64::from(height);
        if role == Role::Map && count > MAP_PIXELS_MAX {
            return Err(bits.fault("more parts than a picture has"));
        }
        let kept = (role == Role::Map).then(|| (Vec::new(), Cache::new(cache_bits)));
        let mut picture = Picture { width, count, groups, map, kept };
        picture.pixels(bits)?;
        Ok(picture.kept.map_or_else(Vec::new, |(pixels, _)| pixels))
    }

    fn pixels(&mut self, bits: &mut Bits<'_, '_>) -> Result<(), Fault> {
        let mut at = 0;
        while at < self.count {
            let (row, mut column) =
                (at / u64::from(self.width), (at % u64::from(self.width)) as u32);
            // Read up to the column where another group may apply; a copy may go beyond it.
            while column < self.width {
                let (group, end) = self.group(row, column);
                let group = &self.groups[group];
                if self.kept.is_none() && group.is_silent() {
                    at += u64::from(end - column);
                    bits.view.spend(1 + u64::from(end - column) / PIXELS_OF_FUEL);
                    column = end;
                    if bits.view.is_starved() {
                        return Err(bits.fault("a picture without an end"));
                    }
                    continue;
                }
                let start = column;
                let mut ahead = 0;
                while column < end {
                    match read_symbol(bits, group, &mut self.kept) {
                        Symbol::Pixel => {
                            at += 1;
                            column += 1;
                        }
                        Symbol::Copy { length, distance } => {
                            copy(&mut self.kept, self.width, self.count, at, length, distance)
                                .ok_or_else(|| bits.fault("a copy from outside of the picture"))?;
                            at += u64::from(length);
                            ahead = length;
                            break;
                        }
                    }
                }
                bits.view.spend(1 + u64::from(column - start) / PIXELS_OF_FUEL);
                if bits.is_overrun() || bits.view.is_starved() {
                    return Err(bits.fault("a picture that ends before"));
                }
                if u64::from(column) + u64::from(ahead) >= u64::from(self.width) {
                    break;
                }
                column += ahead;
            }
        }
        Ok(())
    }

    /// Returns the group for a pixel, and the column up to which it applies.
    fn group(&self, row: u64, column: u32) -> (usize, u32) {
        let Some(map) = &self.map else { return (0, self.width) };
        let block = column >> map.block;
        let place = (row >> map.block) * u64::from(map.columns) + u64::from(block);
        let end = ((block + 1) << map.block).min(self.width);
        (usize::from(map.groups[place as usize]), end)
    }
}

enum Symbol {
    Pixel,
    Copy { length: u32, distance: u32 },
}

/// Reads a pixel, or a length and distance for copying some; the distance is still a code.
#[inline(always)]
fn read_symbol(
    bits: &mut Bits<'_, '_>,
    group: &Group,
    kept: &mut Option<(Vec<u32>, Cache)>,
) -> Symbol {
    let green = group.green.symbol(bits);
    if green < LENGTHS {
        let red = group.red.symbol(bits);
        let blue = group.blue.symbol(bits);
        let alpha = group.alpha.symbol(bits);
        if let Some((pixels, cache)) = kept {
            let pixel = alpha << 24 | red << 16 | green << 8 | blue;
            pixels.push(pixel);
            cache.keep(pixel);
        }
        return Symbol::Pixel;
    }
    if green < CACHED {
        let length = extended(bits, green - LENGTHS);
        let distance = group.distance.symbol(bits);
        return Symbol::Copy { length, distance: extended(bits, distance) };
    }
    if let Some((pixels, cache)) = kept {
        pixels.push(cache.0.get((green - CACHED) as usize).copied().unwrap_or(0));
    }
    Symbol::Pixel
}

/// Reads the bits after the symbol of a length or distance; returns its value.
#[inline]
fn extended(bits: &mut Bits<'_, '_>, symbol: u32) -> u32 {
    if symbol < 4 {
        return symbol + 1;
    }
    let more = (symbol - 2) >> 1;
    ((2 + (symbol & 1)) << more) + bits.read(more) + 1
}

/// Copies pixels. `None` if the copy begins before the picture, or ends after it.
fn copy(
    kept: &mut Option<(Vec<u32>, Cache)>,
    width: u32,
    count: u64,
    at: u64,
    length: u32,
    distance: u32,
) -> Option<()> {
    let near = NEAR_PIXELS.get(distance as usize - 1);
    let distance = near.map_or(i64::from(distance) - 120, |near| {
        (i64::from(near >> 4) * i64::from(width) + 8 - i64::from(near & 15)).max(1)
    });
    let distance = u64::try_from(distance).ok()?;
    if distance > at || u64::from(length) > count - at {
        return None;
    }
    if let Some((pixels, cache)) = kept {
        for _ in 0..length {
            let pixel = pixels[pixels.len() - distance as usize];
            pixels.push(pixel);
            cache.keep(pixel);
        }
    }
    Some(())
}

/// Recent colours by their hash; empty without a cache.
struct Cache(Vec<u32>);

impl Cache {
    fn new(bits: Option<u32>) -> Cache {
        Cache(bits.map_or_else(Vec::new, |bits| vec![0; 1 << bits]))
    }

    fn keep(&mut self, pixel: u32) {
        if !self.0.is_empty() {
            let bits = self.0.len().trailing_zeros();
            let place = pixel.wrapping_mul(0x1E35_A7BD) >> (32 - bits);
            self.0[place as usize] = pixel;
        }
    }
}
