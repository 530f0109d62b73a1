//! Colours of the drawings: one for light pages, which stands in the drawing itself, and its
//! counterpart for dark ones, which the page's style puts in its place.

use plotters::style::RGBColor;

use crate::report::put;

/// A colour and what replaces it on a dark page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::report::html) struct Colour {
    light: u32,
    dark: u32,
}

const fn colour(light: u32, dark: u32) -> Colour {
    Colour { light, dark }
}

/// Lines and their points; they differ in lightness as well as in hue.
const SERIES: [Colour; 8] = [
    colour(0x2B6CB8, 0x5B9FE8),
    colour(0xE2931D, 0xF2A93B),
    colour(0x17876B, 0x2FB38F),
    colour(0x7450C4, 0xA48AEE),
    colour(0xC2407E, 0xF07BB0),
    colour(0x1392A8, 0x45C3D8),
    colour(0x8A5A2B, 0xC99A6B),
    colour(0x6B7684, 0x9AA5B1),
];
/// How many series have a colour of their own.
pub(in crate::report::html) const SERIES_MOST: usize = SERIES.len();

pub(super) const INK: Colour = colour(0x1A1F25, 0xE6E9ED);
pub(super) const SOFT: Colour = colour(0x5A6571, 0x98A3AF);
pub(super) const GRID: Colour = colour(0xE9ECEF, 0x242A32);
pub(super) const AXIS: Colour = colour(0xC3CAD2, 0x48525D);
pub(super) const CARD: Colour = colour(0xFFFFFF, 0x171B21);
pub(super) const BAD: Colour = colour(0xCF222E, 0xFF6A69);

/// The colour of the series at `place`.
pub(in crate::report::html) fn series(place: usize) -> Colour {
    SERIES[place % SERIES.len()]
}

impl Colour {
    pub(super) fn rgb(self) -> RGBColor {
        let [_, red, green, blue] = self.light.to_be_bytes();
        RGBColor(red, green, blue)
    }
}

/// The rules that turn drawings dark, and a class for the key of each series.
pub(in crate::report::html) fn css(out: &mut String) {
    for (place, colour) in SERIES.iter().enumerate() {
        put!(out, ".key.s{place}, .fill.s{place} {{ background: #{:06X}; }}\n", colour.light);
    }
    put!(out, "@media (prefers-color-scheme: dark) {{\n");
    for colour in [&SERIES[..], &[INK, SOFT, GRID, AXIS, CARD, BAD]].concat() {
        let Colour { light, dark } = colour;
        put!(
            out,
            ".plot [fill=\"#{light:06X}\"] {{ fill: #{dark:06X}; }} \
             .plot [stroke=\"#{light:06X}\"] {{ stroke: #{dark:06X}; }}\n"
        );
    }
    for (place, colour) in SERIES.iter().enumerate() {
        put!(out, ".key.s{place}, .fill.s{place} {{ background: #{:06X}; }}\n", colour.dark);
    }
    put!(out, "}}\n");
}
