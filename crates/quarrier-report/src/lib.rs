//! Output for people: escaped text from evidence, its width, numbers, pages and their charts.
//!
//! Names and values on a seized disk may contain sequences that control the reader's terminal, or
//! imitate other text. Everything that people see passes through this crate:
//!
//! ```text
//!  a piece of text ──→ visible         lines, tables, errors, progress
//!  several lines   ──→ visible_lines   plans
//!  a stream        ──→ EscapingWriter  CSV, JSON and messages that go to a terminal
//!  a page          ──→ page::page      HTML of `maud`, with charts of `chart`
//!  a number        ──→ number          sizes, rates, times, shares, counts
//! ```
//!
//! Output for programs (a pipe, a file) is not changed.

pub mod chart;
mod colour;
pub mod number;
pub mod page;
mod shown;
mod table;
mod visible;
mod width;

pub use colour::Colour;
pub use shown::{EscapingWriter, Manner, on_terminal};
pub use table::is_harmful;
pub use visible::{visible, visible_lines};
pub use width::{padded, width};
