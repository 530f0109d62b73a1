//! Numbers of SQL that never wrap, as functions of DataFusion: arithmetic in 64 bits, SUM, AVG, and
//! exact numbers as floating ones.
//!
//! ```text
//!  a + b  ─→ Checked ─→ sql_add(a, b) ─┐
//!  SUM(a) ─→ all_totals ───────────────┼─→ the exact value, or a Refusal
//!  a < 0.5 ─→ Floats ─→ sql_double(a) ─┘
//! ```
//!
//! A crate of its own, because every row passes through these loops and the compiler is to optimise
//! them fully; `quarrier-sql`, which plans, is hardly optimised.

mod checked;
mod floats;
mod refusal;
mod totals;

pub use checked::{Checked, all as all_checked};
pub use floats::{Floats, all as all_floats, nearest};
pub use refusal::Refusal;
pub use totals::{Exact, all as all_totals};
