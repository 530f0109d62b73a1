//! The colours of series, as classes of the page's style.

/// A colour with a light and a dark form. Neighbours differ in lightness as well as in hue, so that
/// people with colour blindness can tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Colour(u8);

/// Number of series with their own colour.
const SERIES: usize = 8;

impl Colour {
    /// Blue, the first of the series.
    pub const BLUE: Colour = Colour(0);
    /// Orange, the second.
    pub const ORANGE: Colour = Colour(1);
    /// Green, the third.
    pub const GREEN: Colour = Colour(2);
    /// Violet, the fourth.
    pub const VIOLET: Colour = Colour(3);
    /// Pale blue, beside [`BLUE`](Colour::BLUE).
    pub const PALE_BLUE: Colour = Colour(8);
    /// Rust, beside [`ORANGE`](Colour::ORANGE).
    pub const RUST: Colour = Colour(9);
    /// Yellow, beside [`GREEN`](Colour::GREEN).
    pub const YELLOW: Colour = Colour(10);

    /// The colour of the series at `place`; the ninth repeats the first.
    pub fn series(place: usize) -> Self {
        Colour((place % SERIES) as u8)
    }

    /// The class that gives an element this colour.
    pub fn class(self) -> &'static str {
        const CLASSES: [&str; SERIES + 3] =
            ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "c10"];
        CLASSES[usize::from(self.0)]
    }
}
