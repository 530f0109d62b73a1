//! Drawings: SVG by `plotters`, which stand in the page.
//!
//! ```text
//!  points ─→ scale ─→ frame ─→ lines | histogram | roofline ─→ <svg>
//! ```
//!
//! Colours are those of [`theme`]; what a pointer tells over a point is the drawing's own
//! `<title>`, so the page needs no program.

mod frame;
mod histogram;
mod lines;
mod roofline;
mod scale;
pub(super) mod theme;

pub(super) use histogram::{Histogram, histogram};
pub(super) use lines::{Line, Lines, Mark, Point, lines};
pub(super) use roofline::{Roof, Roofs, Slope, roofline};
pub(super) use scale::Scale;
